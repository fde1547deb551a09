/** Fields that are dropped and added again with other options: searches read them as they were until the new ones are whole. */
import { evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, it } from 'vitest'
import { unwrap } from '../../src/errors'
import type { CollectionRpc } from '../../src/search/collection/handle'
import { exportAll, importAll, newCollection, newObject } from './object'

const COUNT = 450
/** Documents of a step. */
const STEP = 200

type Definition = { name: string } & Record<string, unknown>

const TITLE = { name: 'title', type: 'string', infix: true }
const BODY = { name: 'body', type: 'string' }
const GENRE = { name: 'genre', type: 'string' }
const TAGS = { name: 'tags', type: 'string[]', facet: true }
const YEAR = { name: 'year', type: 'int32', facet: true }
const PLACE = { name: 'place', type: 'geopoint', optional: true }
const FIELDS = [TITLE, BODY, GENRE, TAGS, YEAR, PLACE]
const CHANGED: Definition[] = [
  { ...TITLE, infix: false, stem: true },
  { ...GENRE, facet: true, sort: true },
  { ...TAGS, token_separators: ['-'] },
  { ...YEAR, facet: false },
  { ...PLACE, optional: false },
]

const documentOf = (n: number) => ({
  id: `d${n}`,
  title: 'ships at sea',
  body: `a harbour ${'wide '.repeat(n % 7)}`,
  genre: n % 2 === 0 ? 'travel' : 'novel',
  tags: ['dark-blue'],
  year: n,
  place: [1, n % 90],
})
const documents = Array.from({ length: COUNT }, (_, n) => documentOf(n))

const again = (fields: readonly Definition[]) => ({
  fields: [...fields.map(({ name }) => ({ name, drop: true })), ...fields],
})

async function begin(object: CollectionRpc, fields = CHANGED): Promise<void> {
  unwrap(await object.alter(again(fields)))
}

async function end(object: CollectionRpc): Promise<void> {
  while (!(await object.reindex()).done);
}

async function collection(): Promise<CollectionRpc> {
  const object = await newCollection(FIELDS)
  await importAll(object, documents)
  return object
}

const search = async (object: CollectionRpc, params: Record<string, string>) => {
  const { search_time_ms, ...result } = unwrap(await object.search({ q: '*', ...params }))
  return result
}

const found = async (object: CollectionRpc, params: Record<string, string>) =>
  (await search(object, { per_page: '0', ...params })).found

const SCORES = new Set(['text_match', 'text_match_info'])

/** What searches find in a collection, by all that indexes hold. */
async function everything(object: CollectionRpc) {
  const both: Record<string, string>[] = [
    { q: 'ships', query_by: 'title', sort_by: '_text_match:desc,year:desc' },
    { q: 'hip', query_by: 'title,body', infix: 'always' },
    { q: 'shiip', query_by: 'title' },
    { q: 'what is a wide harbour for boats', query_by: 'title,body', match_stems: 'true' },
    { filter_by: 'title:ships && genre:travel' },
    { filter_by: 'genre:=novel && year:>=100', sort_by: 'year:asc' },
    { filter_by: 'tags:=blue' },
    { filter_by: 'tags:blue' },
    { facet_by: 'tags', group_by: 'tags' },
    { facet_by: 'year(low:[0, 200], high:[200, 1000])' },
    { facet_by: 'genre', sort_by: 'genre:asc' },
    { filter_by: 'place:(1, 3, 10 km)', sort_by: 'place(1, 3):asc' },
  ]
  const results = both.map(async (params) => {
    const outcome = await object.search({ q: '*', per_page: '100', ...params })
    if (!outcome.ok) return outcome.error.message
    const { search_time_ms, request_params, ...result } = outcome.value
    return result
  })
  return { results: await Promise.all(results), documents: await exportAll(object) }
}

/** The same without scores: BM25's mean length counts what FTS5 was told to delete. */
const scoreless = async (object: CollectionRpc) =>
  JSON.parse(JSON.stringify(await everything(object), (key, value) => (SCORES.has(key) ? undefined : value)))

const fieldsOf = async (object: CollectionRpc) => {
  const fields = unwrap(await object.summary()).fields as { name: string }[]
  return new Map(fields.map((field) => [field.name, field]))
}

it('stay as they were, in every step, and then change together', async () => {
  const object = await collection()
  const before = await everything(object)
  expect(before.results[0]).toMatchObject({ found: COUNT })
  await begin(object)
  for (let done = 0; done < COUNT; done += STEP) {
    expect(await everything(object)).toEqual(before)
    const shown = await fieldsOf(object)
    expect([shown.get('title'), shown.get('genre')]).toMatchObject([
      { stem: false, infix: true },
      { facet: false, sort: false },
    ])
    expect(await object.schemaProgress()).toEqual({ validated_docs: done, altered_docs: done })
    expect(await object.alter({ fields: [{ name: 'body', drop: true }] })).toMatchObject({
      error: { status: 422 },
    })
    const { count } = await object.reindex()
    expect(count).toBe(Math.min(STEP, COUNT - done))
  }
  await end(object)
  expect(await object.schemaProgress()).toBeUndefined()
  const after = await everything(object)
  expect(after).not.toEqual(before)
  const anew = await newCollection([BODY, ...CHANGED])
  await importAll(anew, documents)
  expect(after).toEqual(await everything(anew))
  expect((await fieldsOf(object)).get('title')).toMatchObject({ stem: true, infix: false })
})

it('are written with every document, and so are the new ones', async () => {
  for (const steps of [0, 1, 2]) {
    const object = await collection()
    const [old, anew] = [await newCollection(FIELDS), await newCollection([BODY, ...CHANGED])]
    for (const other of [old, anew]) await importAll(other, documents)
    await begin(object)
    for (let step = 0; step < steps; step++) await object.reindex()
    for (const each of [object, old, anew]) {
      for (const id of ['d3', 'd203', 'd449']) {
        const patch = { title: 'boat races', genre: 'sport', tags: ['light-blue'], year: -1, place: [2, 2] }
        unwrap(await each.patch(id, JSON.stringify(patch)))
        unwrap(await each.patch(id.replace('3', '4'), '{"body":"a quay"}'))
        unwrap(await each.remove(id.replace(/.$/, '5'), false))
      }
      await importAll(each, [{ ...documentOf(7), id: 'new', title: 'a shipwreck', genre: 'sport' }])
      const none = { returnDocuments: false, returnIds: false, batchSize: 1_000 }
      unwrap(await each.removeWhere('year:[20..30]', none))
      unwrap(await each.updateWhere('genre:sport', '{"tags":["pale-green"]}', 0))
    }
    expect(await everything(object)).toEqual(await everything(old))
    await end(object)
    expect(await scoreless(object)).toEqual(await scoreless(anew))
  }
})

it('go with all documents', async () => {
  const object = await collection()
  await begin(object)
  await object.reindex()
  await object.truncate()
  expect(await found(object, { q: 'ships', query_by: 'title' })).toBe(0)
  await importAll(object, documents.slice(0, 3))
  expect(await found(object, { q: 'ships', query_by: 'title' })).toBe(3)
  expect(await found(object, { filter_by: 'genre:travel', facet_by: 'tags' })).toBe(2)
  await end(object)
  expect(await found(object, { q: 'ships', query_by: 'title' })).toBe(3)
  expect(await found(object, { filter_by: 'genre:travel', facet_by: 'genre' })).toBe(2)
})

it('are there again after the object was lost, and the work goes on', async () => {
  const { object, objectId } = newObject()
  await object.create({ name: 'c', fields: FIELDS }, 0)
  await importAll(object, documents)
  const before = await everything(object)
  await begin(object)
  for (const done of [200, 400]) {
    await object.reindex()
    await evictDurableObject(env.COLLECTION.get(env.COLLECTION.idFromName(objectId)))
    expect(await everything(object)).toEqual(before)
    expect(await object.schemaProgress()).toMatchObject({ altered_docs: done })
  }
  await end(object)
  expect((await fieldsOf(object)).get('title')).toMatchObject({ stem: true })
  const { sizes, rows } = await runInDurableObject(
    env.COLLECTION.get(env.COLLECTION.idFromName(objectId)),
    (_, { storage: { sql } }) => ({
      sizes: sql
        .exec<{ name: string }>(
          `SELECT name FROM sqlite_master WHERE name LIKE '%_next%' OR name LIKE 'infix%'`,
        )
        .toArray(),
      rows: sql.exec(`SELECT 1 FROM meta WHERE key IN ('former', 'reindex')`).toArray(),
    }),
  )
  expect([sizes, rows]).toEqual([[], []])
})

it('can be changed any number of times', async () => {
  const object = await newCollection([TITLE, GENRE])
  await importAll(object, documents)
  // The alarm may end a change before it is asked how far it is.
  let underWay = 0
  for (let time = 0; time < 25; time++) {
    await begin(object, [{ ...TITLE, stem: time % 2 === 0 }])
    await object.reindex()
    expect(await found(object, { q: 'ships', query_by: 'title', filter_by: 'genre:travel' })).toBe(COUNT / 2)
    if (await object.schemaProgress()) underWay++
    await end(object)
  }
  expect(underWay).toBeGreaterThan(0)
  expect(await found(object, { q: 'shipping', query_by: 'title', prefix: 'false', num_typos: '0' })).toBe(
    COUNT,
  )
  unwrap(await object.alter({ fields: [{ name: 'more', type: 'string', optional: true }] }))
  await end(object)
  await importAll(object, [{ ...documentOf(900), more: 'anchors' }])
  expect(await found(object, { q: 'anchors', query_by: 'more' })).toBe(1)
})

it('wait for fields that a document brings meanwhile, however many', async () => {
  for (const many of [1, 100]) {
    const object = await newCollection([...FIELDS, { name: '.*', type: 'auto', optional: true }])
    await importAll(object, documents)
    await begin(object)
    await object.reindex()
    const extra = Object.fromEntries(Array.from({ length: many }, (_, n) => [`f${n}`, `anchor ${n}`]))
    await importAll(object, [{ ...documentOf(900), ...extra }])
    expect(await found(object, { q: 'anchor', query_by: 'f0' })).toBe(1)
    expect(await found(object, { q: 'ships', query_by: 'title' })).toBe(COUNT + 1)
    await end(object)
    expect(await found(object, { q: 'ship', query_by: 'title', prefix: 'false', num_typos: '0' })).toBe(
      COUNT + 1,
    )
    expect(await found(object, { q: 'anchor', query_by: `f${many - 1}` })).toBe(1)
  }
})
