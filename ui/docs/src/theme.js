/** VitePress's own theme, with "Ask about this page" below each page, commands that name this server, and forms that try the routes of the reference. */
import { onContentUpdated } from 'vitepress'
import DefaultTheme from 'vitepress/theme-without-fonts'
import { h } from 'vue'
import AskPage from './AskPage.vue'
import { nameServer } from './here.js'
import TryIt from './TryIt.vue'
import './style.css'

/** @type {import('vitepress').Theme} */
export default {
  ...DefaultTheme,
  setup: () => onContentUpdated(nameServer),
  Layout: () => h(DefaultTheme.Layout, null, { 'doc-footer-before': () => h(AskPage) }),
  enhanceApp: ({ app }) => {
    app.component('TryIt', TryIt)
  },
}
