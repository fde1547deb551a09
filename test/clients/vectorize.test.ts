/**
 * Thousands of documents come, change and go while the server is killed (SIGKILL) at random moments, and while
 * Vectorize refuses calls and loses its answers. In the end it holds the vectors of the documents with their labels,
 * and no others.
 *
 * VECTORIZE_KILLS says how often, SEED where: the seed is printed. `npm run test:all` has thirteen thousand documents, and twice as
 * many kills.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { KEY } from './harness'
import { OwnParley } from './own-parley'
import { random } from './random'
import { startVectorize, type VectorizeServer } from './vectorize-server'

const KILLS = Number(process.env.VECTORIZE_KILLS ?? (process.env.FULL ? 4 : 2))
const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31))
const DOCUMENTS = process.env.FULL ? 13_200 : 4_200
/** Behind these come 500 that are deleted, and some that nothing happens to. */
const KEPT = DOCUMENTS - 2_200
const AN_IMPORT = 600

let vectorize: VectorizeServer
let server: OwnParley
const next = random(SEED)

const headers = { 'x-typesense-api-key': KEY }

beforeAll(async () => {
  console.log(`seed ${SEED}`)
  vectorize = await startVectorize(384)
  server = new OwnParley({ VECTORIZE_URL: vectorize.url })
  await server.boot()
  const fields = [
    { name: 'title', type: 'string' },
    { name: 'number', type: 'int32' },
    { name: 'shelf', type: 'string', facet: true },
    {
      name: 'embedding',
      type: 'float[]',
      embed: { from: ['title'], model_config: { model_name: 'local/hash-384' } },
    },
  ]
  await api('POST', '/collections', { name: 'things', fields })
})
afterAll(async () => {
  await server.remove()
  await vectorize.stop()
})

async function api(method: string, path: string, body?: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(server.url + path, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const answer = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${answer}`)
  return JSON.parse(answer)
}

/** Does work again and again until the server has lived to answer it. */
async function untilDone(work: () => Promise<unknown>): Promise<void> {
  for (;;) {
    const { life } = server
    try {
      await work()
      return
    } catch (error) {
      await server.requireDead(error, life)
      await booted
    }
  }
}

let booted = Promise.resolve()

const titleOf = (number: number, version: number): string =>
  `thing${number} of kind${number % 97} and sort${number % 31} in version${version}`

const importFrom = (begin: number, version: number): Promise<void> =>
  untilDone(async () => {
    const lines = Array.from({ length: AN_IMPORT }, (_, offset) => {
      const number = begin + offset
      return JSON.stringify({ id: `${number}`, title: titleOf(number, version), number, shelf: 'new' })
    })
    const response = await fetch(`${server.url}/collections/things/documents/import?action=upsert`, {
      method: 'POST',
      headers,
      body: lines.join('\n'),
    })
    const results = (await response.text()).split('\n')
    expect(new Set(results)).toEqual(new Set(['{"success":true}']))
    expect(results).toHaveLength(AN_IMPORT)
  })

let kills = 0
/** of the first documents, which change for as long as there are kills to come */
let version = 1
const CHANGING = process.env.FULL ? 3_000 : 1_200
/** These change nothing but a label. */
const MOVING = `number:[${CHANGING}..${CHANGING + 799}]`
const shelfOf = (version: number): string => `shelf ${version}`

async function change(): Promise<void> {
  for (let begin = 0; begin < DOCUMENTS; begin += AN_IMPORT) await importFrom(begin, 1)
  await untilDone(() =>
    api('DELETE', `/collections/things/documents?filter_by=number:[${KEPT}..${KEPT + 499}]`),
  )
  do {
    version += 1
    for (let begin = 0; begin < CHANGING; begin += AN_IMPORT) await importFrom(begin, version)
    await untilDone(() =>
      api('PATCH', `/collections/things/documents?filter_by=${MOVING}`, { shelf: shelfOf(version) }),
    )
  } while (kills < KILLS)
}

/** Kills at random moments, and has Vectorize fail now and then. */
async function killAndFail(): Promise<void> {
  while (kills < KILLS) {
    vectorize.double.fail('upsert', next() < 0.5 ? 'refused' : 'unanswered')
    await sleep(600 + next() * 1_500)
    booted = server.kill().then(() => server.boot())
    await booted
    kills += 1
  }
}

const reconcile = () => api('POST', '/operations/vectorize/reconcile?collection=things')

test('vectors reach Vectorize through kills and faults, each once', { timeout: 300_000 }, async () => {
  await Promise.all([change(), killAndFail()])
  await expect.poll(async () => (await reconcile()).waiting, { timeout: 120_000, interval: 1_000 }).toBe(0)
  const { missing, stale, extra, done } = await reconcile()
  expect({ missing, stale, extra, done }).toEqual({ missing: 0, stale: 0, extra: 0, done: true })
  expect((await api('GET', '/collections/things')).num_documents).toBe(DOCUMENTS - 500)
  expect(vectorize.double.visible.size).toBe(DOCUMENTS - 500)

  // So few vectors are searched in the object itself. That more of them are asked of Vectorize, and found there, is shown in
  // test/vectorize/collection.full.worker.test.ts.
  for (let sample = 0; sample < 20; sample++) {
    const number = Math.floor(next() * KEPT)
    const title = titleOf(number, number < CHANGING ? version : 1)
    const parameters = new URLSearchParams({
      q: title,
      query_by: 'embedding',
      exclude_fields: 'embedding',
      per_page: '1',
    })
    const { hits } = await api('GET', `/collections/things/documents/search?${parameters}`)
    expect(hits).toMatchObject([{ document: { id: `${number}`, title } }])
  }
})
