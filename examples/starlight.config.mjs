/** Astro Starlight: `astro.config.mjs`. Put the element into `src/components/Footer.astro`. */
import starlight from '@astrojs/starlight'
import { defineConfig } from 'astro/config'

const attrs = { type: 'module', src: 'http://localhost:8108/widget/parley-chat.js' }
export default defineConfig({
  integrations: [
    starlight({
      title: 'Handbook',
      head: [{ tag: 'script', attrs }],
      components: { Footer: './src/components/Footer.astro' },
    }),
  ],
})
