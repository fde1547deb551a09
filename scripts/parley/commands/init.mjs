/** `parley init`: all that a chat over documents takes, in one step. What is there already is left as it is. */

import { articleFields, collectionOf } from '../import/schema.mjs'
import { EXIT, Failure, reasonOf } from '../server.mjs'

/** The fields of a collection of conversations. */
export const HISTORY = [
  { name: 'conversation_id', type: 'string' },
  { name: 'model_id', type: 'string' },
  { name: 'timestamp', type: 'int32' },
  { name: 'role', type: 'string', index: false },
  { name: 'message', type: 'string', index: false },
]

/** Days that a conversation is kept. */
const TTL_DAYS = 7
const MAX_BYTES = 16_384
const MAX_TOKENS = 1_024

/** The collection, model and assistant of somebody who names none. The sample of `npm start` is called `docs`. */
export const DEFAULT_NAME = 'content'

/** @typedef {(line: string) => void} Say */

/**
 * @typedef {object} InitOptions
 * @property {string} [name] what all of it is called; absent: as the collection
 * @property {string} [collection] that the assistant answers from; absent: the one of its name, or the only one with documents
 * @property {string} model the language model
 * @property {boolean} [isModelChosen] whether somebody named it
 * @property {string} [modelUrl] of a server that speaks OpenAI's API
 * @property {string} [apiKey] the model provider's
 * @property {string} embedding
 * @property {string[]} [origin] origins whose pages may use the page's key
 */

/**
 * Makes what is missing of a chat over documents. If a step fails, what was made before it is removed.
 * @param {import('../server.mjs').Server} server
 * @param {InitOptions} options
 * @param {Say} say
 * @returns {Promise<Record<string, unknown>>} what was made; the page's key and a snippet with it where the key is new
 * @throws Failure
 */
export async function init(server, { embedding, origin = [], ...options }, say) {
  const collection = options.collection ?? (await chosenCollection(server, options.name))
  const name = options.name ?? (await assistantNameFor(server, collection))
  requireName(name)
  const model = await chosenModel(options)
  /** @type {{ what: string, path: string }[]} */
  const made = []
  const ensure = ensuring(server, made, say)
  try {
    if (
      options.collection !== undefined &&
      !(await server.find(`/collections/${encodeURIComponent(collection)}`))
    )
      throw new Failure(EXIT.usage, `There is no collection ${collection}. ${await named(server)}`)
    await ensure(`collection ${collection}`, `/collections/${encodeURIComponent(collection)}`, () =>
      server.call('POST', '/collections', { body: collectionOf(collection, articleFields(embedding)) }),
    )
    await makeAssistant(server, { ...model, name, collection }, ensure)
    const { num_documents: count } = await server.call(
      'GET',
      `/collections/${encodeURIComponent(collection)}`,
    )
    if (count === 0)
      say(
        `Collection ${collection} is empty: the chat can answer nothing until you import. ${await named(server)}`.trim(),
      )
    const key = await makePageKey(server, name, origin, say)
    const all = made.map(({ what }) => what)
    const shown = { name, collection, documents: count }
    if (key === undefined) return { ...shown, made: all }
    return { ...shown, made: [...all, 'page key'], page_key: key, snippet: snippet(server.url, name, key) }
  } catch (error) {
    for (const { what, path } of made.reverse()) {
      const response = await server.send('DELETE', path).catch(() => undefined)
      await response?.body?.cancel()
      say(response?.ok ? `  removed   ${what}` : `  left      ${what}: it could not be removed`)
    }
    throw error
  }
}

/**
 * Collections that somebody imported, and no history or sample.
 * @param {import('../server.mjs').Server} server
 * @returns {Promise<{ name: string, num_documents: number }[]>}
 */
async function contentCollections(server) {
  const [all, models] = [
    await server.call('GET', '/collections'),
    await server.call('GET', '/conversations/models'),
  ]
  const histories = new Set(models.map((/** @type {any} */ each) => each.history_collection))
  return all.filter(
    (/** @type {any} */ { name, metadata, fields }) =>
      metadata?.sample === undefined &&
      !histories.has(name) &&
      !fields.some((/** @type {any} */ field) => field.name === 'conversation_id'),
  )
}

/** @param {{ name: string, num_documents: number }[]} collections */
const listed = (collections) =>
  collections
    .map(({ name, num_documents: count }) => `${name} (${count} ${count === 1 ? 'document' : 'documents'})`)
    .join(', ')

/** The collections that there are, in a sentence; '' for none. @param {import('../server.mjs').Server} server */
async function named(server) {
  const others = (await contentCollections(server)).filter((each) => each.num_documents > 0)
  return others.length === 0 ? '' : `With --collection it answers from one that is there: ${listed(others)}.`
}

/**
 * @param {import('../server.mjs').Server} server
 * @param {string} [name] the assistant's, where one was given
 * @returns {Promise<string>} the one of this name, else the only one with documents, else one to be made
 * @throws Failure where there are several, and no name
 */
async function chosenCollection(server, name) {
  if (name !== undefined && (await server.find(`/collections/${encodeURIComponent(name)}`))) return name
  const all = await contentCollections(server)
  const filled = all.filter((each) => each.num_documents > 0)
  const choices = filled.length > 0 || name !== undefined ? filled : all
  const [only] = choices
  if (only && choices.length === 1) return only.name
  if (name !== undefined) return name
  if (!only || choices.some((each) => each.name === DEFAULT_NAME)) return DEFAULT_NAME
  throw new Failure(
    EXIT.usage,
    `Which collection is the chat to answer from? Name one with --collection: ${listed(choices)}.`,
  )
}

/** How long a server may take to list its models, in milliseconds. */
const LISTING_MS = 10_000

/**
 * The language model, at the address of its server where one is named: Ollama, LM Studio, vLLM and others speak OpenAI's API.
 * @param {Pick<InitOptions, 'model' | 'isModelChosen' | 'modelUrl' | 'apiKey'>} options
 * @returns {Promise<{ model: string, apiKey?: string, address?: Record<string, string> }>}
 * @throws Failure where the server does not answer, or offers several models and none was named
 */
async function chosenModel({ model, isModelChosen, modelUrl, apiKey }) {
  const key = apiKey === undefined ? {} : { apiKey }
  if (modelUrl === undefined) return { model, ...key }
  if (!/^https?:/.test(modelUrl) || !URL.canParse(modelUrl))
    throw new Failure(
      EXIT.usage,
      `--model-url takes an address such as http://localhost:11434, not "${modelUrl}".`,
    )
  const base = modelUrl.replace(/\/+$/, '').replace(/\/v1(?:\/chat\/completions)?$/, '')
  // Servers of one's own take no key, and a model of this namespace needs none.
  const kind = apiKey === undefined ? 'vllm' : 'openai'
  const as = (/** @type {string} */ id) => ({
    model: `${kind}/${id.startsWith(`${kind}/`) ? id.slice(kind.length + 1) : id}`,
    ...key,
    address: { [`${kind}_url`]: base },
  })
  if (isModelChosen) return as(model)
  const offered = await offeredBy(base, apiKey)
  const [only] = offered
  if (only !== undefined && offered.length === 1) return as(only)
  throw new Failure(
    EXIT.usage,
    only === undefined
      ? `${base} offers no model. Load one there, or name it with --model.`
      : `${base} offers several models. Name one with --model: ${offered.join(', ')}.`,
  )
}

/** @param {string} base @param {string} [apiKey] @returns {Promise<string[]>} @throws Failure */
async function offeredBy(base, apiKey) {
  try {
    const response = await fetch(`${base}/v1/models`, {
      signal: AbortSignal.timeout(LISTING_MS),
      ...(apiKey !== undefined && { headers: { authorization: `Bearer ${apiKey}` } }),
    })
    if (!response.ok) throw new Error(`it answered with ${response.status}`)
    const { data } = await response.json()
    return data.map((/** @type {{ id: string }} */ { id }) => id)
  } catch (error) {
    throw new Failure(
      EXIT.unreachable,
      `The models of ${base} could not be listed (${reasonOf(error)}). Start that server, or name another with --model-url.`,
    )
  }
}

/**
 * Makes an assistant for a collection, with its model and history, unless there is one.
 * @param {import('../server.mjs').Server} server
 * @param {{ name: string, collection: string, model: string, apiKey?: string, address?: Record<string, string>, titleField?: string, questions?: string[] }} options
 *   `address`: the model's property with its server's address; `titleField`: of sources; `questions`: to begin with
 * @param {Ensure} [ensure]
 * @throws Failure
 */
export async function makeAssistant(
  server,
  { name, collection, model, apiKey, address = {}, titleField = 'heading', questions = [] },
  ensure = ensuring(server, [], () => {}),
) {
  requireName(name)
  const history = `${name}_history`
  await ensure(`collection ${history}, for conversations`, `/collections/${history}`, () =>
    server.call('POST', '/collections', { body: { name: history, fields: HISTORY } }),
  )
  await ensure(`model ${name} (${model})`, `/conversations/models/${name}`, () =>
    server.call('POST', '/conversations/models', {
      body: {
        id: name,
        model_name: model,
        ...(apiKey !== undefined && { api_key: apiKey }),
        ...address,
        history_collection: history,
        max_bytes: MAX_BYTES,
        max_tokens: MAX_TOKENS,
        ttl: TTL_DAYS * 86_400,
      },
    }),
  )
  await ensure(`assistant ${name}`, `/assistants/${name}`, () =>
    server.call('PUT', `/assistants/${name}`, {
      body: {
        model: name,
        collections: [collection],
        title_field: titleField,
        url_field: 'url',
        category_field: 'section',
        followups: true,
        ...(questions.length > 0 && { questions }),
      },
    }),
  )
}

/** @typedef {(what: string, path: string, make: () => Promise<unknown>) => Promise<void>} Ensure */

/** @param {import('../server.mjs').Server} server @param {{ what: string, path: string }[]} made @param {Say} say @returns {Ensure} */
const ensuring = (server, made, say) => async (what, path, make) => {
  if (await server.find(path)) return say(`  is there  ${what}`)
  await make()
  made.push({ what, path })
  say(`  made      ${what}`)
}

const LONGEST_NAME = 64

/** Whether a name can be an assistant's. @param {string} name */
export const isAssistantName = (name) => /^[a-z0-9-]{1,64}$/.test(name)

/**
 * A name for the assistant of a collection: the collection's own, else that one in small letters, with hyphens for what a name
 * cannot have, and with a number if it belongs to an assistant of other collections.
 * @param {import('../server.mjs').Server} server
 * @param {string} collection
 * @returns {Promise<string>}
 * @throws Failure
 */
export async function assistantNameFor(server, collection) {
  if (isAssistantName(collection)) return collection
  const words = collection
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-+|-+$/g, '')
  for (let number = 1; ; number++) {
    const end = number === 1 ? '' : `-${number}`
    const name = (words || DEFAULT_NAME).slice(0, LONGEST_NAME - end.length) + end
    const present = await server.find(`/assistants/${name}`)
    const own = [...(present?.collections ?? []), ...(present?.searches ?? [])]
    const isIts = own.some((/** @type {any} */ each) => (each.collection ?? each) === collection)
    if (!present || isIts) return name
  }
}

/** @param {string} name @throws Failure */
function requireName(name) {
  if (isAssistantName(name)) return
  throw new Failure(
    EXIT.usage,
    `A name has 1 to 64 lower-case letters, digits and hyphens: "${name}" does not.`,
  )
}

/**
 * @param {import('../server.mjs').Server} server
 * @param {string} name
 * @param {string[]} origin
 * @param {Say} say
 * @returns {Promise<string | undefined>} undefined where there is one, whose value nobody can be told
 */
export async function makePageKey(server, name, origin, say) {
  const description = `page of ${name}`
  const { keys } = await server.call('GET', '/keys')
  const present = keys.find((/** @type {{ description: string }} */ key) => key.description === description)
  if (present) {
    say(`  is there  a key for pages (${present.value_prefix}..., shown when it was made)`)
    return undefined
  }
  const { value } = await server.call('POST', '/keys', {
    body: {
      description,
      actions: ['documents:search'],
      collections: ['*'],
      limits: { assistant: name, ...(origin.length > 0 && { allowed_origins: origin }) },
    },
  })
  say(`  made      a key for pages: ${value}  (not shown again)`)
  return value
}

/**
 * What is pasted into a page: the chat widget (docs/widget.md).
 * @param {string} url
 * @param {string} name
 * @param {string} key
 * @param {{ mode?: string, heading?: string, accent?: string }} [looks] absent: its own
 */
export function snippet(url, name, key, { mode, heading, accent } = {}) {
  const style = accent && `--parley-accent: ${accent}`
  const attributes = Object.entries({ assistant: name, key, mode, heading, style })
    .filter(([, value]) => value !== undefined)
    .map(([attribute, value]) => `${attribute}="${escaped(String(value))}"`)
  return `<script type="module" src="${url}/widget/parley-chat.js"></script>
<parley-chat ${attributes.join(' ')}></parley-chat>`
}

/** @param {string} text */
const escaped = (text) => text.replace(/&/g, '&amp;').replace(/"/g, '&quot;').replace(/</g, '&lt;')
