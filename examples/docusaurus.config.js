/** Docusaurus: `docusaurus.config.js`. Put the element into `src/theme/Root.js`, with its key as `api-key`. */
export default {
  title: 'Handbook',
  url: 'https://docs.example.com',
  baseUrl: '/',
  presets: ['classic'],
  scripts: [{ type: 'module', src: 'http://localhost:8108/widget/parley-chat.js' }],
}
