/**
 * `parley move` into an OpenSearch cluster and back. The cluster's replies were recorded from a real one, as those of
 * engines-opensearch.test.ts.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { askBySearch, client, createHistory, createModel, disconnect, request, unique } from './harness'
import { Recorded } from './recorded'
import { spawnParley } from './run-parley'

// Each run of the command line is a process of its own, and waits for other isolates to hear of the switch.
vi.setConfig({ testTimeout: 120_000 })

const cluster = new Recorded(
  join(import.meta.dirname, '../fixtures/opensearch-move.json'),
  process.env.OPENSEARCH_URL,
)
/** A fixed name: it is part of the recorded requests. */
const INDEX = 'parley_moved'

const LAMPS = [
  { id: 'argand', title: 'The Argand lamp', text: 'A round wick draws air from inside.', year: 1780 },
  { id: 'fresnel', title: 'The Fresnel lens', text: 'Rings of glass bend light into a beam.', year: 1822 },
  { id: 'limelight', title: 'Limelight', text: 'A flame heats lime until it glows.', year: 1826 },
]

let folder = ''
const name = unique('lamps')

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'parley-move-open-'))
  await cluster.open()
  const fields = [
    { name: 'title', type: 'string' },
    { name: 'text', type: 'string' },
    { name: 'year', type: 'int32', facet: true },
  ]
  await client()
    .collections()
    .create({ name, fields } as never)
  const lines = LAMPS.map((lamp) => JSON.stringify(lamp)).join('\n')
  await request('POST', `/collections/${name}/documents/import`, lines)
})

afterAll(async () => {
  await disconnect([`${name}-move`])
  await cluster.close()
  rmSync(folder, { recursive: true, force: true })
})

const move = (to: string[]) => spawnParley(folder, ['move', name, '--to', ...to], {})

async function documents(): Promise<unknown[]> {
  const { text } = await request('GET', `/collections/${name}/documents/export`)
  const all = text.split('\n').map((line) => JSON.parse(line) as { id: string })
  return all.sort((a, b) => (a.id < b.id ? -1 : 1))
}

const engine = async () => (await request('GET', `/collections/${name}`)).body.engine?.type

test('takes a collection into an index and back, and its conversations go on', async () => {
  const model = await createModel({
    model_name: 'local/extractive',
    api_key: undefined,
    history_collection: await createHistory(),
  })
  const fields = { query_by: 'title,text' }
  const first = await askBySearch(model, name, 'What bends light into a beam?', fields)
  const { conversation_id: id, answer } = first.body.conversation
  expect(answer).toContain('glass')

  const moved = await move(['opensearch', '--node', cluster.url, '--open', '--index', INDEX])
  expect([moved.code, moved.err]).toEqual([0, expect.stringContaining('sent 3')])
  expect(await engine()).toBe('opensearch')
  expect(await documents()).toEqual(LAMPS)
  const second = await askBySearch(model, name, 'What glows in a flame?', { ...fields, conversation_id: id })
  expect(second.body.conversation).toMatchObject({
    conversation_id: id,
    answer: expect.stringContaining('lime'),
  })
  const trace = await request('GET', `/conversations/${id}/trace`)
  expect(JSON.stringify(trace.body)).toContain('"engine":"opensearch"')

  expect((await request('DELETE', `/collections/${name}-move`)).status).toBe(200)
  const back = await move(['object'])
  expect([back.code, back.err]).toEqual([0, expect.stringContaining('sent 3')])
  expect(await engine()).toBeUndefined()
  expect(await documents()).toEqual(LAMPS)
  const third = await askBySearch(model, name, 'What draws air from inside?', {
    ...fields,
    conversation_id: id,
  })
  expect(third.body.conversation).toMatchObject({
    conversation_id: id,
    answer: expect.stringContaining('wick'),
  })
})
