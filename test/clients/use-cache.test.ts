/** `use_cache` through the official client: a reply comes again as it was, until something changes that it depends on. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Embedder, embeddedBy, startEmbedder } from './embedder'
import { client, createModel, KEY, request, unique } from './harness'

const name = unique('cached')
const set = `${name}-set`
const OWNERS = ['ann', 'ben', 'cal', 'dan']
const COUNT = 2_000

type Params = Record<string, unknown>

const LANTERN: Params = { q: 'lantern', query_by: 'title', use_cache: true }

const search = (params: Params, key = KEY, collection = name) =>
  client(key)
    .collections(collection)
    .documents()
    .search({ ...LANTERN, ...params } as never)

const foundBy = async (params: Params = {}, key = KEY, collection = name): Promise<number> => {
  const { found } = await search(params, key, collection)
  expect((await search(params, key, collection)).found).toBe(found)
  return found
}

const create = (collection: string, count: number) =>
  client()
    .collections()
    .create({
      name: collection,
      fields: [
        { name: 'title', type: 'string' },
        { name: 'owner', type: 'string', facet: true, sort: true },
      ],
      synonym_sets: [set],
      curation_sets: [set],
    } as never)
    .then(() =>
      client()
        .collections(collection)
        .documents()
        .import(
          Array.from({ length: count }, (_, n) => ({
            id: `${n}`,
            title: `lantern number ${n}`,
            owner: OWNERS[n % 4],
          })),
        ),
    )

beforeAll(() => create(name, COUNT))

describe('a reply from the cache', () => {
  let embedder: Embedder
  let notes: string
  beforeAll(async () => {
    embedder = await startEmbedder()
    notes = unique('notes')
    const fields = [{ name: 'title', type: 'string' }, embeddedBy(embedder, ['title'])]
    await client()
      .collections()
      .create({ name: notes, fields } as never)
    await client().collections(notes).documents().create({ id: '0', title: 'a lantern' })
    // The object still writes a moment after it has acknowledged a document. No reply of that moment is kept.
    await vi.waitFor(async () => expect((await searchNotes({ q: 'a lantern' })).isNew).toBe(false), {
      timeout: 10_000,
    })
  })
  afterAll(() => embedder.stop())

  const NEAR: Params = { query_by: 'title,embedding', exclude_fields: 'embedding' }

  /** A search embeds its question with each run. So the embedder's calls tell which replies are new. */
  const searchNotes = async (params: Params) => {
    embedder.forget()
    const reply = await search({ ...NEAR, ...params }, KEY, notes)
    expect(reply.found).toBe(1)
    return { reply, isNew: embedder.calls() > 0 }
  }

  test('is the first one, its time included', async () => {
    const first = await searchNotes({})
    expect(first.isNew).toBe(true)
    for (let n = 0; n < 3; n++) expect(await searchNotes({})).toEqual({ reply: first.reply, isNew: false })
    embedder.forget()
    const asked = { ...LANTERN, ...NEAR, collection: notes }
    const { body } = await request('POST', '/multi_search', { searches: [asked, asked] })
    expect(body.results).toEqual([first.reply, first.reply])
    expect(embedder.calls()).toBe(0)
  })

  test('comes for 1 as for true, and for nothing else', async () => {
    const news: boolean[] = []
    for (const use_cache of [1, 1, 'true', 'false', undefined]) {
      news.push((await searchNotes({ page: 1, use_cache })).isNew)
    }
    expect(news).toEqual([true, false, false, true, true])
  })

  test('does not come with a cache_ttl of 0', async () => {
    const zero = { limit: 5, cache_ttl: 0 }
    expect([(await searchNotes(zero)).isNew, (await searchNotes(zero)).isNew]).toEqual([true, true])
  })

  test('does not come after /operations/cache/clear', async () => {
    const asked = { limit: 7, cache_ttl: 3_600 }
    expect([(await searchNotes(asked)).isNew, (await searchNotes(asked)).isNew]).toEqual([true, false])
    expect(await client().operations.perform('cache/clear')).toEqual({ success: true })
    expect([(await searchNotes(asked)).isNew, (await searchNotes(asked)).isNew]).toEqual([true, false])
  })
})

test('cache_ttl is a number of seconds', async () => {
  await expect(search({ cache_ttl: 'long' })).rejects.toThrow(
    'Parameter `cache_ttl` must be an unsigned integer.',
  )
  expect(await foundBy({ cache_ttl: 0 })).toBe(COUNT)
})

test('a write is seen at once', async () => {
  const documents = client().collections(name).documents()
  const before = await foundBy()
  await documents.create({ id: 'new', title: 'new lantern', owner: 'eve' })
  expect(await foundBy()).toBe(before + 1)
  await documents.import([{ id: 'newer', title: 'newer lantern', owner: 'eve' }])
  expect(await foundBy()).toBe(before + 2)
  await client().collections(name).documents('new').update({ title: 'torch' })
  expect(await foundBy()).toBe(before + 1)
  await documents.delete({ filter_by: 'owner:=eve' })
  expect(await foundBy()).toBe(before)
})

test('a change of the schema is seen at once', async () => {
  const collection = unique('changed')
  await create(collection, 4)
  const facets = async () => (await search({ facet_by: 'owner' }, KEY, collection)).facet_counts!.length
  expect([await facets(), await facets()]).toEqual([1, 1])
  await client()
    .collections(collection)
    .update({ fields: [{ name: 'owner', drop: true }] } as never)
  await expect(facets()).rejects.toThrow('Could not find a facet field named `owner`')
})

test.each([
  ['synonyms', 'synonym_sets', { id: 'a', synonyms: ['lamp', 'lantern'] }],
  [
    'curations',
    'curation_sets',
    { id: 'a', rule: { query: 'lamp', match: 'exact' }, includes: [{ id: '7', position: 1 }] },
  ],
])('a change of %s is seen', async (_, kind, item) => {
  const lamp = { q: 'lamp', num_typos: 0 }
  expect(await foundBy(lamp)).toBe(0)
  await request('PUT', `/${kind}/${set}`, { items: [item] })
  // Another isolate may have read the set up to three seconds ago.
  await expect.poll(() => foundBy(lamp), { timeout: 10_000 }).toBeGreaterThan(0)
  await request('DELETE', `/${kind}/${set}`)
  await expect.poll(() => foundBy(lamp), { timeout: 10_000 }).toBe(0)
})

test('a change of a preset, of stopwords and of an alias is seen', async () => {
  const preset = (owner: string) =>
    request('PUT', `/presets/${set}`, { value: { filter_by: `owner:=${owner}` } })
  await preset('ann')
  expect(await foundBy({ preset: set })).toBe(COUNT / 4)
  await preset('nobody')
  expect(await foundBy({ preset: set })).toBe(0)

  const stopwords = (word: string) => request('PUT', `/stopwords/${set}`, { stopwords: [word] })
  const words = { q: 'quick lantern', stopwords: set, drop_tokens_threshold: 0, num_typos: 0 }
  await stopwords('slow')
  expect(await foundBy(words)).toBe(0)
  await stopwords('quick')
  expect(await foundBy(words)).toBe(COUNT)

  const other = unique('other')
  await create(other, 3)
  const alias = unique('alias')
  await client().aliases().upsert(alias, { collection_name: name })
  expect(await foundBy({}, KEY, alias)).toBe(COUNT)
  await client().aliases().upsert(alias, { collection_name: other })
  expect(await foundBy({}, KEY, alias)).toBe(3)
})

describe('scoped keys', () => {
  let parent: string
  beforeAll(async () => {
    const made = await client()
      .keys()
      .create({ description: 'search', actions: ['documents:search'], collections: [name] })
    parent = made.value!
  })
  const scoped = (embedded: object) =>
    client()
      .keys()
      .generateScopedSearchKey(parent, embedded as never)

  test('see what their own filter lets through', async () => {
    const keys = ['ann', 'nobody'].map((owner) => scoped({ filter_by: `owner:=${owner}`, cache_ttl: 600 }))
    expect(await foundBy()).toBe(COUNT)
    expect(await foundBy({}, keys[0])).toBe(COUNT / 4)
    expect(await foundBy({}, keys[1])).toBe(0)
    expect(await foundBy()).toBe(COUNT)
  })

  test('see only their fields', async () => {
    expect(JSON.stringify(await search({}))).toContain('owner')
    const key = scoped({ exclude_fields: 'owner', include_fields: 'title' })
    for (let n = 0; n < 2; n++) expect(JSON.stringify(await search({}, key))).not.toContain('owner')
  })
})

test('a conversation is never cached', async () => {
  const conversation_model_id = await createModel({ model_name: 'local/extractive' })
  const asked = { q: 'where is the lantern', conversation: true, conversation_model_id }
  const ids = [await search(asked), await search(asked)].map(
    (reply) => (reply as { conversation?: { conversation_id: string } }).conversation!.conversation_id,
  )
  expect(ids[0]).not.toBe(ids[1])
})

test('an order by chance is new each time', async () => {
  const orders = new Set<string>()
  for (let n = 0; n < 5; n++) {
    const { hits } = await search({ sort_by: '_rand():asc' })
    orders.add(hits!.map(({ document }) => (document as { id: string }).id).join())
  }
  expect(orders.size).toBeGreaterThan(1)
})
