/** The page on /document#COLLECTION/ID: one document, for whoever holds a key that may search it. */
import { decoded } from './address.js'
import { AskError, call } from './call.js'
import { storedKey, storeKey } from './key.js'
import { blocks } from './markdown.js'
import { element, titlesOf } from './render.js'

/** @template {HTMLElement} T @param {string} id @returns {T} */
const byId = (id) => /** @type {T} */ (document.getElementById(id))

/** @type {HTMLInputElement} */ const keyBox = byId('key')

/** @returns {Promise<Record<string, unknown> | undefined>} the document that the address names */
async function find() {
  const [, collection, id] = /^#([^/]+)\/(.+)$/.exec(location.hash)?.map(decoded) ?? []
  if (collection === undefined || id === undefined) return undefined
  const search = { collection, q: '*', filter_by: `id:=\`${id}\``, exclude_fields: 'embedding' }
  const response = await call('/multi_search', storedKey(), {
    method: 'POST',
    body: JSON.stringify({ searches: [search] }),
  })
  const { results } = await response.json()
  const [{ hits = [] }] = results
  return hits[0]?.document
}

async function show() {
  const article = byId('document')
  byId('key-form').hidden = true
  try {
    const found = await find()
    if (found === undefined) throw new AskError('There is no such document.')
    const { title, place, body } = titlesOf(found)
    document.title = place || title
    article.replaceChildren(
      element('p', { class: 'note' }, place === '' ? '' : title),
      element('h2', {}, place || title),
      ...blocks(body),
    )
  } catch (error) {
    const { message, status } = /** @type {AskError} */ (error)
    if (status === 401) {
      byId('key-form').hidden = false
      article.replaceChildren(element('p', {}, 'This document can be read with an API key.'))
    } else article.replaceChildren(element('p', { class: 'error', role: 'alert' }, message))
  }
}

byId('key-form').addEventListener('submit', (event) => {
  event.preventDefault()
  storeKey(keyBox.value.trim())
  show()
})
addEventListener('hashchange', show)
show()
