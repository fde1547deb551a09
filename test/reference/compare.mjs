/** Asks a real OpenSearch and a Parley the same, and tells what differs. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startOwnServer } from '../../scripts/own-server.mjs'
import { root } from '../../scripts/wrangler.mjs'
import { answers } from './cases/answers.mjs'
import { documents } from './cases/documents.mjs'
import { indices } from './cases/indices.mjs'
import { memory } from './cases/memory.mjs'
import { models } from './cases/models.mjs'
import { queries } from './cases/queries.mjs'
import { REASONS } from './cases/reasons.mjs'
import { searches } from './cases/searches.mjs'
import { startReference, stopReference } from './nodes.mjs'
import { differences, normalise } from './normalise.mjs'
import { ask } from './request.mjs'
import { startModel } from './servers.mjs'

/**
 * One request, sent to both.
 * @typedef {object} Case
 * @property {string} name unique, as the table shows it
 * @property {string} method
 * @property {string} path `{{x}}` stands for what was saved as x, `{{model}}` for the host of the model
 * @property {unknown} [body] an object is sent as JSON, a list as ndjson, a text as it is
 * @property {Record<string, string>} [headers] over `content-type: application/json`
 * @property {boolean} [gzip] whether the body is compressed
 * @property {Record<string, string>} [save] variables to set, from the keys of the reply: `{ memory: 'memory_id' }`
 * @property {Record<string, unknown>} [until] keys that the reply is waited for to have, such as the state of a task
 * @property {string[]} [keep] keys whose values are compared although they usually differ, such as `_version`
 * @property {string[]} [loose] keys of which only the types are compared
 * @property {string} [why] the reason for its difference, one of REASONS
 */

const GROUPS = { indices, documents, queries, searches, memory, models, answers }
const DOCS = fileURLToPath(new URL('../../docs/opensearch.md', import.meta.url))
const BEGIN = '<!-- written by `npm run reference:opensearch -- compare` -->'
const END = '<!-- end -->'

/** Settings that let the reference call a model of this machine, on a busy one. */
const PREPARE = {
  persistent: {
    'plugins.ml_commons.connector.private_ip_enabled': true,
    'plugins.ml_commons.only_run_on_ml_node': false,
    'plugins.ml_commons.jvm_heap_memory_threshold': 100,
    'plugins.ml_commons.native_memory_threshold': 100,
    'plugins.ml_commons.trusted_connector_endpoints_regex': ['^http://127\\.0\\.0\\.1.*$'],
  },
}

/**
 * @param {string[]} only groups to ask for; none for all, whose outcome the documentation shows
 * @returns {Promise<number>} 1 where a difference has no reason, or a reason no difference; else 0
 */
export async function compare(only) {
  const model = await startModel()
  const { nodes, without } = await startReference()
  const url = /** @type {string} */ (nodes[0]?.url)
  const parley = await startOwnServer(['--no-sample']).catch((error) => {
    stopReference()
    model.stop()
    throw error
  })
  try {
    if (without !== undefined) console.log(`The reference has no ML plugin: ${without}`)
    const prepared = await ask(url, {
      name: '',
      method: 'PUT',
      path: '/_cluster/settings',
      body: PREPARE,
    })
    const hasMl = prepared.status === 200
    const outcomes = []
    const sides = [url, parley.url].map((side) => ({ url: side, saved: { model: model.host } }))
    for (const [group, cases] of Object.entries(GROUPS)) {
      if (only.length > 0 && !only.includes(group)) continue
      if (!hasMl && ['memory', 'models', 'answers'].includes(group)) continue
      for (const each of cases) outcomes.push({ group, each, ...(await compareOne(each, sides)) })
    }
    const faults = print(outcomes)
    if (only.length === 0 && hasMl) writeTable(outcomes)
    return faults > 0 ? 1 : 0
  } finally {
    stopReference()
    await parley.stop()
    model.stop()
  }
}

/** @typedef {{ group: string, each: Case, found: string[], words: string[] }} Outcome */

/**
 * @param {Case} each
 * @param {{ url: string, saved: Record<string, string> }[]} sides
 * @returns {Promise<{ found: string[], words: string[] }>} `words`: where only the words of a message differ
 */
async function compareOne(each, sides) {
  const replies = []
  for (const { url, saved } of sides) {
    const filled = JSON.parse(
      JSON.stringify(each).replaceAll(/\{\{(\w+)\}\}/g, (_, name) => saved[name] ?? `no ${name}`),
    )
    const { status, body } = await settled(url, filled)
    for (const [name, key] of Object.entries(each.save ?? {})) saved[name] = body?.[key]
    replies.push(normalise({ status, body }, each, saved))
  }
  return differences(replies[0], replies[1])
}

const TRIES = 40

/** Asks again until the reply is as the case waits for. @param {string} url @param {Case} each */
async function settled(url, each) {
  for (let tries = 0; ; tries++) {
    const reply = await ask(url, each)
    const isThere = Object.entries(each.until ?? {}).every(([key, value]) => reply.body?.[key] === value)
    if (isThere || tries === TRIES) return reply
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
}

/** @param {string} why */
const verdictOf = (why) => REASONS[why]?.[0] ?? 'DIFFERENT'

/** @param {Outcome[]} outcomes @returns {number} how many of them are not as the reasons say */
function print(outcomes) {
  let faults = 0
  for (const { group, each, found, words } of outcomes) {
    const { why } = each
    const isFault = found.length > 0 ? why === undefined : why !== undefined
    if (isFault) faults += 1
    const verdict =
      found.length > 0
        ? why
          ? verdictOf(why)
          : 'DIFFERENT'
        : words.length > 0
          ? 'same but for words'
          : 'same'
    console.log(`${verdict.padEnd(19)} ${group}: ${each.name}${isFault && why ? ` (no longer ${why}?)` : ''}`)
    for (const line of [...found, ...words].slice(0, 12)) console.log(`    ${line}`)
  }
  console.log(`${outcomes.length} requests, ${faults} to look at`)
  return faults
}

const HEADINGS = [
  ['better', 'What did it find better?'],
  ['missing', 'What did it find missing?'],
]
const MOST_NAMES = 4

/** @param {Outcome[]} some */
function namesOf(some) {
  const names = some.map(({ group, each }) => `${group}: ${each.name}`)
  const more = names.length - MOST_NAMES
  return [...names.slice(0, MOST_NAMES), ...(more > 0 ? [`${more} more`] : [])].join('; ')
}

/** Writes what differs between the markers of the documentation. @param {Outcome[]} outcomes */
function writeTable(outcomes) {
  const rows = [
    '| Requests | Same | Same but for the words of a message | Better on purpose | Missing |',
    '| --- | --- | --- | --- | --- |',
  ]
  const count = (/** @type {Outcome[]} */ some, /** @type {string} */ verdict) =>
    some.filter(({ each, found }) => found.length > 0 && each.why && verdictOf(each.why) === verdict).length
  for (const group of Object.keys(GROUPS)) {
    const some = outcomes.filter((outcome) => outcome.group === group)
    const alike = some.filter(({ found }) => found.length === 0)
    const exact = alike.filter(({ words }) => words.length === 0).length
    rows.push(
      `| ${group} (${some.length}) | ${exact} | ${alike.length - exact} | ${count(some, 'better')} | ${count(some, 'missing')} |`,
    )
  }
  for (const [verdict, heading] of HEADINGS) {
    rows.push('', `## ${heading}`, '')
    for (const [why, [kind, text]] of Object.entries(REASONS)) {
      const some = outcomes.filter(({ each, found }) => each.why === why && found.length > 0)
      if (kind === verdict && some.length > 0) rows.push(`- ${text} (${namesOf(some)})`)
    }
  }
  const page = readFileSync(DOCS, 'utf8')
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)]
  if (from < 0 || to < from) throw new Error(`${DOCS} has lost the markers of the table.`)
  writeFileSync(DOCS, `${page.slice(0, from)}${BEGIN}\n\n${rows.join('\n')}\n\n${page.slice(to)}`)
  execFileSync(join(root, 'node_modules', '.bin', 'biome'), ['format', '--write', DOCS], { stdio: 'ignore' })
}
