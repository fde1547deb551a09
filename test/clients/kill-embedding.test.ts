/**
 * The server is killed (SIGKILL) at random moments of imports whose vectors are made in the background, and while a
 * field is on its way to another model. In the end every acknowledged document has its vector, and none a wrong one.
 *
 * KILLS says how often, SEED where: the seed is printed.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { DIMENSIONS, type Embedder, embeddedBy, startEmbedder } from './embedder'
import { KEY } from './harness'
import { OwnParley } from './own-parley'
import { random } from './random'

const KILLS = Number(process.env.KILLS ?? (process.env.FULL ? 4 : 2))
const SEED = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31))
const DOCUMENTS_AN_IMPORT = 300

let embedder: Embedder
let server: OwnParley

beforeAll(async () => {
  server = new OwnParley()
  embedder = await startEmbedder({ latency: 40 })
  await server.boot()
})
afterAll(async () => {
  await server.remove()
  await embedder.stop()
})

async function api(method: string, path: string, body?: unknown): Promise<string> {
  const response = await fetch(server.url + path, {
    method,
    headers: { 'x-typesense-api-key': KEY },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`)
  return text
}

const summary = async () => JSON.parse(await api('GET', '/collections/tales'))

/** the title that each acknowledged document has, or may have: one that was sent when the server died */
const titles = new Map<string, Set<string>>()

let alive = false

/** Imports and updates until the server is killed. */
async function load(round: number): Promise<void> {
  for (let batch = 0; alive; batch++) {
    // Every second batch changes documents of the one before, while those may be on their way to the model.
    const documents = Array.from({ length: DOCUMENTS_AN_IMPORT }, (_, n) => ({
      id: `${round}-${batch - (batch % 2)}-${n}`,
      title: `tale ${round} ${batch} number ${n}`,
    }))
    for (const { id, title } of documents) titles.set(id, (titles.get(id) ?? new Set()).add(title))
    const { life } = server
    try {
      const lines = documents.map((document) => JSON.stringify(document)).join('\n')
      const results = (await api('POST', '/collections/tales/documents/import?action=upsert', lines)).split(
        '\n',
      )
      expect(new Set(results)).toEqual(new Set(['{"success":true}']))
      for (const { id, title } of documents) titles.set(id, new Set([title]))
    } catch (error) {
      await server.requireDead(error, life)
      // Nobody knows which of them arrived.
      for (const { id } of documents) titles.get(id)!.add('')
    }
  }
}

/** Every document that must be there is, with one of the titles it can have and the vector of that one. */
async function check(): Promise<void> {
  const context = `seed ${SEED}`
  const lines = (await api('GET', '/collections/tales/documents/export')).split('\n')
  const documents: { id: string; title: string; embedding: number[] }[] = lines.map((line) =>
    JSON.parse(line),
  )
  const found = new Set(documents.map(({ id }) => id))
  for (const [id, possible] of titles) if (!possible.has('')) expect(found, context).toContain(id)
  const expected = await embedder.vectors(documents.map(({ title }) => `${title} `))
  for (const [number, { id, title, embedding }] of documents.entries()) {
    expect([...titles.get(id)!], `${context}: ${id}`).toContain(title)
    expect(embedding, `${context}: ${id}`).toHaveLength(DIMENSIONS)
    const error = Math.max(...expected[number]!.map((part, i) => Math.abs(part - embedding[i]!)))
    expect(error, `${context}: ${id} has the vector of another text`).toBeLessThan(1e-6)
  }
}

test(`${KILLS} kills lose no vector and leave none that is wrong`, {
  timeout: 120_000 + KILLS * 30_000,
}, async () => {
  console.log(`kill test of embeddings: KILLS=${KILLS} SEED=${SEED}`)
  const moments = random(SEED)
  const local = {
    name: 'embedding',
    type: 'float[]',
    embed: { from: ['title'], model_config: { model_name: 'local/hash-32' } },
  }
  const remote = embeddedBy(embedder, ['title'])
  await api('POST', '/collections', { name: 'tales', fields: [{ name: 'title', type: 'string' }, local] })
  alive = true
  const first = load(0)
  await new Promise((resolve) => setTimeout(resolve, 500))
  alive = false
  await first
  // From here on the field is on its way to the server, until that has made all vectors.
  await api('PATCH', '/collections/tales', { fields: [{ name: 'embedding', drop: true }, remote] })
  let pendingAtKills = 0
  for (let round = 1; round <= KILLS; round++) {
    alive = true
    const loading = load(round)
    await Promise.race([loading, new Promise((resolve) => setTimeout(resolve, 100 + moments() * 900))])
    pendingAtKills += (await summary()).pending_embeddings ?? 0
    alive = false
    await server.kill()
    await loading
    await server.boot()
  }
  await expect
    .poll(summary, { timeout: 90_000, interval: 200 })
    .toEqual(expect.not.objectContaining({ pending_embeddings: expect.anything() }))
  await expect
    .poll(summary, { timeout: 10_000, interval: 100 })
    .toEqual(expect.not.objectContaining({ replacing_embeddings: expect.anything() }))
  const { num_documents: documents } = await summary()
  console.log(
    `kill test of embeddings: ${documents} documents, ${pendingAtKills} vectors pending at the kills`,
  )
  expect(pendingAtKills).toBeGreaterThan(0)
  await check()
})
