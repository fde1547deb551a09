/** A Typesense cluster of three nodes that fail while answers stream, and a server of its own whose output is read. */
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import {
  client,
  createHistory,
  createModel,
  createShows,
  disconnect,
  KEY,
  query,
  request,
  unique,
  url,
} from './harness'
import { Relay } from './relay'

vi.setConfig({ testTimeout: 180_000 })

const ASKERS = 20
/** A node that gives nothing is given up after this long, in milliseconds. */
const TIMEOUT_MS = 2_000

const nodes: Relay[] = []
let name = ''
let model = ''

beforeAll(async () => {
  const there = await createShows()
  for (let node = 0; node < 3; node++) nodes.push(await new Relay(url).open())
  name = unique('three')
  const reply = await request('POST', '/collections', {
    name,
    engine: {
      type: 'typesense',
      nodes: nodes.map((node) => node.url),
      credentials: { api_key: KEY },
      collection: there,
      timeout_ms: TIMEOUT_MS,
    },
  })
  if (reply.status !== 201) throw new Error(reply.text)
  model = await createModel({
    model_name: 'local/extractive',
    api_key: undefined,
    history_collection: await createHistory(),
  })
})

afterAll(async () => {
  await disconnect([name])
  await Promise.all(nodes.map((node) => node.close()))
})

/** One conversation of two questions. @returns the statuses and answers */
async function converse(): Promise<
  { status: number; answer: string; message: string; retry: string | null }[]
> {
  const turns = []
  let id: string | undefined
  for (const q of ['Which series is about a judge and her clerks?', 'Which series is about a judge?']) {
    const response = await fetch(
      url +
        query(`/collections/${name}/documents/search`, {
          q,
          query_by: 'title,overview',
          exclude_fields: 'embedding',
          conversation: 'true',
          conversation_stream: 'true',
          conversation_model_id: model,
          ...(id !== undefined && { conversation_id: id }),
        }),
      { headers: { 'X-TYPESENSE-API-KEY': KEY } },
    )
    const said = await response.text()
    // A stream ends with the whole reply. Before its first event an error has a status.
    const last = said
      .split('\n')
      .filter((line) => line.startsWith('data: {'))
      .map((line) => JSON.parse(line.slice('data: '.length)))
      .findLast((event) => event.conversation?.answer !== undefined || event.error !== undefined)
    id = last?.conversation?.conversation_id ?? id
    turns.push({
      status: last?.error === undefined ? response.status : (last.code ?? 0),
      answer: last?.conversation?.answer ?? '',
      message: last?.error ?? said,
      retry: response.headers.get('retry-after'),
    })
  }
  return turns
}

test('answers are right while one node is dead and one stalls, and errors say when to come back', async () => {
  const before = await converse()
  for (const { answer } of before) expect(answer).toContain('judge')
  const asking = Promise.all(Array.from({ length: ASKERS }, converse))
  nodes[0]!.fault = 'cut'
  nodes[1]!.fault = 'stall'
  const turns = (await asking).flat()
  expect(turns).toHaveLength(ASKERS * 2)
  const right = turns.filter(({ status }) => status === 200)
  for (const { answer } of right) expect(answer).toContain('judge')
  // Two nodes of three may both be asked before they are known to be dead. Nothing else may go wrong.
  for (const { status, message } of turns.filter((turn) => turn.status !== 200)) {
    expect(status).toBe(503)
    expect(message).toMatch(/Typesense cluster/)
  }
  expect(right.length).toBeGreaterThan(0)
  // Once the failures are known, the node that is left answers everything.
  await vi.waitFor(
    async () => {
      for (const { status, answer } of await converse()) {
        expect(status).toBe(200)
        expect(answer).toContain('judge')
      }
    },
    { timeout: 60_000, interval: 500 },
  )
  for (const node of nodes) node.fault = undefined
  const { num_documents } = (await client().collections(name).retrieve()) as { num_documents: number }
  expect(num_documents).toBe(5)
})
