/** Searches and conversations over collections of different engines: an object, a Typesense cluster and OpenSearch. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Served, serve } from '../serve'
import {
  askAcross,
  client,
  createHistory,
  createModel,
  disconnect,
  KEY,
  request,
  unique,
  url,
} from './harness'

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'text', type: 'string' },
]
/** The best document about lighthouses is the first one, everywhere. */
const LAMPS = {
  own: [
    { id: 'o1', title: 'Lighthouse of Argand', text: 'The lighthouse of Argand has a round wick.' },
    {
      id: 'o2',
      title: 'A harbour',
      text: 'A harbour that has a lighthouse and many other things beside it.',
    },
  ],
  there: [
    { id: 't1', title: 'Lighthouse of Fresnel', text: 'The lighthouse of Fresnel has rings of glass.' },
    { id: 't2', title: 'A coast', text: 'A coast that has a lighthouse and many other things beside it.' },
  ],
  open: [
    { id: 's1', title: 'Lighthouse of Drummond', text: 'The lighthouse of Drummond has a flame on lime.' },
    { id: 's2', title: 'A bay', text: 'A bay that has a lighthouse and many other things beside it.' },
  ],
}

const names = { own: unique('own'), there: unique('there'), open: unique('open') }
const remote = unique('remote')
let service: Served

beforeAll(async () => {
  for (const [name, lamps] of [
    [names.own, LAMPS.own],
    [remote, LAMPS.there],
  ] as const) {
    await client()
      .collections()
      .create({ name, fields: FIELDS } as never)
    await client()
      .collections(name)
      .documents()
      .import(lamps as never)
  }
  // Its scores are in another range than those of the others.
  service = await serve(async (incoming, outgoing) => {
    for await (const _ of incoming);
    const text = { type: 'text' }
    const hits = LAMPS.open.map(({ id, ...source }, at) => ({ _id: id, _score: 900 - at, _source: source }))
    const reply = incoming.url?.endsWith('_mapping')
      ? { lamps: { mappings: { properties: { title: text, text } } } }
      : incoming.url?.endsWith('_count')
        ? { count: 2 }
        : { took: 1, timed_out: false, hits: { total: { value: 2 }, hits } }
    outgoing.writeHead(200, { 'content-type': 'application/json' })
    outgoing.end(JSON.stringify(reply))
  })
  const engines = {
    [names.there]: { type: 'typesense', nodes: [url], credentials: { api_key: KEY }, collection: remote },
    [names.open]: { type: 'opensearch', nodes: [service.url], index: 'lamps' },
  }
  for (const [name, engine] of Object.entries(engines)) {
    const reply = await request('POST', '/collections', { name, engine })
    if (reply.status !== 201) throw new Error(reply.text)
  }
})

afterAll(async () => {
  await disconnect([names.there, names.open])
  await service.stop()
})

const all = Object.values(names)
const searches = all.map((collection) => ({ collection, q: 'lighthouse', query_by: 'title,text' }))
const idsOf = (hits: { document: { id: string } }[]) => hits.map(({ document }) => document.id)

test('a multi_search has a result of each, in the order of the searches', async () => {
  const { results } = (await request('POST', '/multi_search', { searches })).body
  expect(results.map(({ hits }: { hits: never[] }) => idsOf(hits))).toEqual([
    ['o1', 'o2'],
    ['t1', 't2'],
    ['s1', 's2'],
  ])
})

test('a union merges by rank, because scores of different engines do not compare', async () => {
  const { body } = await request('POST', '/multi_search', { union: true, searches })
  expect(body.found).toBe(6)
  expect(idsOf(body.hits)).toEqual(['o1', 't1', 's1', 'o2', 't2', 's2'])
  expect(body.hits.map(({ collection }: { collection: string }) => collection)).toEqual([...all, ...all])
  const second = await request('POST', '/multi_search?page=2&per_page=2', { union: true, searches })
  expect(idsOf(second.body.hits)).toEqual(['s1', 'o2'])
})

test('a conversation reads the best passages of each, and its trace names the engines', async () => {
  const model = await createModel({
    model_name: 'local/extractive',
    api_key: undefined,
    history_collection: await createHistory(),
  })
  const each = all.map((collection) => ({ collection }))
  const fields = { query_by: 'title,text' }
  const first = (await askAcross(model, each, 'What does a lighthouse have?', fields)).body
  const id = first.conversation.conversation_id
  expect(first.conversation.answer).toMatch(/wick|glass|lime/)
  const second = (
    await askAcross(model, each, 'Which lighthouse has a flame?', { ...fields, conversation_id: id })
  ).body
  expect(second.conversation.answer).toContain('lime')
  const { turns } = (await request('GET', `/conversations/${id}/trace`)).body
  const traced = turns[0].trace.searches as { collection: string; engine?: string; took: number }[]
  expect(traced.map(({ collection, engine }) => [collection, engine])).toEqual([
    [names.own, undefined],
    [names.there, 'typesense'],
    [names.open, 'opensearch'],
  ])
  for (const { took } of traced) expect(took).toBeLessThan(60_000)
  const prompt = JSON.stringify(turns[0].trace.calls)
  // The best document of each engine comes first, whatever its scores are, then the second one of each.
  const lists = (first.results as { hits: { document: { text: string } }[] }[]).map(({ hits }) =>
    hits.map(({ document }) => document.text),
  )
  expect(lists.map((texts) => texts.length)).toEqual([2, 2, 2])
  const ranked = [0, 1].flatMap((rank) => lists.map((texts) => texts[rank]!))
  const places = ranked.map((text) => prompt.indexOf(text))
  expect(places).toEqual(places.toSorted((a, b) => a - b))
  expect(places).not.toContain(-1)
})

test('one search that fails is the error of that search', async () => {
  const { results } = (
    await request('POST', '/multi_search', {
      searches: [{ ...searches[2], query_by: 'nothing' }, searches[0]],
    })
  ).body
  expect(results[0]).toMatchObject({ code: 404 })
  expect(idsOf(results[1].hits)).toEqual(['o1', 'o2'])
})
