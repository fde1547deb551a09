/** `parley ask` and `parley search`. */

import { createParser } from 'eventsource-parser'
import { PAGE } from '../import/schema.mjs'
import { COMMAND } from '../progress.mjs'
import { EXIT, Failure, refusal } from '../server.mjs'
import { DEFAULT_NAME } from './init.mjs'

/**
 * @typedef {object} AskOptions
 * @property {string} [assistant]
 * @property {string} [collection]
 * @property {string} [model]
 * @property {string} [conversation]
 * @property {boolean} [asPage] whether an assistant is asked as its pages ask it: with its prompt, and labels in the answer's text
 * @property {boolean} json
 */

/**
 * Asks a question and writes the answer as it comes.
 * @param {import('../server.mjs').Server} server
 * @param {string} question
 * @param {AskOptions} options
 * @param {(text: string) => void} write
 * @returns {Promise<Record<string, any>>} the turn
 * @throws Failure
 */
export async function ask(server, question, options, write = () => {}) {
  const { path, asked } = await target(server, options)
  const response = await server.send('POST', path, {
    // Repeated by `send`, it joins its turn; asked anew, it is no copy of the answer of a moment ago.
    headers: { accept: 'text/event-stream', 'idempotency-key': crypto.randomUUID() },
    body: {
      question,
      ...asked,
      ...(options.conversation !== undefined && { conversation_id: options.conversation }),
    },
  })
  if (!response.ok) throw await refusal(response, `POST ${path}`)
  /** @type {Record<string, any>} */
  const turn = { question, citations: [] }
  /** @type {Failure | undefined} */
  let failure
  const parser = createParser({
    onEvent({ event, data }) {
      const body = JSON.parse(data)
      if (body.conversation_id !== undefined) turn.conversation_id = body.conversation_id
      if (event === 'question' && body.standalone !== undefined) turn.standalone = body.standalone
      else if (event === 'retrieval') {
        turn.replies = body.replies
        turn.sources = body.sources
      } else if (event === 'delta') write(body.text)
      else if (event === 'citation') turn.citations.push(body)
      else if (event === 'usage') Object.assign(turn, body)
      else if (event === 'done') Object.assign(turn, body)
      else if (event === 'error') failure = new Failure(EXIT.rejected, body.message)
    },
  })
  for await (const text of (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream()))
    parser.feed(text)
  if (failure) throw failure
  if (turn.answer === undefined) throw new Failure(EXIT.unreachable, 'The answer broke off. Ask again.')
  return turn
}

/**
 * What is asked: an assistant, or the searches and the model that were named in the place of its own.
 * @param {import('../server.mjs').Server} server
 * @param {AskOptions} options
 */
async function target(server, { assistant: named, collection, model, asPage }) {
  const path = '/conversations'
  if (collection !== undefined && model !== undefined)
    return { path, asked: { collections: [collection], model } }
  const names = named === undefined ? [DEFAULT_NAME, 'default'] : [named]
  let assistant
  for (const name of names) assistant ??= await server.find(`/assistants/${encodeURIComponent(name)}`)
  if (!assistant) {
    throw new Failure(
      EXIT.usage,
      `There is no assistant ${names[0]}. \`${COMMAND} init --name ${names[0]}\` makes one.`,
    )
  }
  if (asPage && collection === undefined && model === undefined)
    return { path: `/a/${encodeURIComponent(assistant.name)}${path}`, asked: {} }
  const { collections, searches } = assistant
  const found =
    collection !== undefined ? { collections: [collection] } : searches ? { searches } : { collections }
  return { path, asked: { ...found, model: model ?? assistant.model } }
}

/**
 * The documents that an answer cites, as lines to read. One without an address is read on the server's page.
 * @param {Record<string, any>} turn
 * @param {string} server its address
 * @returns {string[]}
 */
export function sourceLines({ replies = [], sources = [], citations }, server) {
  const cited = new Set(citations.map((/** @type {any} */ each) => `${each.collection}/${each.document_id}`))
  const found = new Map()
  for (const reply of replies) {
    for (const { document } of reply.result?.hits ?? []) found.set(document.id, document)
  }
  const shown = sources.filter((/** @type {any} */ each) =>
    cited.has(`${each.collection}/${each.document_id}`),
  )
  return shown.map((/** @type {any} */ { collection, document_id: id }, /** @type {number} */ at) => {
    const document = found.get(id) ?? {}
    const { url = '' } = document
    const name = encodeURIComponent(id)
    // Earlier imports gave documents the page of the server that took them.
    const isPage = url.includes('/document#') && url.endsWith(`/${name}`)
    const address =
      url === '' || isPage ? `${server}/document#${encodeURIComponent(collection)}/${name}` : url
    return `[${at + 1}] ${nameOf({ ...document, id })}  ${address}`
  })
}

/**
 * What a document is called: a passage by the headings that lead to it.
 * @param {Record<string, any>} document
 */
export const nameOf = ({ id, title, heading }) =>
  (title && heading?.startsWith(title) ? heading : [title, heading].filter(Boolean).join(' > ')) || id

/**
 * Searches a collection with all that it has.
 * @param {import('../server.mjs').Server} server
 * @param {string} words
 * @param {{ collection: string, filter?: string, limit: number, byPage: boolean }} options `byPage`: one passage of each page
 * @returns {Promise<any>} Typesense's reply
 * @throws Failure
 */
export async function search(server, words, { collection, filter, limit, byPage }) {
  const { fields } = await server.call('GET', `/collections/${encodeURIComponent(collection)}`)
  const searched = fields.filter(
    (/** @type {any} */ { name, type, index, embed }) =>
      embed || (/^string(\[\])?$/.test(type) && index !== false && !name.startsWith('parley_')),
  )
  const query = new URLSearchParams({
    q: words,
    query_by: searched.map((/** @type {{ name: string }} */ { name }) => name).join(','),
    exclude_fields: searched
      .filter((/** @type {any} */ { embed }) => embed)
      .map((/** @type {any} */ { name }) => name)
      .join(','),
    per_page: String(limit),
    ...(byPage &&
      fields.some((/** @type {any} */ { name }) => name === PAGE) && { group_by: PAGE, group_limit: '1' }),
    ...(filter !== undefined && { filter_by: filter }),
  })
  return server.call('GET', `/collections/${encodeURIComponent(collection)}/documents/search?${query}`)
}
