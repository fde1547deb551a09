/** VitePress's own theme, with "Ask about this page" below each page, and commands that name this server and run. */
import { onContentUpdated } from 'vitepress'
import DefaultTheme from 'vitepress/theme-without-fonts'
import { h } from 'vue'
import AskPage from './AskPage.vue'
import { nameAll } from './here.js'
import RunCommand from './RunCommand.vue'
import './style.css'

/** @type {import('vitepress').Theme} */
export default {
  ...DefaultTheme,
  setup: () => onContentUpdated(nameAll),
  Layout: () => h(DefaultTheme.Layout, null, { 'doc-footer-before': () => h(AskPage) }),
  enhanceApp: ({ app }) => {
    app.component('RunCommand', RunCommand)
  },
}
