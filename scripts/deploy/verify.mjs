/** Whether a deployment works: its health, and one real question from the import to the answer. */
import { ask } from '../parley/commands/ask.mjs'
import { makeAssistant } from '../parley/commands/init.mjs'
import { Server } from '../parley/server.mjs'
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

/** Of the collection, the model and the assistant of the trial question. */
const NAME = 'parley-deploy-check'

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
 * @param {Server} server
 * @param {string} model such as `cloudflare/@cf/...`
 * @throws Error with what the server answered
 */
async function tryOut(server, model) {
  const clear = async () => {
    const left = [
      ...[`/assistants/${NAME}`, `/conversations/models/${NAME}`],
      ...[`/collections/${NAME}`, `/collections/${NAME}_history`],
    ]
    for (const path of left) await server.call('DELETE', path).catch(() => undefined)
  }
  await clear() // what a run that was cut off left behind
  try {
    const embed = { from: ['text'], model_config: { model_name: 'ts/all-MiniLM-L12-v2' } }
    const fields = [
      { name: 'text', type: 'string' },
      { name: 'embedding', type: 'float[]', embed },
    ]
    await server.call('POST', '/collections', { body: { name: NAME, fields } })
    for (const body of DOCUMENTS) await server.call('POST', `/collections/${NAME}/documents`, { body })
    await makeAssistant(server, { name: NAME, collection: NAME, model, titleField: 'text' })
    const turn = await ask(server, 'Who guards the lighthouse of Skarv?', { assistant: NAME, json: true })
    await server.call('DELETE', `/conversations/${turn.conversation_id}`)
    return turn
  } finally {
    await clear()
  }
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
    const server = new Server({ url, key })
    const loaded = sample ? `${await loadSample(url, key, model)}\n` : ''
    const { question, answer } = sample
      ? await ask(server, 'How do I create a conversation model?', {
          collection: 'docs',
          model: 'docs',
          json: true,
        })
      : await tryOut(server, model)
    return `${loaded}  asked     ${question}\n  answered  ${answer.replace(/\s+/g, ' ').slice(0, ANSWER_LENGTH)}`
  } catch (error) {
    // What the command line says of a key, a deployment says in its own words.
    const why = String(error instanceof Error ? error.message : error).replace(
      / Name another one with --key.*/,
      '',
    )
    return `It is deployed and healthy, but the trial question failed: ${why}
Look at what it logs (npx wrangler tail), whether the key in ADMIN_API_KEY is the deployment's own, and whether
Workers AI still has the model: npm run deploy -- --model cloudflare/@cf/...`
  }
}
