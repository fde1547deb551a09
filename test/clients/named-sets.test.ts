/** Synonym sets, curation sets and stemming dictionaries through the official client: routes, messages, statuses. */
import { describe, expect, test } from 'vitest'
import { client, request, unique } from './harness'

const TV = { id: 'tv', root: 'tv', synonyms: ['television', 'smart tv'] }
const COAT = { id: 'coat', synonyms: ['coat', 'jacket'] }

describe('synonym sets', () => {
  test('are stored, listed, read and deleted', async () => {
    const name = unique('words')
    const items = [TV, { ...COAT, root: '' }]
    expect(
      await client()
        .synonymSets(name)
        .upsert({ items: [TV, COAT] }),
    ).toEqual({ name, items })
    expect(await client().synonymSets(name).retrieve()).toEqual({ name, items })
    expect(await client().synonymSets().retrieve()).toContainEqual({ name, items })
    expect(
      await client()
        .synonymSets(name)
        .upsert({ items: [TV] }),
    ).toEqual({ name, items: [TV] })
    expect(await client().synonymSets(name).delete()).toEqual({ name })
    await expect(client().synonymSets(name).retrieve()).rejects.toMatchObject({
      httpStatus: 404,
      message: expect.stringContaining('Synonym index not found'),
    })
    await expect(client().synonymSets(name).delete()).rejects.toMatchObject({ httpStatus: 404 })
  })

  test('are written item by item, also at the same time', async () => {
    const name = unique('words')
    const set = client().synonymSets(name)
    await expect(set.items().upsert('tv', TV)).rejects.toMatchObject({ httpStatus: 404 })
    await set.upsert({ items: [TV] })
    const numbers = Array.from({ length: 12 }, (_, index) => `${index}`)
    await Promise.all(
      numbers.map((id) => set.items().upsert(id, { root: `root ${id}`, synonyms: [`other ${id}`] })),
    )
    const items = await set.items().retrieve()
    expect(items.map(({ id }) => id).sort()).toEqual(['tv', ...numbers].sort())
    expect(await set.items('3').retrieve()).toEqual({ id: '3', root: 'root 3', synonyms: ['other 3'] })
    const { body: page } = await request('GET', `/synonym_sets/${name}/items?limit=2&offset=1`)
    expect(page).toHaveLength(2)
    // An item is replaced, not merged.
    await set.items().upsert('3', { synonyms: COAT.synonyms })
    expect(await set.items('3').retrieve()).toEqual({ id: '3', root: '', synonyms: ['coat', 'jacket'] })
    expect(await set.items('3').delete()).toEqual({ id: '3' })
    await expect(set.items('3').retrieve()).rejects.toMatchObject({
      httpStatus: 404,
      message: expect.stringContaining('Not Found'),
    })
    await expect(set.items('3').delete()).rejects.toMatchObject({
      httpStatus: 404,
      message: expect.stringContaining('Could not find that `id`.'),
    })
    const { status, body } = await request('GET', `/synonym_sets/${name}/items?offset=99`)
    expect([status, body.message]).toEqual([400, 'Invalid offset param.'])
  })

  test('keep ids that are names of JavaScript', async () => {
    const name = unique('words')
    const items = ['constructor', '__proto__', '7', '2'].map((id) => ({ id, root: id, synonyms: ['x'] }))
    await client().synonymSets(name).upsert({ items })
    expect((await client().synonymSets(name).retrieve()).items).toEqual(items)
  })

  test.each([
    [{}, "Missing or invalid 'items' field"],
    [{ items: [{ synonyms: ['a'] }] }, 'Missing `id` field.'],
    [{ items: [{ id: 'a', root: 'b' }] }, 'Could not find an array of `synonyms`'],
    [{ items: [{ id: 'a', synonyms: [] }] }, 'Could not find an array of `synonyms`'],
    [{ items: [{ id: 'a', synonyms: [['b', 1]] }] }, 'Could not find a valid string array of `synonyms`'],
    [{ items: [{ id: 'a', synonyms: ['b'], root: 120 }] }, 'Key `root` should be a string.'],
    [{ items: [{ id: 'a', synonyms: ['b'], locale: 1 }] }, 'Synonym `locale` should be a string.`'],
    [
      { items: [{ id: 'a', synonyms: ['b'], symbols_to_index: ['++'] }] },
      'Synonym `symbols_to_index` should be an array of single character symbols.',
    ],
  ])('a wrong one is refused: %j', async (body, message) => {
    const { status, body: reply } = await request('PUT', `/synonym_sets/${unique('words')}`, body)
    expect([status, reply.message]).toEqual([400, message])
  })

  test('are of a limited size', async () => {
    const name = unique('words')
    const long = { items: [{ id: 'a', root: 'a', synonyms: ['b '.repeat(600_000)] }] }
    const { status, body } = await request('PUT', `/synonym_sets/${name}`, long)
    expect([status, body.message]).toEqual([
      422,
      'A synonym set can have at most 1000000 bytes. Divide it into several sets.',
    ])
    const many = { items: Array.from({ length: 10_001 }, (_, id) => ({ id: `${id}`, synonyms: ['a', 'b'] })) }
    expect((await request('PUT', `/synonym_sets/${name}`, many)).body.message).toBe(
      'A synonym set can have at most 10000 items. Divide it into several sets.',
    )
  })
})

const PIN = {
  id: 'pin',
  rule: { query: 'coat', match: 'exact' },
  includes: [{ id: '1', position: 1 }],
} as const
const DEFAULTS = {
  includes: [],
  excludes: [],
  remove_matched_tokens: false,
  filter_curated_hits: false,
  stop_processing: true,
}

describe('curation sets', () => {
  test('are stored, listed, read and deleted', async () => {
    const name = unique('curations')
    const items = [{ ...DEFAULTS, ...PIN }]
    expect(
      await client()
        .curationSets(name)
        .upsert({ items: [PIN as never] }),
    ).toEqual({ name, items })
    expect(await client().curationSets(name).retrieve()).toEqual({ name, items })
    expect(await client().curationSets().retrieve()).toContainEqual({ name, items })
    const given = { rule: { tags: ['sale'] }, filter_by: 'price:<10', metadata: { banner: null } }
    expect(await client().curationSets(name).items('sale').upsert(given)).toEqual({ id: 'sale', ...given })
    expect(await client().curationSets(name).items('sale').retrieve()).toEqual({
      ...DEFAULTS,
      id: 'sale',
      ...given,
      remove_matched_tokens: true,
    })
    expect(await client().curationSets(name).items().retrieve()).toHaveLength(2)
    expect(await client().curationSets(name).items('sale').delete()).toEqual({ id: 'sale' })
    expect(await client().curationSets(name).delete()).toEqual({ name })
    await expect(client().curationSets(name).retrieve()).rejects.toMatchObject({
      httpStatus: 404,
      message: expect.stringContaining('Curation index not found'),
    })
  })

  const rule = { query: 'a', match: 'exact' }
  test.each([
    [{ id: 'a' }, 'Missing `rule` definition.'],
    [
      { rule: { query: 'a' } },
      'The `rule` definition must contain either a `tags` or a `query` and `match`.',
    ],
    [
      { rule: { query: 'a', match: 'fuzzy' }, replace_query: 'b' },
      'Curation `rule.match` must be `exact` or `contains`.',
    ],
    [
      { rule },
      'Must contain one of: `includes`, `excludes`, `metadata`, `filter_by`, `sort_by`, `remove_matched_tokens`, `replace_query`.',
    ],
    [{ rule: { tags: 'a' }, filter_by: 'x:1' }, 'The `tags` value must be an array of strings.'],
    [{ rule, includes: {} }, 'The `includes` value must be an array.'],
    [{ rule, includes: [{ id: '1' }] }, 'Inclusion definition must define both `id` and `position` keys.'],
    [{ rule, includes: [{ id: '1', position: 'b' }] }, 'Inclusion `position` must be an integer.'],
    [{ rule, excludes: ['1'] }, 'The `excludes` value must be an array of objects.'],
    [{ rule, filter_by: '' }, 'The `filter_by` must be a non-empty string.'],
    [{ rule, remove_matched_tokens: 1 }, 'The `remove_matched_tokens` must be a boolean.'],
    [
      { rule, replace_query: 'b', remove_matched_tokens: true },
      'Only one of `replace_query` or `remove_matched_tokens` can be specified.',
    ],
    [{ rule, metadata: 'a' }, 'The `metadata` must be a JSON object.'],
    [{ rule, diversity: { similarity_metric: [] } }, 'Invalid `similarity_metric` format: []'],
  ])('a wrong one is refused: %j', async (item, message) => {
    const name = unique('curations')
    await client().curationSets(name).upsert({ items: [] })
    const { status, body } = await request('PUT', `/curation_sets/${name}/items/a`, item)
    expect([status, body.message]).toEqual([400, message])
  })
})

describe('stemming dictionaries', () => {
  test('are imported, listed, read and deleted', async () => {
    const id = unique('stems')
    const words = [
      { word: 'people', root: 'person' },
      { word: 'mice', root: 'mouse' },
    ]
    expect(await client().stemming.dictionaries().upsert(id, words)).toEqual(words)
    expect(await client().stemming.dictionaries(id).retrieve()).toEqual({ id, words })
    const { dictionaries } = await client().stemming.dictionaries().retrieve()
    expect(dictionaries).toContain(id)
    // A second import adds to the first.
    await client()
      .stemming.dictionaries()
      .upsert(id, [{ word: 'geese', root: 'goose' }])
    expect((await client().stemming.dictionaries(id).retrieve()).words).toHaveLength(3)
    expect(await client().stemming.dictionaries(id).delete()).toEqual({ id })
    await expect(client().stemming.dictionaries(id).retrieve()).rejects.toMatchObject({ httpStatus: 404 })
  })

  test.each([
    ['?id=x', '', 'Invalid dictionary format.'],
    ['?id=x', 'no json', 'Invalid dictionary format.'],
    ['?id=x', '{"word":"a"}', 'dictionary lines should contain `word` and `root` values.'],
    ['', '{}', 'Parameter `id` must be provided while importing dictionary words.'],
  ])('a wrong one is refused: %s %s', async (query, text, message) => {
    const { status, body } = await request('POST', `/stemming/dictionaries/import${query}`, text)
    expect([status, body.message]).toEqual([400, message])
  })
})

describe('the routes of releases before 30', () => {
  test('write a set that the collection then searches with', async () => {
    const collection = unique('clothes')
    await client()
      .collections()
      .create({ name: collection, fields: [{ name: 'title', type: 'string' }] })
    await client()
      .collections(collection)
      .documents()
      .import([
        { id: '1', title: 'a warm jacket' },
        { id: '2', title: 'a warm coat' },
      ])
    const synonyms = { synonyms: ['coat', 'jacket'] }
    expect(await client().collections(collection).synonyms().upsert('coat', synonyms)).toEqual({
      id: 'coat',
      ...synonyms,
    })
    expect(await client().collections(collection).synonyms().retrieve()).toEqual({
      synonyms: [{ id: 'coat', root: '', ...synonyms }],
    })
    expect(await client().collections(collection).synonyms('coat').retrieve()).toMatchObject(synonyms)
    const override = { rule: { query: 'coat', match: 'exact' }, excludes: [{ id: '2' }] } as const
    await client()
      .collections(collection)
      .overrides()
      .upsert('none', override as never)
    expect((await client().collections(collection).overrides().retrieve()).overrides).toMatchObject([
      override,
    ])
    const { synonym_sets, curation_sets } = (await client()
      .collections(collection)
      .retrieve()) as unknown as {
      synonym_sets: string[]
      curation_sets: string[]
    }
    expect([synonym_sets, curation_sets]).toEqual([
      [`${collection}_synonyms_index`],
      [`${collection}_curations_index`],
    ])
    const search = () => client().collections(collection).documents().search({ q: 'coat', query_by: 'title' })
    const ids = async () => (await search()).hits!.map(({ document }) => (document as { id: string }).id)
    expect(await ids()).toEqual(['1'])
    expect(await client().collections(collection).overrides('none').delete()).toEqual({ id: 'none' })
    expect((await ids()).sort()).toEqual(['1', '2'])
    expect(await client().collections(collection).synonyms('coat').delete()).toEqual({ id: 'coat' })
    expect(await ids()).toEqual(['2'])
    await expect(client().collections(collection).synonyms('coat').retrieve()).rejects.toMatchObject({
      httpStatus: 404,
    })
  })

  test('write many items of a new collection at a time', async () => {
    const collection = unique('clothes')
    await client()
      .collections()
      .create({ name: collection, fields: [{ name: 'title', type: 'string' }] })
    const written = ['a', 'b', 'c', 'd', 'e', 'f'].map((id) =>
      client()
        .collections(collection)
        .synonyms()
        .upsert(id, { synonyms: [id, `${id}s`] }),
    )
    await Promise.all(written)
    expect((await client().collections(collection).synonyms().retrieve()).synonyms).toHaveLength(6)
    expect(await client().collections(collection).retrieve()).toMatchObject({
      synonym_sets: [`${collection}_synonyms_index`],
    })
  })
})

describe('searches with sets', () => {
  const ids = (result: unknown): string[] =>
    (result as { hits: { document: { id: string } }[] }).hits.map(({ document }) => document.id)

  test('by alias, clone, multi_search, union, preset and scoped key', async () => {
    const name = unique('clothes')
    const items = [
      {
        id: 'pin',
        rule: { query: 'coat', match: 'exact' },
        includes: [{ id: '3', position: 1 }],
        metadata: { sale: 1 },
      },
    ]
    await client()
      .synonymSets(name)
      .upsert({ items: [COAT] })
    await client()
      .curationSets(name)
      .upsert({ items: items as never })
    const fields = [{ name: 'title', type: 'string' as const }]
    const sets = { synonym_sets: [name], curation_sets: [name] }
    await client()
      .collections()
      .create({ name, fields, ...sets })
    const documents = ['a jacket', 'a coat', 'a hat'].map((title, at) => ({ id: `${at + 1}`, title }))
    await client().collections(name).documents().import(documents)

    const asked = { q: 'coat', query_by: 'title' }
    const all = ['3', '1', '2']
    const found = await client().collections(name).documents().search(asked)
    expect([ids(found)[0], ids(found).sort()]).toEqual(['3', all.toSorted()])
    expect(found).toMatchObject({ found: 3, metadata: { sale: 1 } })

    const alias = unique('alias')
    await client().aliases().upsert(alias, { collection_name: name })
    expect(ids(await client().collections(alias).documents().search(asked)).sort()).toEqual(all.toSorted())

    const copy = unique('copy')
    await request('POST', `/collections?src_name=${name}&copy_documents=true`, { name: copy })
    expect(await client().collections(copy).retrieve()).toMatchObject(sets)
    expect(ids(await client().collections(copy).documents().search(asked)).sort()).toEqual(all.toSorted())

    const search = { collection: name, ...asked }
    const { results } = (await client().multiSearch.perform({
      searches: [search, { ...search, enable_synonyms: false, enable_overrides: false }],
    })) as { results: unknown[] }
    expect(results.map((result) => ids(result).sort())).toEqual([all.toSorted(), ['2']])
    const union = await client().multiSearch.perform({ union: true, searches: [search] } as never)
    expect(ids(union).sort()).toEqual(all.toSorted())

    const preset = unique('preset')
    await client()
      .presets()
      .upsert(preset, { value: { ...asked, enable_synonyms: false } as never })
    expect(
      ids(
        await client()
          .collections(name)
          .documents()
          .search({ preset } as never),
      ).sort(),
    ).toEqual(['2', '3'])

    // A scoped key sees no document that its filter hides, whoever pins it.
    const { value } = await client()
      .keys()
      .create({ description: 'search', actions: ['documents:search'], collections: [name] })
    const scoped = client()
      .keys()
      .generateScopedSearchKey(value!, { filter_by: 'id:[1,2]' } as never)
    const seen = await client(scoped).collections(name).documents().search(asked)
    expect(ids(seen).sort()).toEqual(['1', '2'])
  })

  test('are written by keys of their actions alone', async () => {
    const key = async (...actions: string[]) => {
      const made = await client()
        .keys()
        .create({ description: '', actions, collections: ['*'] })
      return made.value!
    }
    const name = unique('words')
    const [writes, reads] = [await key('synonym_sets:upsert'), await key('synonym_sets:get')]
    const body = { items: [COAT] }
    expect((await request('PUT', `/synonym_sets/${name}`, body, reads)).status).toBe(401)
    expect((await request('PUT', `/curation_sets/${name}`, { items: [] }, writes)).status).toBe(401)
    expect((await request('PUT', `/synonym_sets/${name}`, body, writes)).status).toBe(200)
    expect((await request('GET', `/synonym_sets/${name}`, undefined, reads)).status).toBe(200)
    const items = await key('synonym_sets/items:*')
    expect((await request('GET', `/synonym_sets/${name}`, undefined, items)).status).toBe(401)
    expect((await request('GET', `/synonym_sets/${name}/items/coat`, undefined, items)).status).toBe(200)
    // The routes before release 30 belong to a collection.
    const own = await client()
      .keys()
      .create({ description: '', actions: ['*'], collections: [name] })
    expect((await request('GET', `/collections/other/synonyms`, undefined, own.value)).status).toBe(401)
  })
})
