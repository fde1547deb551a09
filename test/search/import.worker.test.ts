/** Imports: a result for every line, good lines in spite of bad ones, and several imports at a time. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { unwrap } from '../../src/errors'
import { hashVector } from '../../src/models/embedders'
import type { CollectionRpc } from '../../src/search/collection/handle'
import { shortest } from '../../src/search/vectors/packed-vectors'
import { CREATE, exportAll, idsWhere, importAll, newCollection, newObject } from './object'

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'points', type: 'int32' },
]

afterEach(() => vi.restoreAllMocks())

describe('importing lines', () => {
  it('answers each line in its place, and keeps the good ones', async () => {
    const object = await newCollection(FIELDS)
    expect(
      await importAll(object, [
        { id: 'a', title: 'one', points: 1 },
        '{broken',
        { id: 'b', title: 'two' },
        { id: 'a', title: 'again', points: 1 },
        { id: 'c', title: 'three', points: 3 },
      ]),
    ).toEqual([
      { success: true },
      { success: false, error: expect.stringMatching(/^Bad JSON: /), code: 400 },
      {
        success: false,
        error: 'Field `points` has been declared in the schema, but is not found in the document.',
        code: 400,
      },
      { success: false, error: 'A document with id a already exists.', code: 409 },
      { success: true },
    ])
    expect((await exportAll(object)).map(({ id }) => id)).toEqual(['a', 'c'])
  })

  it('gives documents and ids back when asked', async () => {
    const object = await newCollection(FIELDS)
    const bad = '{"id":"b","title":5,"points":1}'
    expect(
      await importAll(object, [{ title: 'one', points: 1 }, bad], { returnDocument: true, returnId: true }),
    ).toEqual([
      { success: true, document: { id: '0', title: 'one', points: 1 }, id: '0' },
      { success: false, error: 'Field `title` must be a string.', code: 400, document: bad, id: 'b' },
    ])
    expect(await importAll(object, [{ id: 'x', title: 'y', points: 1 }], { returnId: true })).toEqual([
      { success: true, id: 'x' },
    ])
  })

  it('lets later lines see what earlier ones wrote', async () => {
    const object = await newCollection(FIELDS)
    const results = await importAll(
      object,
      [
        { id: 'a', title: 'one', points: 1 },
        { id: 'a', points: 2 },
        { id: 'a', title: 'two' },
      ],
      { action: 'emplace' },
    )
    expect(results).toEqual([{ success: true }, { success: true }, { success: true }])
    expect(await exportAll(object)).toEqual([{ id: 'a', title: 'two', points: 2 }])
  })

  it('coerces or drops as it is told', async () => {
    const object = await newCollection([
      { name: 'n', type: 'int32', optional: true },
      { name: 'list', type: 'int32[]', optional: true },
    ])
    const line = { n: '7', list: ['1', 'x', 3] }
    const wrong = { n: 'seven' }
    expect(await importAll(object, [line], { dirtyValues: 'reject' })).toMatchObject([{ success: false }])
    expect(await importAll(object, [line, wrong], { dirtyValues: 'coerce_or_drop' })).toEqual([
      { success: true },
      { success: true },
    ])
    expect(await importAll(object, [wrong], { dirtyValues: 'coerce_or_reject' })).toMatchObject([
      { success: false, error: 'Field `n` must be an int32.' },
    ])
    expect(await importAll(object, [line], { dirtyValues: 'drop' })).toEqual([{ success: true }])
    expect(await exportAll(object)).toEqual([
      { id: '0', n: 7, list: [1, 3] },
      { id: '1' },
      { id: '2', list: [3] },
    ])
  })

  it('says for two seconds that somebody has searched', async () => {
    const object = await newCollection(FIELDS)
    const busy = async () => unwrap(await object.importLines(['{"title":"a","points":1}'], CREATE)).busy
    expect(await busy()).toBe(false)
    await object.search({ q: 'a', query_by: 'title' })
    expect(await busy()).toBe(true)
    expect(await busy()).toBe(true)
    const later = Date.now() + 2_001
    vi.spyOn(Date, 'now').mockReturnValue(later)
    expect(await busy()).toBe(false)
    vi.restoreAllMocks()
  })

  it('takes two imports at the same time without losing or doubling anything', async () => {
    const object = await newCollection([...FIELDS, { ...EMBEDDED }])
    const batch = (from: number) =>
      Array.from({ length: 100 }, (_, n) => ({ title: `title ${from + n}`, points: from + n }))
    const [first, second] = await Promise.all([importAll(object, batch(0)), importAll(object, batch(100))])
    expect([...first, ...second].every(({ success }) => success)).toBe(true)
    const documents = await exportAll(object)
    expect(new Set(documents.map(({ id }) => id)).size).toBe(200)
    expect(new Set(documents.map(({ points }) => points)).size).toBe(200)
    expect(await object.summary()).toMatchObject({ value: { num_documents: 200 } })
  })

  it('writes line by line when a whole batch cannot be written', async () => {
    const { object, objectId } = newObject()
    await object.create({ name: 'c', fields: FIELDS }, 1)
    const stub = env.COLLECTION.get(env.COLLECTION.idFromName(objectId))
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {})
    await runInDurableObject(stub, (_, state) => {
      state.storage.sql.exec(
        `CREATE TRIGGER poison BEFORE INSERT ON documents WHEN new.id = 'bad'
          BEGIN SELECT raise(ABORT, 'poisoned'); END`,
      )
    })
    expect(
      await importAll(object, [
        { id: 'a', title: 'one', points: 1 },
        { id: 'bad', title: 'two', points: 2 },
        { id: 'c', title: 'three', points: 3 },
      ]),
    ).toMatchObject([{ success: true }, { success: false, code: 500 }, { success: true }])
    expect((await exportAll(object)).map(({ id }) => id)).toEqual(['a', 'c'])
    expect(await object.summary()).toMatchObject({ value: { num_documents: 2 } })
    expect(await idsWhere(object, 'title:two')).toEqual([])
    expect(logged.mock.calls.map(([line]) => JSON.parse(line))).toMatchObject([
      { collection: 'c', event: 'batch', reason: expect.stringContaining('poisoned') },
      { collection: 'c', event: 'document', reason: expect.stringContaining('poisoned') },
    ])
  })
})

const EMBEDDED = {
  name: 'embedding',
  type: 'float[]',
  embed: { from: ['title'], model_config: { model_name: 'local/hash-384', indexing_prefix: 'passage:' } },
}

// Models that are a call away: embedding.worker.test.ts.
describe('auto-embedding by the built-in model', () => {
  const fields = [{ name: 'title', type: 'string' }, { name: 'n', type: 'int32', optional: true }, EMBEDDED]
  const vectorOf = (text: string) => Array.from(hashVector(text, 384), shortest)
  const vectors = async (object: CollectionRpc) => (await exportAll(object)).map(({ embedding }) => embedding)

  it('is there at once, with the prefix and a space after each value', async () => {
    const object = await newCollection(fields)
    const own = vectorOf('something else')
    await importAll(object, [
      { id: '1', title: 'abc' },
      { id: '2', title: 'own', embedding: own },
    ])
    expect(await vectors(object)).toEqual([vectorOf('passage: abc '), own])
    expect(await object.summary()).not.toHaveProperty('value.pending_embeddings')
  })

  it('goes with the text', async () => {
    const object = await newCollection(fields)
    await importAll(object, [{ id: '1', title: 'abc', embedding: vectorOf('own') }])
    await object.patch('1', '{"n":1}')
    await object.write('{"id":"1","title":"abc","n":2}', { action: 'upsert' })
    expect(await vectors(object)).toEqual([vectorOf('own')])
    await object.patch('1', '{"title":"abcd"}')
    expect(await vectors(object)).toEqual([vectorOf('passage: abcd ')])
    await object.patch('1', JSON.stringify({ title: 'abcde', embedding: vectorOf('own') }))
    expect(await vectors(object)).toEqual([vectorOf('own')])
  })

  it('refuses lines whose own vector does not fit, and no others', async () => {
    expect(
      await importAll(await newCollection(fields), [
        { id: '1', title: 'abc', embedding: vectorOf('own') },
        { id: '2', title: 'abc', embedding: [1, 2, 3] },
        { id: '3' },
      ]),
    ).toEqual([
      { success: true },
      { success: false, error: 'Field `embedding` contains an invalid embedding.', code: 400 },
      { success: false, error: expect.stringContaining('`title`'), code: 400 },
    ])
  })
})

describe('bulk changes', () => {
  const some = Array.from({ length: 450 }, (_, n) => ({
    id: `d${n}`,
    title: n % 2 ? 'odd' : 'even',
    points: n,
  }))

  it('updates what a filter matches, once each, though the update changes what it matches', async () => {
    const object = await newCollection(FIELDS)
    await importAll(object, some)
    let count = 0
    for (let cursor = 0, done = false; !done; ) {
      const step = unwrap(await object.updateWhere('title:odd', '{"title":"odd still"}', cursor))
      count += step.count
      ;({ cursor, done } = step)
    }
    expect(count).toBe(225)
    expect((await idsWhere(object, 'title:still')).length).toBe(225)
    expect(await object.updateWhere('', '{"points":1}', 0)).toMatchObject({ value: { count: 0, done: true } })
    expect(await object.updateWhere('nope:1', '{"points":1}', 0)).toMatchObject({ error: { status: 400 } })
  })

  it('removes what a filter matches, in steps, with documents or ids', async () => {
    const object = await newCollection(FIELDS)
    await importAll(object, some)
    const options = { batchSize: 100, returnDocuments: false, returnIds: true }
    const ids: string[] = []
    for (let done = false; !done; ) {
      const step = unwrap(await object.removeWhere('title:even', options))
      ids.push(...(step.ids ?? []))
      done = step.done
    }
    expect(ids.length).toBe(225)
    expect(await object.summary()).toMatchObject({ value: { num_documents: 225 } })
    const step = unwrap(
      await object.removeWhere('points:1', { batchSize: 10, returnDocuments: true, returnIds: false }),
    )
    expect(step).toMatchObject({ count: 1, done: true, documents: [{ id: 'd1', title: 'odd', points: 1 }] })
    expect(step).not.toHaveProperty('ids')
  })

  it('ends a step of a removal that has read much, and goes on from there', async () => {
    const last = 6_500
    const fields = [
      { name: 'parts', type: 'object[]' },
      { name: 'parts.name', type: 'string[]', facet: true },
    ]
    const object = await newCollection(fields, { enable_nested_fields: true })
    const name = (n: number) => (n === last ? 'some' : 'none')
    await importAll(
      object,
      Array.from({ length: last + 1 }, (_, n) => ({ id: `${n}`, parts: [{ name: name(n) }] })),
    )
    const options = { batchSize: 1_000, returnDocuments: false, returnIds: true }
    const removeFrom = async (after: number) =>
      unwrap(await object.removeWhere('parts.{name:!=none}', { ...options, after }))
    const first = await removeFrom(0)
    expect(first).toMatchObject({ count: 0, done: false, ids: [] })
    expect(await removeFrom(first.cursor)).toMatchObject({ count: 1, done: true, ids: [`${last}`] })
  })

  it('truncates, and goes on counting', async () => {
    const object = await newCollection([...FIELDS, { name: 'vector', type: 'float[]', num_dim: 2 }])
    await importAll(
      object,
      some.map((document) => ({ ...document, vector: [1, 2] })),
    )
    expect(await object.truncate()).toEqual({ count: 450, done: true })
    expect(await exportAll(object)).toEqual([])
    expect(await idsWhere(object, 'title:even')).toEqual([])
    const { value } = (await object.write('{"title":"new","points":1,"vector":[3,4]}', {
      action: 'create',
    })) as {
      value: unknown
    }
    expect(value).toEqual({ id: '450', title: 'new', points: 1, vector: [3, 4] })
  })

  it('exports by pages of a bounded size, whole and in order', async () => {
    const object = await newCollection(FIELDS)
    const text = 'word '.repeat(1000)
    const documents = Array.from({ length: 150 }, (_, n) => ({ id: `d${n}`, title: text, points: n }))
    for (const part of [documents.slice(0, 75), documents.slice(75)]) await importAll(object, part)
    const page = unwrap(await object.exportPage({ filterBy: '', include: 'id', exclude: '' }, 0))
    expect(page.done).toBe(true)
    const first = unwrap(await object.exportPage({ filterBy: '', include: '', exclude: '' }, 0))
    expect(first.done).toBe(false)
    expect(first.lines.length).toBeLessThan(300_000)
    expect(await exportAll(object)).toEqual(documents)
    expect((await exportAll(object, 'points:>147')).map(({ id }) => id)).toEqual(['d148', 'd149'])
  })
})

describe('a collection that is imported again every night', () => {
  const documents = Array.from({ length: 40 }, (_, n) => ({
    id: `d${n}`,
    title: `${['lamp for the desk', 'desk', 'an old lamp', 'a chair beside the old desk'][n % 4]} `.repeat(
      1 + (n % 3),
    ),
    points: n,
  }))
  /** Searches that BM25 ranks. */
  const ranked = async (object: CollectionRpc) => {
    const replies = await Promise.all(
      ['Which old lamp belongs beside the desk or chair upstairs', 'desk lamp'].map((q) =>
        object.search({ q, query_by: 'title', per_page: '40', drop_tokens_threshold: '2000000' }),
      ),
    )
    return replies.map((reply) =>
      unwrap(reply).hits!.map(({ document, text_match: score }) => [document.id, score]),
    )
  }

  it('ranks as one that was imported once', async () => {
    const fresh = await newCollection(FIELDS)
    await importAll(fresh, documents)
    const expected = await ranked(fresh)
    expect(expected.map(({ length }) => length)).toEqual([40, 40])
    const replaced = await newCollection(FIELDS)
    const emptied = await newCollection(FIELDS)
    for (let night = 0; night < 20; night++) {
      await importAll(replaced, documents, { action: 'upsert' })
      for (const { id } of documents) if (night > 0) unwrap(await emptied.remove(id, false))
      await importAll(emptied, documents)
    }
    expect(await ranked(replaced)).toEqual(expected)
    expect(await ranked(emptied)).toEqual(expected)
  })
})
