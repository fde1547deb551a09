/** Presets and stopword sets through the official client, and the searches that name them. */
import { beforeAll, describe, expect, test } from 'vitest'
import { client, KEY, request, searchClient, unique } from './harness'

let films: string

const FILMS = [
  { id: '1', title: 'The Lion in the Grass', year: 1990 },
  { id: '2', title: 'The Grass', year: 2000 },
  { id: '3', title: 'Rain', year: 2010 },
]

beforeAll(async () => {
  films = unique('films')
  await client()
    .collections()
    .create({
      name: films,
      fields: [
        { name: 'title', type: 'string' },
        { name: 'year', type: 'int32' },
      ],
    })
  await client().collections(films).documents().import(FILMS)
})

const ids = (result: { hits?: { document: object }[] }): string[] =>
  (result.hits ?? []).map(({ document }) => (document as { id: string }).id)

const search = (parameters: object, key = KEY) =>
  client(key)
    .collections(films)
    .documents()
    .search({ q: '*', query_by: 'title', ...parameters })

describe('presets', () => {
  test('are stored, listed, read and deleted', async () => {
    const name = unique('preset')
    const value = { query_by: 'title', per_page: 1 }
    expect(await client().presets().upsert(name, { value })).toEqual({ name, value })
    expect(await client().presets(name).retrieve()).toEqual({ name, value })
    expect((await client().presets().retrieve()).presets).toContainEqual({ name, value })
    expect(await client().presets(name).delete()).toMatchObject({ name })
    await expect(client().presets(name).retrieve()).rejects.toMatchObject({ httpStatus: 404 })
    const { status, body } = await request('PUT', `/presets/${name}`, { per_page: 1 })
    expect([status, body.message]).toEqual([400, 'Parameter `value` is required.'])
  })

  test('fill in what a search leaves out', async () => {
    const preset = unique('preset')
    await client()
      .presets()
      .upsert(preset, { value: { query_by: 'title', sort_by: 'year:desc', per_page: 2 } })
    expect(ids(await search({ query_by: undefined, preset }))).toEqual(['3', '2'])
    expect(ids(await search({ preset, per_page: 1 }))).toEqual(['3'])
    const { results } = (await client().multiSearch.perform({
      searches: [{ collection: films, q: '*', preset }],
    })) as { results: { hits: { document: object }[] }[] }
    expect(ids(results[0]!)).toEqual(['3', '2'])
  })

  test('a preset with searches is the body of a multi_search', async () => {
    const preset = unique('preset')
    const searches = [{ collection: films, q: 'rain', query_by: 'title' }]
    await client()
      .presets()
      .upsert(preset, { value: { searches } as never })
    const { body } = await request('POST', `/multi_search?preset=${preset}`, { searches: [] })
    expect(ids(body.results[0])).toEqual(['3'])
    await expect(search({ preset })).rejects.toMatchObject({ httpStatus: 400 })
  })

  test('an unknown one is told, and its name costs strangers a key', async () => {
    await expect(search({ preset: 'nobody' })).rejects.toMatchObject({
      httpStatus: 404,
      message: expect.stringContaining('Preset `nobody` not found.'),
    })
    const { status } = await request('POST', '/multi_search?preset=nobody', { searches: [] }, 'no key')
    expect(status).toBe(401)
  })

  test("a key's preset filters what its holder filters too", async () => {
    const preset = unique('preset')
    await client()
      .presets()
      .upsert(preset, { value: { filter_by: 'year:>=2000' } })
    const { value } = await client()
      .keys()
      .create({ description: 'search', actions: ['documents:search'], collections: [films] })
    const key = client()
      .keys()
      .generateScopedSearchKey(value!, { preset } as never)
    expect(ids(await search({}, key)).sort()).toEqual(['2', '3'])
    expect(ids(await search({ filter_by: 'year:<2010' }, key))).toEqual(['2'])
    expect(ids(await search({ preset, filter_by: 'year:<2010' })).sort()).toEqual(['1', '2'])
    // The key fixes it: another preset does not take its place.
    await client()
      .presets()
      .upsert(`${preset}-open`, { value: { filter_by: 'year:>0' } })
    expect(ids(await search({ preset: `${preset}-open` }, key)).sort()).toEqual(['2', '3'])
  })
})

describe('stopword sets', () => {
  test('are stored, listed, read and deleted', async () => {
    const id = unique('words')
    const stopwords = ['the', 'in']
    expect(await client().stopwords().upsert(id, { stopwords })).toMatchObject({ id, stopwords })
    expect(await client().stopwords(id).retrieve()).toEqual({ stopwords: { id, stopwords } })
    expect((await client().stopwords().retrieve()).stopwords).toContainEqual({ id, stopwords })
    expect(await client().stopwords(id).delete()).toEqual({ id })
    await expect(client().stopwords(id).retrieve()).rejects.toMatchObject({
      httpStatus: 404,
      message: expect.stringContaining(`Stopword \`${id}\` not found.`),
    })
  })

  test.each([
    [{}, 'Parameter `stopwords` is required'],
    [{ stopwords: [] }, 'Parameter `stopwords` is empty'],
    [{ stopwords: 'the' }, 'Parameter `stopwords` is required as string array value'],
    [{ stopwords: ['the'], locale: 1 }, 'Parameter `locale` is required as string value'],
  ])('%j is refused', async (given, message) => {
    const { status, body } = await request('PUT', '/stopwords/x', given)
    expect([status, body.message]).toEqual([400, message])
  })

  test('leave words out of a query', async () => {
    const stopwords = unique('words')
    await client()
      .stopwords()
      .upsert(stopwords, { stopwords: ['the', 'tall'] })
    const exact = { drop_tokens_threshold: 0, prefix: false }
    expect(ids(await search({ q: 'the tall grass', ...exact }))).toEqual([])
    expect(ids(await search({ q: 'the tall grass', stopwords, ...exact })).sort()).toEqual(['1', '2'])
    // As in Typesense, stopwords alone find nothing, and a phrase in quotes stays as it is.
    expect(await search({ q: 'The tall', stopwords })).toMatchObject({ found: 0, hits: [] })
    // A question in a conversation is asked as it is: it matches by stems.
    expect(ids(await search({ q: 'the', stopwords, match_stems: 'true' })).sort()).toEqual(['1', '2'])
    expect(ids(await search({ q: '"the"', stopwords, ...exact })).sort()).toEqual(['1', '2'])
    expect(ids(await search({ q: '"the grass"', stopwords, ...exact }))).toContain('2')
  })

  test('an unknown one is told', async () => {
    await expect(search({ stopwords: 'nobody' })).rejects.toMatchObject({
      httpStatus: 404,
      message: expect.stringContaining('Could not find the stopword set named `nobody`.'),
    })
    const { results } = (await searchClient().multiSearch.perform({
      searches: [{ collection: films, q: '*', query_by: 'title', stopwords: 'nobody' }],
    })) as { results: { error?: string; code?: number }[] }
    expect(results[0]).toMatchObject({ code: 404 })
  })
})

test('a facet query without a page size returns the counts alone', async () => {
  const name = unique('facets')
  await client()
    .collections()
    .create({ name, fields: [{ name: 'kind', type: 'string', facet: true }] })
  await client().collections(name).documents().create({ kind: 'drama' })
  const asked = { q: '*', query_by: 'kind', facet_by: 'kind', facet_query: 'kind:dr' }
  const result = await client().collections(name).documents().search(asked)
  expect([result.hits, result.found]).toEqual([[], 1])
  expect(
    (
      await client()
        .collections(name)
        .documents()
        .search({ ...asked, per_page: 5 })
    ).hits,
  ).toHaveLength(1)
})
