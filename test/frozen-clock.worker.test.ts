/** On Cloudflare the clock stands still while a Worker computes. All work goes on there, and leaves others their turn. */
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { LongSearches } from '../src/search/run/pace'
import { ask, QUESTION, setStage } from './api/parley/stage'
import { call, send } from './api/typesense/api'

const WORDS = 'ash birch cedar elm fir hazel larch maple oak pine rowan spruce willow yew alder beech'.split(
  ' ',
)

beforeAll(async () => {
  await setStage()
})

afterEach(() => vi.restoreAllMocks())

it('imports, searches in turns, answers, streams and deletes', { timeout: 60_000 }, async () => {
  vi.spyOn(Date, 'now').mockReturnValue(Date.now())
  vi.spyOn(performance, 'now').mockReturnValue(performance.now())
  const turn = vi.spyOn(LongSearches.prototype, 'turn')

  const fields = [
    { name: 'name', type: 'string' },
    { name: 'kind', type: 'string', facet: true },
    { name: 'n', type: 'int32' },
  ]
  expect((await call('POST', '/collections', { body: { name: 'trees', fields } }))[0]).toBe(201)
  const lines = Array.from({ length: 12_000 }, (_, n) => {
    const name = Array.from({ length: 6 }, (_, at) => WORDS[(n * 7 + at * at * 3) % WORDS.length]).join(' ')
    return JSON.stringify({ id: `${n}`, name, kind: `k${n % 40}`, n })
  })
  const imported = await send('POST', '/collections/trees/documents/import', { body: lines.join('\n') })
  const results = (await imported.text()).split('\n').map((line) => JSON.parse(line))
  expect([results.length, results.every(({ success }) => success)]).toEqual([12_000, true])

  const params = new URLSearchParams({
    q: 'maple',
    query_by: 'name',
    filter_by: `name:${WORDS.slice(0, 12).join(' || name:')}`,
    sort_by: 'n:desc',
    facet_by: 'kind',
    group_by: 'kind',
  })
  const [status, found] = await call('GET', `/collections/trees/documents/search?${params}`)
  expect([status, found.search_cutoff, found.facet_counts[0].counts.length > 0]).toEqual([200, false, true])
  expect(found.found_docs).toBeGreaterThan(1_000)
  // By the rows that it reads, since no time passes.
  expect(turn.mock.calls.length).toBeGreaterThan(0)

  const [, first] = await ask()
  const [, second] = await ask({ conversation_id: first.conversation_id, question: 'Who was its architect?' })
  expect([first.answer, second.answer, second.turn]).toEqual([
    expect.stringContaining('330 metres'),
    expect.stringContaining('Stephen Sauvestre'),
    2,
  ])
  const streamed = await send('POST', '/conversations', {
    body: { question: QUESTION, model: 'm', collections: ['facts'], stream: true },
  })
  expect(await streamed.text()).toMatch(/event: delta[\s\S]*event: done/)

  const [, removed] = await call('DELETE', '/collections/trees/documents?filter_by=n:>=0')
  expect(removed.num_deleted).toBe(12_000)
})
