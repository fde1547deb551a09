/** VitePress: `.vitepress/config.js`. Put the element into a page, or into the slot `layout-bottom` of the theme. */
export default {
  title: 'Handbook',
  head: [['script', { type: 'module', src: 'http://localhost:8108/widget/parley-chat.js' }]],
  vue: { template: { compilerOptions: { isCustomElement: (tag) => tag === 'parley-chat' } } },
}
