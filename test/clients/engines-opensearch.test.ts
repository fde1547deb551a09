/**
 * Collections that live in an OpenSearch or Elasticsearch cluster. The cluster's replies were recorded from a real OpenSearch 2.19.1 and
 * Elasticsearch 7.17.29. `npm run reference:opensearch -- start` brings either up, and this test with OPENSEARCH_URL or
 * ELASTICSEARCH_URL, where that answers, records them anew.
 */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  client,
  createHistory,
  createModel,
  disconnect,
  KEY,
  query,
  type Reply,
  request,
  unique,
} from './harness'
import { Recorded } from './recorded'

/** A fixed name: it is part of the recorded requests. */
const INDEX = 'parley_books'

const BOOKS = [
  {
    id: 'whale',
    title: 'The White Whale',
    text: 'A captain hunts a whale across three oceans.',
    genre: 'sea',
    year: 1851,
    rating: 4.5,
    printed: true,
    place: [41.28, -70.1],
  },
  {
    id: 'island',
    title: 'Treasure Island',
    text: 'A boy finds a map, and pirates want it too.',
    genre: 'sea',
    year: 1883,
    rating: 4.1,
    printed: true,
    place: [55.95, -3.19],
  },
  {
    id: 'moor',
    title: 'The Hound on the Moor',
    text: 'A detective follows the prints of a gigantic hound.',
    genre: 'crime',
    year: 1902,
    rating: 4.4,
    printed: false,
    place: [50.57, -3.92],
  },
  {
    id: 'orient',
    title: 'The Blue Train',
    text: 'A detective questions the passengers of a train that is stuck in snow.',
    genre: 'crime',
    year: 1934,
    rating: 4.2,
    printed: true,
    place: [41.01, 28.98],
  },
]

const CLUSTERS: [string, string, string | undefined][] = [
  ['OpenSearch', 'opensearch-cluster.json', process.env.OPENSEARCH_URL],
  ['Elasticsearch', 'elasticsearch-cluster.json', process.env.ELASTICSEARCH_URL],
]

describe.each(CLUSTERS)('in %s', (_, fixture, target) => {
  const cluster = new Recorded(join(import.meta.dirname, '../fixtures', fixture), target)
  /** the collection here */
  let books: string

  beforeAll(async () => {
    await cluster.open()
    books = unique('books')
    const reply = await request('POST', '/collections', {
      name: books,
      engine: { type: 'opensearch', nodes: [cluster.url], index: INDEX, timeout_ms: 30_000 },
      fields: [
        { name: 'title', type: 'string' },
        { name: 'text', type: 'string' },
        { name: 'genre', type: 'string', facet: true },
        { name: 'year', type: 'int32' },
        { name: 'rating', type: 'float' },
        { name: 'printed', type: 'bool' },
        { name: 'place', type: 'geopoint' },
      ],
    })
    if (reply.status !== 201) throw new Error(reply.text)
    for (const { place, ...book } of BOOKS) {
      const [lat, lon] = place
      await client()
        .collections(books)
        .documents()
        .upsert({ ...book, place: { lat, lon } } as never)
    }
  })

  afterAll(async () => {
    await disconnect([books])
    await cluster.close()
  })

  const search = (parameters: Record<string, string | number>, key = KEY): Promise<Reply> =>
    request('GET', query(`/collections/${books}/documents/search`, parameters), undefined, key)

  async function ids(parameters: Record<string, string | number>): Promise<string[]> {
    const reply = await search({ q: '*', ...parameters })
    if (reply.status !== 200) throw new Error(reply.text)
    return reply.body.hits.map(({ document }: { document: { id: string } }) => document.id)
  }

  test('has the mapping as its schema', async () => {
    const { body } = await request('GET', `/collections/${books}`)
    expect(body).toMatchObject({
      name: books,
      num_documents: 4,
      engine: { type: 'opensearch', index: INDEX },
    })
    const types = Object.fromEntries(
      body.fields.map(({ name, type }: Record<string, string>) => [name, type]),
    )
    expect(types).toEqual({
      title: 'string',
      text: 'string',
      genre: 'string',
      year: 'int32',
      rating: 'float',
      printed: 'bool',
      place: 'geopoint',
    })
  })

  describe('finds', () => {
    test.each([
      ['all words', { q: 'detective hound', query_by: 'title,text' }, ['moor']],
      ['words in several fields', { q: 'treasure pirates', query_by: 'title,text' }, ['island']],
      ['the beginning of a word', { q: 'treas', query_by: 'title' }, ['island']],
      ['a typo', { q: 'treasuer', query_by: 'title' }, ['island']],
      ['some words if none has all', { q: 'whale umbrella', query_by: 'title,text' }, ['whale']],
      ['a phrase', { q: '"blue train"', query_by: 'title,text' }, ['orient']],
      ['no excluded word', { q: 'detective -snow', query_by: 'text' }, ['moor']],
    ])('%s', async (_, parameters, expected) => {
      expect(await ids(parameters)).toEqual(expected)
    })

    test.each([
      ['year:>1890', ['moor', 'orient']],
      ['year:[1851, 1883]', ['island', 'whale']],
      ['year:[1880..1910]', ['island', 'moor']],
      ['year:!=1851', ['island', 'moor', 'orient']],
      ['rating:>=4.4', ['moor', 'whale']],
      ['printed:false', ['moor']],
      ['genre:=sea', ['island', 'whale']],
      ['genre:!=sea', ['moor', 'orient']],
      ['genre:=[sea, crime] && year:<1890', ['island', 'whale']],
      ['title:whale', ['whale']],
      ['title:=The White Whale', ['whale']],
      ['id:[moor, orient]', ['moor', 'orient']],
      ['place:(50.5, -3.9, 50 km)', ['moor']],
      ['(genre:=sea && year:>1860) || rating:4.2', ['island', 'orient']],
    ])('%s', async (filter_by, expected) => {
      expect((await ids({ filter_by })).sort()).toEqual(expected)
    })
  })

  test('sorts and pages', async () => {
    expect(await ids({ sort_by: 'year:desc' })).toEqual(['orient', 'moor', 'island', 'whale'])
    expect(await ids({ sort_by: 'genre:asc,rating:desc' })).toEqual(['moor', 'orient', 'whale', 'island'])
    expect(await ids({ sort_by: 'year:asc', per_page: 1, page: 2 })).toEqual(['island'])
  })

  test('counts facets, with statistics', async () => {
    const { body } = await search({ q: '*', facet_by: 'genre,year' })
    const [genre, year] = body.facet_counts
    expect(genre.counts).toEqual(
      expect.arrayContaining([
        { value: 'sea', highlighted: 'sea', count: 2 },
        { value: 'crime', highlighted: 'crime', count: 2 },
      ]),
    )
    expect(year.stats).toMatchObject({ min: 1851, max: 1934 })
  })

  test('highlights, and shows the fields that were asked for', async () => {
    const { body } = await search({
      q: 'hound',
      query_by: 'text',
      include_fields: 'title',
      highlight_start_tag: '<b>',
      highlight_end_tag: '</b>',
    })
    expect(body.hits[0].document).toEqual({ title: 'The Hound on the Moor' })
    expect(body.hits[0].highlight.text).toEqual({
      snippet: expect.stringContaining('<b>hound</b>'),
      matched_tokens: ['hound'],
    })
  })

  test.each([
    ['group_by', { group_by: 'genre' }],
    ['infix', { q: 'eas', query_by: 'title', infix: 'always' }],
    ['pinned_hits', { pinned_hits: 'whale:1' }],
    ['Joins', { filter_by: '$others(id:*)' }],
  ])('refuses by name: %s', async (said, parameters) => {
    const reply = await search({ q: '*', ...parameters })
    expect(reply.status).toBe(400)
    expect(reply.body.message).toContain(said)
  })

  test('says like Typesense what is not in the schema', async () => {
    expect(await search({ q: 'a', query_by: 'nothing' })).toMatchObject({ status: 404 })
    const filter = await search({ q: '*', filter_by: 'nothing:1' })
    expect(filter.body.message).toBe('Could not find a filter field named `nothing` in the schema.')
  })

  test('imports, exports, changes and removes documents', async () => {
    const documents = client().collections(books).documents()
    const novel = { id: 'novel', title: 'A Novel', year: 2000 }
    const results = await documents.import(
      [novel, { id: 'bad', title: 'Bad', year: 'many' }] as never,
      {
        action: 'create',
        throwOnFail: false,
      } as never,
    )
    expect(results).toMatchObject([{ success: true }, { success: false }])
    expect(await client().collections(books).documents('novel').update({ year: 2001 })).toMatchObject({
      year: 2001,
    })
    await expect(documents.create(novel as never)).rejects.toMatchObject({ httpStatus: 409 })
    const exported = (await documents.export({ filter_by: 'year:>2000' })).split('\n')
    expect(exported.map((line) => JSON.parse(line))).toEqual([{ ...novel, year: 2001 }])
    expect(await client().collections(books).documents('novel').delete()).toMatchObject({ id: 'novel' })
    await expect(client().collections(books).documents('novel').retrieve()).rejects.toMatchObject({
      httpStatus: 404,
    })
  })

  test('shows a key with a filter nothing else', async () => {
    const { value } = await client()
      .keys()
      .create({ description: 'a page', actions: ['documents:search'], collections: [books] } as never)
    const key = client()
      .keys()
      .generateScopedSearchKey(value!, { filter_by: 'genre:=sea', exclude_fields: 'text' })
    const all = await search({ q: '*', filter_by: 'year:>0 || year:<9999' }, key)
    const shown = all.body.hits.map(({ document }: { document: { id: string } }) => document.id)
    expect(shown.sort()).toEqual(['island', 'whale'])
    expect(all.text).not.toContain('pirates')
    const words = await search({ q: 'pirates', query_by: 'text' }, key)
    expect(words.body.found).toBe(1)
    expect(words.text).not.toContain('map')
  })

  test('answers questions in a conversation', async () => {
    const model = await createModel({
      model_name: 'local/extractive',
      api_key: undefined,
      history_collection: await createHistory(),
    })
    const reply = await search({
      q: 'Who follows the prints of a hound?',
      query_by: 'title,text',
      conversation: 'true',
      conversation_model_id: model,
    })
    expect(reply.status).toBe(200)
    expect(reply.body.conversation.answer).toContain('detective')
  })
})
