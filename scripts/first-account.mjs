/**
 * `npm run first-account -- --url ADDRESS --key KEY`: the hour on a new account that a program can do: questions, an import, sleeps, updates
 * in the middle of an answer, a restore. It writes a report of times and failures. What it makes it removes again.
 */
import './installed.mjs'
import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { optionsOf } from './options.mjs'
import { ask } from './parley/commands/ask.mjs'
import { backup } from './parley/commands/backup.mjs'
import { restore } from './parley/commands/restore.mjs'
import { embedsAll } from './parley/embedding.mjs'
import { batchesOf, Failure, Server, sendBatch } from './parley/server.mjs'

const USAGE = `npm run first-account -- --url https://parley.NAME.workers.dev --key KEY [--deploy] [--documents 10000] [--sleep 15] [--report FILE]

  --deploy   runs \`npm run deploy\` twice in the middle of an answer; name what it needs after --, such as -- --env staging
  --sleep    seconds without a request, after which objects have gone to sleep
  --report   where the report goes: first-account.md in this folder
  --help     this text`

const QUESTION = 'How long is history kept, and who deletes it?'
const BATCH = { lines: 1_000, characters: 1 << 20 }
const WORDS =
  'anchor basalt copper delta ember fjord glacier harbour island juniper kelp lagoon meadow north oak pebble'.split(
    ' ',
  )

/** @typedef {{ step: string, ms: number, said: string, failed: boolean }} Step */

/** @param {string[]} args @throws Error that says what is wrong with them */
function readOptions(args) {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      url: { type: 'string' },
      key: { type: 'string' },
      deploy: { type: 'boolean', default: false },
      documents: { type: 'string', default: '10000' },
      sleep: { type: 'string', default: '15' },
      report: { type: 'string', default: 'first-account.md' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  const [documents, sleep] = [Number(values.documents), Number(values.sleep)]
  if (!(documents >= 1) || !(sleep >= 0)) throw new Error('--documents and --sleep take numbers.')
  return { ...values, documents, sleep, deployed: positionals, server: new Server(values) }
}

const asked = optionsOf(readOptions, USAGE)
const { server } = asked
const name = `first-account-${crypto.randomUUID().slice(0, 8)}`
/** @type {Step[]} */
const steps = []

/**
 * Does a step, and notes how long it took and what came of it. A step that fails does not keep the others.
 * @param {string} step
 * @param {() => Promise<string>} work
 */
async function take(step, work) {
  const began = performance.now()
  const outcome = await work().then(
    (said) => ({ said, failed: false }),
    (error) => ({ said: error instanceof Failure ? error.message : String(error), failed: true }),
  )
  const ms = Math.round(performance.now() - began)
  steps.push({ step, ms, ...outcome })
  console.log(
    `${outcome.failed ? 'failed' : 'done  '} ${String(ms).padStart(7)} ms  ${step}: ${outcome.said}`,
  )
}

/** Asks, and says when the first word came. @param {string} question */
async function answer(question) {
  const began = performance.now()
  /** @type {number | undefined} */
  let first
  const turn = await ask(server, question, { json: false }, () => {
    first ??= performance.now() - began
  })
  const { citations, usage, conversation_id: id } = turn
  if (id) conversations.push(id)
  return `first word after ${Math.round(first ?? 0)} ms, ${citations.length} citations, ${usage?.input_tokens ?? 0} tokens in and ${usage?.output_tokens ?? 0} out`
}
/** @type {string[]} */
const conversations = []

/** @param {string} query */
async function search(query) {
  const found = await server.call('GET', `/collections/${name}/documents/search?${query}`)
  return `${found.found} found, ${found.search_time_ms} ms there`
}
const WORD = 'q=glacier+harbour&query_by=text'
const COUNTED = 'q=*&filter_by=n:<100&sort_by=n:desc&facet_by=kind'
const MEANT = 'q=Where+does+the+ice+meet+the+sea&query_by=embedding,text'

/** Runs `npm run deploy` while an answer is written. @returns how both ended */
async function updateMeanwhile() {
  const program = spawn('npm', ['run', 'deploy', '--', ...asked.deployed], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let isOver = false
  const deployed = new Promise((resolve) => program.once('close', resolve)).then((code) => {
    isOver = true
    return code
  })
  const ends = []
  while (!isOver) {
    ends.push(
      await answer(`${QUESTION} (${ends.length + 1})`).then(
        () => 'whole',
        (error) => error.message,
      ),
    )
  }
  const broken = ends.filter((end) => end !== 'whole')
  const code = await deployed
  if (code !== 0) throw new Error(`\`npm run deploy\` ended with ${code}.`)
  return `${ends.length} answers meanwhile, ${broken.length} of them broken off${broken[0] ? `: ${broken[0]}` : ''}`
}

async function importAll() {
  const sample = await server.find('/collections/docs')
  const embed = sample?.fields.find((/** @type {any} */ field) => field.embed)?.embed.model_config.model_name
  const fields = [
    { name: 'text', type: 'string' },
    { name: 'kind', type: 'string', facet: true },
    { name: 'n', type: 'int32' },
    ...(embed
      ? [
          {
            name: 'embedding',
            type: 'float[]',
            embed: { from: ['text'], model_config: { model_name: embed } },
          },
        ]
      : []),
  ]
  await server.call('POST', '/collections', { body: { name, fields } })
  const documents = Array.from({ length: asked.documents }, (_, n) => {
    const text = Array.from(
      { length: 60 },
      (__, word) => WORDS[(n * 7 + word * (1 + (n % 5)) * 3) % WORDS.length],
    )
    const document = { id: `${n}`, text: text.join(' '), kind: `k${n % 20}`, n }
    return { id: document.id, line: JSON.stringify(document) }
  })
  let failed = 0
  for await (const batch of batchesOf(documents, BATCH, ({ line }) => line))
    failed += (await sendBatch(server, name, batch, 'upsert')).length
  return `${asked.documents} documents, ${failed} failed, vectors by ${embed ?? 'none'}`
}

async function vectors() {
  await embedsAll(server, name, true)
  const { refused_embeddings: refused = 0 } = await server.call('GET', `/collections/${name}`)
  return `all made, ${refused} refused`
}

async function bringBack() {
  const folder = await mkdtemp(join(tmpdir(), 'parley-first-account-'))
  try {
    const { documents } = await backup(server, folder, { json: true })
    await server.call('DELETE', `/collections/${name}`)
    await restore(server, folder, { json: true, merge: true }, () => {})
    const { num_documents: count } = await server.call('GET', `/collections/${name}`)
    if (count !== asked.documents) throw new Error(`${count} of ${asked.documents} documents came back.`)
    return `${Object.keys(documents).length} collections in the backup; the one that was deleted came back whole`
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function spent() {
  const { usage = [] } = await server.call('GET', '/usage')
  let [turns, tokens] = [0, 0]
  for (const day of usage) {
    turns += day.turns
    tokens += day.input_tokens + day.output_tokens
  }
  return `${turns} turns, ${tokens} tokens; compare them with the bill, and rows with \`wrangler d1 info\` and the dashboard's metrics`
}

async function cleanUp() {
  for (const id of conversations) await server.send('DELETE', `/conversations/${encodeURIComponent(id)}`)
  await server.call('DELETE', `/collections/${name}`)
  return `${conversations.length} conversations and the collection ${name}`
}

await take('The server answers', async () => {
  const response = await server.send('GET', '/health')
  return `${response.status}, ${response.headers.get('cf-ray') ?? 'no cf-ray: not on Cloudflare'}`
})
await take('A first question', () => answer(QUESTION))
await take('The same again', () => answer(`${QUESTION} Again.`))
await sleep(asked.sleep * 1_000)
await take(`A question after ${asked.sleep} s of sleep`, () => answer(`${QUESTION} Once more.`))
await take('An import', importAll)
await take('Its vectors', vectors)
for (const [what, query] of Object.entries({
  words: WORD,
  'filter, order and facet': COUNTED,
  meaning: MEANT,
})) {
  await take(`A search by ${what}`, () => search(query))
  await take(`A search by ${what}, warm`, () => search(query))
  await sleep(asked.sleep * 1_000)
  await take(`A search by ${what}, after ${asked.sleep} s of sleep`, () => search(query))
}
if (asked.deploy) {
  await take('An update while answers are written', updateMeanwhile)
  await take('A second update', updateMeanwhile)
  await take('A question after it', () => answer(`${QUESTION} After the update.`))
}
await take('A backup, a deletion, and a restore', bringBack)
await take('What was spent', spent)
await take('What was made is removed', cleanUp)

const report = [
  '# The first account',
  '',
  `${server.url}, ${new Date().toISOString()}, ${asked.documents} documents.`,
  '',
  '| Step | ms | What came of it |',
  '| --- | ---: | --- |',
  ...steps.map(
    ({ step, ms, said, failed }) =>
      `| ${step} | ${ms} | ${failed ? '**failed**: ' : ''}${said.replaceAll('|', '\\|').replaceAll('\n', ' ')} |`,
  ),
  '',
].join('\n')
await writeFile(asked.report, report)
const failures = steps.filter(({ failed }) => failed).length
console.log(
  `\n${failures === 0 ? 'All steps are done' : `${failures} of ${steps.length} steps failed`}. The report is in ${asked.report}. \`npm run destroy\` removes the deployment.`,
)
process.exitCode = failures === 0 ? 0 : 1
