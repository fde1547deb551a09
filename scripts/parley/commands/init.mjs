/** `parley init`: all that a chat over documents takes, in one step. What is there already is left as it is. */
import { EXIT, Failure } from '../failure.mjs'
import { articleFields } from '../import/schema.mjs'

const HISTORY = [
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
 * Makes what is missing of a chat over documents.
 * @param {import('../server.mjs').Server} server
 * @param {{ name: string, model: string, apiKey?: string, embedding: string, origin?: string[] }} options
 *   `apiKey`: the model provider's; `origin`: origins whose pages may use the page's key
 * @param {Say} say
 * @returns {Promise<Record<string, unknown>>} what was made; the page's key and a snippet with it where the key is new
 * @throws Failure
 */
export async function init(server, { name, embedding, origin = [], ...options }, say) {
  requireName(name)
  /** @type {string[]} */
  const made = []
  const ensure = ensuring(server, made, say)
  await ensure(`collection ${name}`, `/collections/${name}`, () =>
    server.call('POST', '/collections', { body: { name, fields: articleFields(embedding) } }),
  )
  await makeAssistant(server, { ...options, name, collection: name }, ensure)
  const key = await makePageKey(server, name, origin, say)
  if (key === undefined) return { name, made }
  return { name, made: [...made, 'page key'], page_key: key, snippet: snippet(server.url, name, key) }
}

/**
 * Makes an assistant for a collection, with its model and history, unless there is one.
 * @param {import('../server.mjs').Server} server
 * @param {{ name: string, collection: string, model: string, apiKey?: string, titleField?: string }} options `titleField`: of
 *   sources
 * @param {Ensure} [ensure]
 * @throws Failure
 */
export async function makeAssistant(
  server,
  { name, collection, model, apiKey, titleField = 'heading' },
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
      },
    }),
  )
}

/** @typedef {(what: string, path: string, make: () => Promise<unknown>) => Promise<void>} Ensure */

/** @param {import('../server.mjs').Server} server @param {string[]} made @param {Say} say @returns {Ensure} */
const ensuring = (server, made, say) => async (what, path, make) => {
  if (await server.find(path)) return say(`  is there  ${what}`)
  await make()
  made.push(what)
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
 */
export const snippet = (url, name, key) => `<script type="module" src="${url}/widget/parley-chat.js"></script>
<parley-chat assistant="${name}" key="${key}"></parley-chat>`
