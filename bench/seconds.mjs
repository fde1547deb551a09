/**
 * For how many seconds a turn keeps each kind of object awake, by version: `node bench/seconds.mjs FOLDER ...`, each a checkout with
 * its node_modules. One conversation of four turns; the model takes six seconds for each answer. What counts is in awake.mjs.
 * BENCH_ROUNDS says how many conversations (3).
 */

import '../scripts/installed.mjs'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import { build } from 'esbuild'
import { convertV4MiniflareOptions, Miniflare } from 'miniflare'
import { CONVERSATION } from '../scripts/costs/model.mjs'
import { modulesOf } from '../scripts/direct.mjs'
import { HISTORY_FIELDS, makeDocument } from './documents.mjs'

const ROUNDS = Number(process.env.BENCH_ROUNDS ?? 3)
/** For what objects do once a turn has ended: outboxes, merging, alarms. In milliseconds */
const SETTLES = 12_000
const PIECES = 120
const KINDS = ['Conversation', 'docs', 'history']

const line = (delta, finish_reason = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`

/** A model that takes six seconds for an answer, and none for a rewritten question. */
async function startModel() {
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const bytes of request) body += bytes
    if (request.method === 'GET') return response.end(JSON.stringify({ data: [{ id: 'bench' }] }))
    const { messages, stream } = JSON.parse(body)
    const question = /<Question>\n([\s\S]*?)\n\n<Standalone/.exec(messages.at(-1).content)?.[1]
    if (!stream) {
      const message = { role: 'assistant', content: question ?? 'yes' }
      return response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }] }))
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    if (question) response.write(line({ content: question }))
    const started = performance.now()
    for (let n = 0; n < PIECES && !question; n++) {
      const due = started + ((n + 1) * CONVERSATION.objectSeconds * 1_000) / PIECES
      await setTimeout(Math.max(0, due - performance.now()))
      response.write(line({ content: `word${n} ` }))
    }
    response.end(`${line({}, 'stop')}data: [DONE]\n\n`)
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { url: `http://127.0.0.1:${server.address().port}`, stop: () => server.close() }
}

async function startVersion(folder, storage) {
  const contents = `
    import { counted, counting } from ${JSON.stringify(join(import.meta.dirname, 'awake.mjs'))}
    import worker, * as all from ${JSON.stringify(join(folder, 'src/index.ts'))}
    export const Conversation = counting('Conversation', all.Conversation)
    export const Collection = counting('Collection', all.Collection)
    export default {
      ...worker,
      fetch: (request, env, context) =>
        new URL(request.url).pathname === '/__counted' ? counted() : worker.fetch(request, env, context),
    }`
  const bundle = join(storage, 'bundle')
  await build({
    stdin: { contents, resolveDir: folder },
    outfile: join(bundle, 'index.js'),
    loader: { '.wasm': 'copy' },
    bundle: true,
    format: 'esm',
    target: 'es2022',
    external: ['cloudflare:*', 'node:*'],
    conditions: ['workerd', 'worker', 'browser'],
  })
  const miniflare = new Miniflare(
    convertV4MiniflareOptions({
      name: 'parley',
      modulesRoot: bundle,
      modules: modulesOf(bundle, 'index.js'),
      compatibilityDate: '2026-08-15',
      compatibilityFlags: ['enable_request_signal', 'nodejs_compat'],
      resourcePersistencePath: storage,
      bindings: {
        ADMIN_API_KEY: 'xyz',
        AI_BACKEND: 'local',
        ALLOWED_HOSTS: 'localhost, 127.0.0.1',
        CONSOLE: 'on',
        ENCRYPTION_KEY: 'a key for benchmarks only',
        LOG_REQUESTS: 'off',
      },
      assets: { directory: join(folder, 'ui'), binding: 'ASSETS', routerConfig: { has_user_worker: true } },
      d1Databases: { DB: 'parley' },
      durableObjects: {
        CONVERSATION: { className: 'Conversation', useSQLite: true },
        COLLECTION: { className: 'Collection', useSQLite: true },
      },
    }),
  )
  const url = (await miniflare.ready).origin
  const db = await miniflare.getD1Database('DB')
  const migrations = join(folder, 'migrations')
  for (const file of readdirSync(migrations)
    .filter((name) => name.endsWith('.sql'))
    .sort())
    for (const statement of readFileSync(join(migrations, file), 'utf8').split('--> statement-breakpoint'))
      await db.prepare(statement.trim()).run()
  return { url, db, stop: () => miniflare.dispose() }
}

async function measure(folder, model) {
  const storage = mkdtempSync(join(tmpdir(), 'parley-seconds-'))
  const { url, db, stop } = await startVersion(folder, storage)
  const call = async (path, body, method = 'POST') => {
    const headers = { 'x-typesense-api-key': 'xyz', 'content-type': 'application/json' }
    const init = {
      method,
      headers,
      ...(body && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    }
    const response = await fetch(url + path, init)
    const text = await response.text()
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`)
    return text
  }
  try {
    const model_config = { model_name: 'ts/all-MiniLM-L12-v2' }
    const fields = [
      { name: 'title', type: 'string' },
      { name: 'text', type: 'string' },
      { name: 'embedding', type: 'float[]', embed: { from: ['title', 'text'], model_config } },
    ]
    await call('/collections', { name: 'docs', fields })
    await call('/collections', { name: 'history', fields: HISTORY_FIELDS })
    const documents = Array.from({ length: 1000 }, (_, n) => {
      const { id, title, text } = makeDocument(n)
      return JSON.stringify({ id, title, text })
    })
    await call('/collections/docs/documents/import', documents.join('\n'))
    await call('/conversations/models', {
      id: 'slow',
      model_name: 'openai/slow',
      openai_url: model.url,
      api_key: 'sk-1234567890',
      history_collection: 'history',
      max_bytes: 16_384,
      ttl: 3_600,
    })
    const { results } = await db.prepare('SELECT name, object_id FROM collections').all()
    const names = new Map(results.map(({ name, object_id }) => [object_id, name]))
    await setTimeout(SETTLES)
    const rounds = []
    for (let round = 0; round < ROUNDS; round++) {
      await call('/__counted', undefined, 'GET')
      let conversation_id
      for (let turn = 0; turn < CONVERSATION.turns; turn++) {
        const question = makeDocument(10_000 + round * CONVERSATION.turns + turn).title
        const said = await call('/conversations', {
          question,
          model: 'slow',
          collections: ['docs'],
          conversation_id,
        })
        conversation_id ??= JSON.parse(said).conversation_id
      }
      await setTimeout(SETTLES)
      const counted = JSON.parse(await call('/__counted', undefined, 'GET'))
      const found = counted.map(({ kind, name, ...rest }) => ({ ...rest, what: names.get(name) ?? kind }))
      rounds.push(
        Object.fromEntries(
          KINDS.map((kind) => {
            const some = found.filter(({ what }) => what === kind)
            const sum = (of) => some.reduce((total, one) => total + of(one), 0) / CONVERSATION.turns
            return [
              kind,
              {
                seconds: sum(({ seconds }) => seconds),
                timers: sum(({ timerSeconds }) => timerSeconds),
                calls: sum(({ events }) => Object.values(events).reduce((total, times) => total + times, 0)),
              },
            ]
          }),
        ),
      )
      if (process.env.BENCH_EVENTS) console.log(JSON.stringify(found))
    }
    return rounds
  } finally {
    await stop()
    rmSync(storage, { recursive: true, force: true })
  }
}

const model = await startModel()
for (const folder of process.argv.slice(2).map((name) => resolve(name))) {
  console.log(folder)
  for (const round of await measure(folder, model))
    console.log(
      KINDS.map(
        (kind) =>
          `${kind} ${round[kind].seconds.toFixed(2)} s (${round[kind].timers.toFixed(2)} of timers alone) in ${round[kind].calls} calls`,
      ).join(', '),
    )
}
model.stop()
