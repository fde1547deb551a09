/** Whether a deployment works: its health, and one real question from the import to the answer. */
import { client } from '../own-server.mjs'
import { HISTORY } from '../parley/commands/init.mjs'
import { loadSample } from '../sample.mjs'

/**
 * @typedef {object} Outcome
 * @property {string | undefined} url
 * @property {string | undefined} key the admin key, when this run knows it
 * @property {boolean} given whether that key came from the environment
 * @property {string | undefined} [claim] where its temporary account is claimed
 * @property {string[]} made names of the secrets that this run set and nobody had given it
 * @property {string} file where those are kept
 * @property {boolean} logged whether the output goes into a build's log, which more people read than may hold a key
 */

/** @param {Outcome} outcome */
function keyOf({ key, given, made, file, logged }) {
  if (given) return 'the one in ADMIN_API_KEY'
  if (key === undefined) return 'the ADMIN_API_KEY that was set before'
  if (!made.includes('ADMIN_API_KEY')) return `as before; kept in ${file}`
  if (logged)
    return 'was made, and is not shown in a log. Set your own: npx wrangler secret put ADMIN_API_KEY'
  return `${key}  (not shown again; kept in ${file})`
}

/**
 * Where the deployment answers, and with which key.
 * @param {Outcome} outcome
 * @returns {string}
 */
export function report(outcome) {
  const { url, claim, made, file, logged } = outcome
  const lines = [
    `Parley is deployed${url === undefined ? '' : ` at ${url}`}`,
    `  key       ${keyOf(outcome)}`,
  ]
  if (made.includes('ENCRYPTION_KEY') && !logged) {
    lines.push(
      `  sealing   ENCRYPTION_KEY was made and is kept in ${file}.`,
      '            Back it up: the credentials of providers that it seals cannot be read without it.',
    )
  }
  if (claim !== undefined) {
    lines.push(
      `  claim     ${logged ? 'not shown in a log: whoever opens the address owns the account' : claim}`,
      '            Cloudflare deletes all of it within 60 minutes unless you open that address. Keep it secret.',
    )
  }
  return lines.join('\n')
}

const HEALTHY_MS = 120_000
const ANSWER_LENGTH = 300

const NAME = 'parley_deploy_check'
const CONVERSATIONS = `${NAME}_history`

const DOCUMENTS = [
  {
    id: '1',
    text: 'The lighthouse of Skarv is guarded by a grey goose named Ada, who wakes the keeper in fog.',
  },
  { id: '2', text: 'The harbour of Skarv opens at six; boats over twenty metres need a pilot.' },
]

/**
 * Waits until a deployment answers. A first one can take a minute to be known to the name servers.
 * @param {string} url
 * @param {number} ms how long at most
 * @param {number} pause between two tries, in milliseconds
 * @returns {Promise<string | undefined>} what went wrong last, or undefined once it is healthy
 */
export async function unhealthy(url, ms, pause = 2_000) {
  const deadline = Date.now() + ms
  for (;;) {
    const problem = await fetch(`${url}/health`, { signal: AbortSignal.timeout(10_000) }).then(
      async (response) =>
        response.ok ? undefined : `${response.status} ${(await response.text()).slice(0, 200)}`,
      (error) => String(error.cause ?? error),
    )
    if (problem === undefined || Date.now() > deadline) return problem
    await new Promise((resolve) => setTimeout(resolve, pause))
  }
}

/**
 * Imports two documents, asks about them, and removes all of it.
 * @param {string} url
 * @param {string} key
 * @param {string} model such as `cloudflare/@cf/...`
 * @returns {Promise<{ question: string, answer: string }>}
 * @throws Error with what the server answered
 */
async function tryOut(url, key, model) {
  const call = client(url, key)
  const clear = async () => {
    const left = [`/conversations/models/${NAME}`, `/collections/${NAME}`, `/collections/${CONVERSATIONS}`]
    for (const path of left) await call('DELETE', path).catch(() => undefined)
  }
  await clear() // what a run that was cut off left behind
  try {
    const embed = { from: ['text'], model_config: { model_name: 'ts/all-MiniLM-L12-v2' } }
    await call('POST', '/collections', {
      name: NAME,
      fields: [
        { name: 'text', type: 'string' },
        { name: 'embedding', type: 'float[]', embed },
      ],
    })
    for (const document of DOCUMENTS) await call('POST', `/collections/${NAME}/documents`, document)
    await call('POST', '/collections', { name: CONVERSATIONS, fields: HISTORY })
    await call('POST', '/conversations/models', {
      id: NAME,
      model_name: model,
      history_collection: CONVERSATIONS,
      max_bytes: 4096,
      // Many models of Workers AI end at 256 tokens where nothing is set.
      max_tokens: 1024,
      ttl: 600,
    })
    return await ask(call, NAME, NAME, 'text', 'Who guards the lighthouse of Skarv?')
  } finally {
    await clear()
  }
}

/**
 * Asks about the sample.
 * @param {string} url
 * @param {string} key
 */
const askSample = (url, key) =>
  ask(client(url, key), 'docs', 'docs', 'title,heading,text', 'How do I create a conversation model?')

/**
 * @param {ReturnType<typeof client>} call
 * @param {string} collection
 * @param {string} model
 * @param {string} fields
 * @param {string} question
 */
async function ask(call, collection, model, fields, question) {
  const parameters = new URLSearchParams({
    q: question,
    query_by: `embedding,${fields}`,
    exclude_fields: 'embedding',
    conversation: 'true',
    conversation_model_id: model,
  })
  const { conversation } = await call('GET', `/collections/${collection}/documents/search?${parameters}`)
  if (!conversation?.answer)
    throw new Error(`The search was answered without an answer: ${JSON.stringify(conversation)}`)
  return { question, answer: String(conversation.answer) }
}

/**
 * Tries a deployment out. Nothing that goes wrong here is an error: the deployment stands.
 * @param {string | undefined} url
 * @param {string | undefined} key
 * @param {{ sample: boolean, model: string }} wish
 * @param {number} ms how long to wait for its health
 * @returns {Promise<string>} what came of it, and what to look at
 */
export async function verify(url, key, { sample, model }, ms = HEALTHY_MS) {
  if (url === undefined)
    return 'It has no address of its own: name one to have it tried out, with --url https://...'
  const problem = await unhealthy(url, ms)
  if (problem !== undefined) {
    return `It is deployed, and does not answer at ${url} yet: ${problem}
A new workers.dev address can take some minutes. See what it logs: npx wrangler tail`
  }
  if (key === undefined)
    return 'It is healthy. To have it asked a question as well, set ADMIN_API_KEY to its key.'
  try {
    const loaded = sample ? `${await loadSample(url, key, model)}\n` : ''
    const { question, answer } = sample ? await askSample(url, key) : await tryOut(url, key, model)
    return `${loaded}  asked     ${question}\n  answered  ${answer.replace(/\s+/g, ' ').slice(0, ANSWER_LENGTH)}`
  } catch (error) {
    return `It is deployed and healthy, but the trial question failed: ${error instanceof Error ? error.message : error}
Look at what it logs (npx wrangler tail), whether the key in ADMIN_API_KEY is the deployment's own, and whether
Workers AI still has the model: npm run deploy -- --model cloudflare/@cf/...`
  }
}
