/** The frame around each page of the documentation. */
import { escaped } from './markdown.mjs'

/** @typedef {import('./markdown.mjs').Heading} Heading */
/** @typedef {{ name: string, label: string, summary?: string }} Entry */
/** @typedef {{ title: string, about: string, entries: Entry[] }} Group */

const ICONS = {
  search: '<circle cx="11" cy="11" r="6.5"/><path d="m16 16 4.5 4.5"/>',
  menu: '<path d="M4 7h16M4 12h16M4 17h16"/>',
  chat: '<path d="M4 5h16v11H9l-5 4z"/>',
  theme: '<circle cx="12" cy="12" r="8"/><path d="M12 4a8 8 0 0 1 0 16z" fill="currentColor"/>',
}

/** @param {keyof typeof ICONS} name */
const icon = (name) => `<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">${ICONS[name]}</svg>`

/** @param {string} name of a page */
export const address = (name) => (name === '' ? '/docs/' : `/docs/${name}`)

/** @param {Group[]} groups @param {string} current */
const navigation = (groups, current) =>
  groups
    .map(({ title, entries }) => {
      const items = entries.map(({ name, label }) => {
        const here = name === current ? ' aria-current="page"' : ''
        return `<li><a href="${address(name)}"${here}>${escaped(label)}</a></li>`
      })
      return `<h2>${escaped(title)}</h2><ul>${items.join('')}</ul>`
    })
    .join('\n')

/** @param {Heading[]} headings */
function contents(headings) {
  const listed = headings.filter(({ depth }) => depth === 2 || depth === 3)
  if (listed.length < 2) return ''
  const items = listed.map(
    ({ depth, id, text }) => `<li class="depth-${depth}"><a href="#${id}">${text}</a></li>`,
  )
  return `<nav class="contents" aria-labelledby="contents-title"><h2 id="contents-title">On this page</h2><ul>${items.join('')}</ul></nav>`
}

/** @param {Entry | undefined} entry @param {'prev' | 'next'} rel */
const neighbour = (entry, rel) =>
  entry === undefined
    ? ''
    : `<a rel="${rel}" href="${address(entry.name)}"><span>${rel === 'prev' ? 'Previous' : 'Next'}</span>${escaped(entry.label)}</a>`

/** @param {string} title @param {Heading[]} headings */
function ask(title, headings) {
  const questions = headings
    .filter(({ depth, text }) => depth === 2 && text.endsWith('?'))
    .slice(0, 3)
    .map(({ text }) => `<li><button type="button" data-ask>${text}</button></li>`)
  const list =
    questions.length === 0 ? '' : `<ul aria-label="Questions to begin with">${questions.join('')}</ul>`
  return `<section class="ask" aria-labelledby="ask-title">
<h2 id="ask-title">Ask about this page</h2>
<form data-ask-form data-page="${escaped(title)}">
<label class="hidden" for="ask-question">Your question</label>
<input id="ask-question" name="question" autocomplete="off" maxlength="2000" placeholder="Ask a question">
<button type="submit">${icon('chat')}Ask</button>
</form>
${list}
<p class="note" data-ask-note role="status"></p>
</section>`
}

/**
 * A whole page.
 * @param {object} page
 * @param {string} page.name below /docs/; '' for the first page
 * @param {string} page.title
 * @param {string} page.summary for search engines
 * @param {string} page.body HTML
 * @param {Heading[]} page.headings
 * @param {Group[]} page.groups
 * @param {string} [page.group] title of the group it is in
 * @param {boolean} [page.markdown] whether its Markdown is there too
 * @param {string} [page.key] a page's key for searching and asking, lying open
 */
export function layout({ name, title, summary, body, headings, groups, group, markdown, key }) {
  const entries = groups.flatMap((each) => each.entries)
  const at = entries.findIndex((entry) => entry.name === name)
  const toc = contents(headings)
  const before = at < 0 ? '' : neighbour(entries[at - 1], 'prev')
  const after = neighbour(entries[at + 1], 'next')
  const source = markdown ? `<a href="${address(name)}.md">View as Markdown</a>` : ''
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(name === '' ? 'Parley documentation' : `${title} · Parley`)}</title>
<meta name="description" content="${escaped(summary)}">
<meta property="og:title" content="${escaped(title)}">
<meta property="og:description" content="${escaped(summary)}">
<meta property="og:type" content="article">
${key ? `<meta name="parley-key" content="${escaped(key)}">` : ''}
<link rel="icon" href="/icon.svg" type="image/svg+xml">
${at > 0 ? `<link rel="prev" href="${address(entries[at - 1]?.name ?? '')}">` : ''}
${entries[at + 1] ? `<link rel="next" href="${address(entries[at + 1]?.name ?? '')}">` : ''}
<link rel="stylesheet" href="/docs/site.css">
<script src="/docs/theme.js"></script>
<script type="module" src="/docs/site.js"></script>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header class="bar">
<button type="button" class="tool menu" popovertarget="menu" aria-label="Menu">${icon('menu')}</button>
<a class="brand" href="/docs/"><img src="/icon.svg" alt="" width="24" height="24"><span>Parley <em>docs</em></span></a>
<button type="button" class="search-open" data-search aria-haspopup="dialog">${icon('search')}<span>Search</span><kbd>Ctrl K</kbd></button>
<nav class="links" aria-label="Elsewhere"><a href="/docs/api">API</a><a href="/">Console</a></nav>
<button type="button" class="tool" data-theme-toggle aria-label="Light or dark">${icon('theme')}</button>
</header>
<div class="frame${name === '' ? ' home' : ''}">
<nav id="menu" class="side" popover aria-label="Documentation">${navigation(groups, name)}</nav>
<main id="content" tabindex="-1">
<article>
${group ? `<p class="group">${escaped(group)}</p>` : ''}
${body}
</article>
${name === '' ? '' : ask(title, headings)}
${before + after === '' ? '' : `<nav class="pager" aria-label="Pages before and after">${before}${after}</nav>`}
<footer class="foot">${source}<span>Parley, MIT licence</span></footer>
</main>
${toc}
</div>
<dialog id="search" class="search" aria-label="Search the documentation">
<div class="search-head">${icon('search')}
<input id="query" type="search" role="combobox" aria-expanded="false" aria-controls="hits" aria-autocomplete="list" aria-label="Search the documentation" placeholder="Search the documentation" autocomplete="off" spellcheck="false">
<button type="button" class="tool" data-search-close>Esc</button></div>
<p class="note" data-search-note role="status"></p>
<div id="hits" role="listbox" aria-label="Pages found"></div>
</dialog>
</body>
</html>
`.replace(/\n{2,}/g, '\n')
}
