/** What VitePress is told of the documentation. It is built for a policy without inline scripts, inline styles and `data:`. */

import { markdown } from './markdown.mjs'
import { groups, SUMMARY } from './site.mjs'

const BASE = '/docs/'

const pages = new Map(groups.flatMap((group) => group.pages.map((page) => [`${page.name}.md`, page])))

/** The icons of the theme, as files. @type {import('vite').Plugin} */
const iconsAsFiles = {
  name: 'parley-icons',
  enforce: 'post',
  generateBundle(_, bundle) {
    for (const asset of Object.values(bundle)) {
      if (asset.type !== 'asset' || !asset.fileName.endsWith('.css')) continue
      asset.source = String(asset.source).replace(
        /url\((["']?)data:image\/svg\+xml(?:;utf8)?,(.*?)\1\)/g,
        (_, _quote, svg) => {
          const source = decodeURIComponent(svg.replaceAll("\\'", "'"))
          const reference = this.emitFile({ type: 'asset', name: 'icon.svg', source })
          return `url(${BASE}${this.getFileName(reference)})`
        },
      )
    }
  },
}

/** What is wrong with the roles of the theme's search box: it calls itself a button, puts links into options, and hides their text. */
const ROLES = [
  ['role="button"', 'role="dialog" aria-modal="true"'],
  [`:aria-owns="results?.length ? 'localsearch-list' : undefined"`, ''],
  ['aria-expanded="true"\n      aria-haspopup="listbox"', ''],
  [`:aria-label="[...p.titles, p.title].join(' > ')"`, ''],
  ['<kbd :aria-label', '<kbd role="img" :aria-label'],
  ['<input\n', `<input role="combobox" :aria-expanded="results?.length ? 'true' : 'false'"\n`],
  [
    `:id="'localsearch-item-' + index"\n            :aria-selected="selectedIndex === index ? 'true' : 'false'"\n            role="option"`,
    'role="presentation"',
  ],
  [
    '<a\n              :href="withBase(p.id)"',
    `<a role="option" :id="'localsearch-item-' + index" :aria-selected="selectedIndex === index ? 'true' : 'false'"\n :href="withBase(p.id)"`,
  ],
]

/** @type {import('vite').Plugin} */
const rolesOfSearch = {
  name: 'parley-search-roles',
  enforce: 'pre',
  transform(code, id) {
    if (!id.endsWith('VPLocalSearchBox.vue')) return
    return ROLES.reduce((all, [wrong = '', right = '']) => {
      if (!all.includes(wrong))
        throw new Error(`VitePress's search box has no ${wrong}: see scripts/docs/config.mjs.`)
      return all.replaceAll(wrong, right)
    }, code)
  },
}

export default /** @type {import('vitepress').UserConfig<import('vitepress').DefaultTheme.Config>} */ ({
  title: 'Parley docs',
  titleTemplate: ':title · Parley',
  base: BASE,
  cleanUrls: true,
  metaChunk: true,
  router: { prefetchLinks: false }, // it would load all pages that the navigation has in sight
  ignoreDeadLinks: 'localhostLinks',
  markdown,
  appearance: { storageKey: 'parley.theme', disableTransition: false }, // which it does by a <style>
  head: [['link', { rel: 'icon', href: '/icon.svg', type: 'image/svg+xml' }]],
  themeConfig: {
    logo: { src: '/icon.svg', alt: '' },
    outline: [2, 3],
    sidebarMenuLabel: 'All pages',
    externalLinkIcon: false,
    search: { provider: 'local', options: { detailedView: true } },
    nav: [
      { text: 'API', link: '/api' },
      // VitePress puts its base before each path.
      { text: 'Console', link: '/../', target: '_self' },
    ],
    sidebar: groups.map((group) => ({
      text: group.title,
      items: group.pages.map(({ name, label }) => ({ text: label, link: `/${name}` })),
    })),
  },
  vite: {
    plugins: [iconsAsFiles, rolesOfSearch],
    logLevel: 'warn',
    // Browsers that know light-dark().
    build: { assetsInlineLimit: 0, cssTarget: 'chrome123', chunkSizeWarningLimit: 4_000 },
  },
  transformPageData(data) {
    const { summary, markdown: text = '', isWritten } = pages.get(data.relativePath) ?? {}
    data.description = summary ?? SUMMARY
    // What "Ask about this page" offers.
    data.frontmatter.questions = [...text.matchAll(/^## (.+\?)$/gm)]
      .slice(0, 3)
      .map(([, question = '']) => question.replaceAll('`', ''))
    data.frontmatter.isWritten = isWritten
  },
  transformHead: ({ title, description }) => [
    ['meta', { property: 'og:title', content: title }],
    ['meta', { property: 'og:description', content: description }],
    ['meta', { property: 'og:type', content: 'article' }],
  ],
  transformHtml: (html) =>
    html
      .replace(/<script id="check-dark-mode">.*?<\/script>/s, `<script src="${BASE}first.js"></script>`)
      .replace(/<script id="check-mac-os">.*?<\/script>/s, '')
      .replace(/(<[^<>]*) style="[^"]*"/g, '$1'),
})
