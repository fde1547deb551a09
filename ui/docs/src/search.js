/** The search box: Parley's own search over the collection `docs`, or the headings alone where there is none. */
import { element } from '../../render.js'
import { pageKey } from './key.js'

const MOST = 12

/** @typedef {{ title: string, heading: string, url: string, snippet?: string }} Hit */

/** Why this server does not search, as a sentence for the reader. */
class NoSearch extends Error {}

/**
 * @param {string} query
 * @param {AbortSignal} signal
 * @returns {Promise<Hit[]>}
 * @throws NoSearch with a sentence that says why this server does not search
 */
async function ask(query, signal) {
  const key = pageKey()
  if (key === '') throw new NoSearch('Searching all text needs an API key: enter one in the console.')
  const parameters = new URLSearchParams({
    q: query,
    query_by: 'heading,title,text,embedding',
    query_by_weights: '4,3,1,1',
    include_fields: 'title,heading,url,text',
    highlight_fields: 'text',
    highlight_affix_num_tokens: '14',
    per_page: String(MOST),
  })
  const response = await fetch(`/collections/docs/documents/search?${parameters}`, {
    headers: { 'x-typesense-api-key': key },
    signal,
  }).catch((error) => {
    if (signal.aborted) throw error
    throw new NoSearch('Parley cannot be reached.')
  })
  if (response.status === 404) {
    throw new NoSearch('This server has no documentation to search: it was started without the sample.')
  }
  if (!response.ok) throw new NoSearch('This key may not search the documentation.')
  const { hits } = await response.json()
  return hits.map((/** @type {any} */ { document: found, highlights = [] }) => ({
    title: String(found.title ?? ''),
    heading: String(found.heading ?? ''),
    url: pathOf(found.url),
    snippet: String(highlights[0]?.snippet ?? found.text ?? ''),
  }))
}

/** The address on this site, whatever name the server was called by at the import. @param {unknown} url */
function pathOf(url) {
  try {
    const { pathname, hash } = new URL(String(url), location.origin)
    return pathname + hash
  } catch {
    return '/docs/'
  }
}

/** @type {Promise<Hit[]> | undefined} */
let headings

/** Headings that hold every word, those of a page's own title first. @param {string} query @returns {Promise<Hit[]>} */
async function match(query) {
  headings ??= fetch('/docs/headings.json').then((response) => response.json())
  const words = query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  const all = await headings
  return all
    .filter(({ title, heading }) => words.every((word) => `${title} ${heading}`.toLowerCase().includes(word)))
    .slice(0, MOST)
}

/** Text in which the server has marked words. Nothing but `<mark>` is taken as markup. @param {string} snippet */
function marked(snippet) {
  const plain = (/** @type {string} */ text) =>
    text.replace(/[`*|#]+|\]\([^)]*\)|\[/g, ' ').replace(/\s+/g, ' ')
  return snippet
    .slice(0, 400)
    .split(/<mark>(.*?)<\/mark>/)
    .map((part, index) => (index % 2 === 1 ? element('mark', {}, part) : plain(part)))
}

/** @param {Hit} hit @param {number} index */
function option({ title, heading, url, snippet }, index) {
  return element(
    'a',
    { role: 'option', id: `hit-${index}`, href: url, tabindex: '-1', 'aria-selected': 'false' },
    element('strong', {}, heading),
    ...(title === heading ? [] : [element('span', { class: 'from' }, title)]),
    ...(snippet ? [element('span', { class: 'snippet' }, ...marked(snippet))] : []),
  )
}

export function mountSearch() {
  const dialog = /** @type {HTMLDialogElement} */ (document.getElementById('search'))
  const field = /** @type {HTMLInputElement} */ (document.getElementById('query'))
  const list = /** @type {HTMLElement} */ (document.getElementById('hits'))
  const note = /** @type {HTMLElement} */ (dialog.querySelector('[data-search-note]'))
  let running = new AbortController()
  let at = -1

  const options = () => /** @type {HTMLAnchorElement[]} */ ([...list.children])
  const choose = (/** @type {number} */ index) => {
    at = index
    options().forEach((each, place) => {
      each.setAttribute('aria-selected', String(place === at))
      if (place === at) each.scrollIntoView({ block: 'nearest' })
    })
    if (at < 0) field.removeAttribute('aria-activedescendant')
    else field.setAttribute('aria-activedescendant', `hit-${at}`)
  }
  const show = (/** @type {Hit[]} */ hits, /** @type {string} */ said) => {
    list.replaceChildren(...hits.map(option))
    field.setAttribute('aria-expanded', String(hits.length > 0))
    note.textContent = said
    choose(hits.length > 0 ? 0 : -1)
  }
  const search = async () => {
    running.abort()
    running = new AbortController()
    const { signal } = running
    const query = field.value.trim()
    if (query === '') return show([], '')
    try {
      const hits = await ask(query, signal)
      if (!signal.aborted) show(hits, hits.length === 0 ? 'Nothing was found.' : '')
    } catch (error) {
      if (signal.aborted) return
      const hits = await match(query).catch(() => [])
      const why = error instanceof NoSearch ? error.message : 'The search failed.'
      if (!signal.aborted)
        show(hits, `${why} ${hits.length > 0 ? 'These headings match:' : 'No heading matches.'}`)
    }
  }
  const open = () => {
    if (dialog.open) return
    dialog.showModal()
    field.select()
  }

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let pause
  field.addEventListener('input', () => {
    clearTimeout(pause)
    pause = setTimeout(search, 90)
  })
  field.addEventListener('keydown', (event) => {
    const { length } = options()
    if (event.key === 'ArrowDown' && length > 0) choose((at + 1) % length)
    else if (event.key === 'ArrowUp' && length > 0) choose((at - 1 + length) % length)
    else if (event.key === 'Enter') options()[at]?.click()
    else return
    event.preventDefault()
  })
  list.addEventListener('click', () => dialog.close())
  dialog.addEventListener('click', (event) => {
    if (event.target === dialog) dialog.close()
  })
  dialog.querySelector('[data-search-close]')?.addEventListener('click', () => dialog.close())
  document.querySelector('[data-search]')?.addEventListener('click', open)
  addEventListener('keydown', (event) => {
    const { target, key } = event
    const typing = target instanceof HTMLElement && target.closest('input, textarea, select, parley-chat')
    if ((key === 'k' && (event.ctrlKey || event.metaKey)) || (key === '/' && !typing)) {
      event.preventDefault()
      open()
    }
  })
}
