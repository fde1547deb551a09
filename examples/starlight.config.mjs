/** Astro Starlight: `astro.config.mjs`. Put the element into an override of the component `Footer`. */
import starlight from '@astrojs/starlight'
import { defineConfig } from 'astro/config'

const attrs = { type: 'module', src: 'http://localhost:8108/widget/parley-chat.js' }
export default defineConfig({
  integrations: [starlight({ title: 'Handbook', head: [{ tag: 'script', attrs }] })],
})
