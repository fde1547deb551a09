/** Documents through the RPC of a Collection object: written, read, changed, removed. */
import { evictDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, it } from 'vitest'
import { exportAll, idsWhere, importAll, newCollection, newObject } from './object'

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'points', type: 'int32' },
  { name: 'tags', type: 'string[]', optional: true, facet: true },
]

const failure = (status: number, message: string) => ({ ok: false, error: { status, message } })

describe('writing one document', () => {
  it('gives documents without an id the number of their place', async () => {
    const object = await newCollection(FIELDS)
    const create = { action: 'create' } as const
    expect(await object.write('{"title":"a","points":1}', create)).toEqual({
      ok: true,
      value: { id: '0', title: 'a', points: 1 },
    })
    await object.write('{"id":"x","title":"b","points":2}', create)
    expect(await object.write('{"title":"c","points":3}', create)).toMatchObject({ value: { id: '2' } })
  })

  it('goes past ids that somebody chose', async () => {
    const object = await newCollection(FIELDS)
    const create = { action: 'create' } as const
    await object.write('{"id":"1","title":"a","points":1}', create)
    expect(await object.write('{"title":"b","points":1}', create)).toMatchObject({ value: { id: '2' } })
  })

  it('refuses what it must, in the words of the wire', async () => {
    const object = await newCollection(FIELDS)
    const create = { action: 'create' } as const
    await object.write('{"id":"1","title":"a","points":1}', create)
    const refusals: [string, 'create' | 'update' | 'upsert' | 'emplace', number, string][] = [
      ['{"id":"1","title":"a","points":1}', 'create', 409, 'A document with id 1 already exists.'],
      ['{"id":"2","points":1}', 'update', 404, 'Could not find a document with id: 2'],
      ['{"points":1}', 'update', 400, 'For update, the `id` key must be provided.'],
      ['{"id":1,"title":"a","points":1}', 'create', 400, "Document's `id` field should be a string."],
      ['{"id":"","title":"a","points":1}', 'create', 400, 'The `id` should not be empty.'],
      ['[1]', 'create', 400, 'Bad JSON: not a properly formed document.'],
      [
        '{"points":1}',
        'create',
        400,
        'Field `title` has been declared in the schema, but is not found in the document.',
      ],
      ['{"title":"a","points":"x"}', 'create', 400, 'Field `points` must be an int32.'],
      ['{"title":1,"points":1}', 'upsert', 400, 'Field `title` must be a string.'],
      ['{"title":"a","points":1,"tags":"x"}', 'create', 400, 'Field `tags` must be an array.'],
      ['{"title":"a","points":1,"tags":[1]}', 'create', 400, 'Field `tags` must be an array of string.'],
      ['{"title":"a","points":2147483648}', 'create', 400, 'Field `points` exceeds maximum value of int32.'],
    ]
    for (const [json, action, status, message] of refusals) {
      expect(await object.write(json, { action }), json).toEqual(failure(status, message))
    }
    expect(await object.write('{', create)).toMatchObject({
      error: { status: 400, message: expect.stringMatching(/^Bad JSON: ./) },
    })
    expect(await object.summary()).toMatchObject({ value: { num_documents: 1 } })
  })

  it('replaces by upsert, merges by update and emplace', async () => {
    const object = await newCollection(FIELDS)
    await object.write('{"id":"1","title":"a","points":1,"tags":["x"],"extra":{"a":1,"b":2}}', {
      action: 'create',
    })
    expect(await object.write('{"id":"1","extra":{"b":3}}', { action: 'update' })).toEqual({
      ok: true,
      value: { id: '1', title: 'a', points: 1, tags: ['x'], extra: { a: 1, b: 3 } },
    })
    expect(await object.write('{"id":"1","tags":null}', { action: 'emplace' })).toEqual({
      ok: true,
      value: { id: '1', title: 'a', points: 1, extra: { a: 1, b: 3 } },
    })
    expect(await object.write('{"id":"1","title":"b","points":2}', { action: 'upsert' })).toEqual({
      ok: true,
      value: { id: '1', title: 'b', points: 2 },
    })
    expect(await object.write('{"id":"2","points":2}', { action: 'emplace' })).toMatchObject({
      error: { status: 400 },
    })
    expect(await idsWhere(object, 'title:b')).toEqual(['1'])
    expect(await idsWhere(object, 'title:a')).toEqual([])
  })

  it('takes an id from the path of a patch, and no other', async () => {
    const object = await newCollection(FIELDS)
    await object.write('{"id":"1","title":"a","points":1}', { action: 'create' })
    expect(await object.patch('1', '{"points":5}')).toEqual({
      ok: true,
      value: { id: '1', title: 'a', points: 5 },
    })
    expect(await object.patch('1', '{"id":"2","points":5}')).toEqual(
      failure(400, 'The `id` of the resource does not match the `id` in the JSON body.'),
    )
    expect(await object.patch('7', '{"points":5}')).toEqual(
      failure(404, 'Could not find a document with id: 7'),
    )
  })

  it('reads, projects and removes', async () => {
    const object = await newCollection(FIELDS)
    await object.write('{"id":"1","title":"a","points":1}', { action: 'create' })
    expect(await object.get('1', 'title', '')).toMatchObject({ value: { title: 'a' } })
    expect(await object.get('9', '', '')).toEqual(failure(404, 'Could not find a document with id: 9'))
    expect(await object.remove('1', false)).toEqual({ ok: true, value: { id: '1', title: 'a', points: 1 } })
    expect(await object.remove('1', false)).toEqual(failure(404, 'Could not find a document with id: 1'))
    expect(await object.remove('1', true)).toEqual({ ok: true, value: { id: '1' } })
    expect(await idsWhere(object, 'title:a')).toEqual([])
  })

  it('keeps a document that SQLite could not hold out, and says so', async () => {
    const object = await newCollection(FIELDS)
    const huge = JSON.stringify({ title: 'x'.repeat(2_100_000), points: 1 })
    expect(await object.write(huge, { action: 'create' })).toMatchObject({ error: { status: 400 } })
    expect(await object.write('{"title":"b","points":1}', { action: 'create' })).toMatchObject({ ok: true })
  })

  it('takes field names that plain objects have a meaning for', async () => {
    const object = await newCollection([{ name: 'constructor', type: 'string', optional: true }])
    expect(await object.write('{"a":1}', { action: 'create' })).toMatchObject({ ok: true })
    expect(await object.write('{"constructor":"b","__proto__":{"x":1}}', { action: 'create' })).toMatchObject(
      {
        ok: true,
      },
    )
    expect(await object.write('{"id":"1","__proto__":{"x":2}}', { action: 'update' })).toMatchObject({
      ok: true,
    })
    expect(await idsWhere(object, 'constructor:b')).toEqual(['1'])
  })

  it('answers that nothing is there when nothing was made', async () => {
    const { object } = newObject()
    const missing = {
      ok: false,
      error: { status: 404, message: 'Collection not found', code: 'unknown_collection' },
    }
    expect(await object.summary()).toEqual(missing)
    expect(await object.write('{}', { action: 'create' })).toEqual(missing)
    expect(await object.truncate()).toEqual({ count: 0, done: true })
    expect(await object.messages('x')).toEqual([])
  })
})

describe('an object that has slept', () => {
  it('is what it was', async () => {
    const { object, objectId } = newObject()
    const fields = [...FIELDS, { name: 'vector', type: 'float[]', num_dim: 2 }]
    await object.create({ name: 'c', fields }, Math.floor(Date.now() / 1000))
    await importAll(object, [{ title: 'a', points: 1, vector: [0.1, 0.3] }])
    await evictDurableObject(env.COLLECTION.get(env.COLLECTION.idFromName(objectId)))
    expect(await object.summary()).toMatchObject({ value: { num_documents: 1 } })
    expect(await exportAll(object, 'title:a')).toEqual([
      { id: '0', title: 'a', points: 1, vector: [0.1, 0.3] },
    ])
    await importAll(object, [{ title: 'b', points: 1, vector: [1, 0] }])
    expect(await idsWhere(object, 'points:1')).toEqual(['0', '1'])
  })
})

describe('nested documents', () => {
  it('indexes values inside objects, and keeps the document as it came', async () => {
    const object = await newCollection(
      [
        { name: 'person', type: 'object' },
        { name: 'orders', type: 'object[]', optional: true },
      ],
      { enable_nested_fields: true },
    )
    const document = {
      id: '1',
      person: { name: 'Ada', age: 36, address: { city: 'London' } },
      orders: [{ sku: 'a', price: 1.5 }, { sku: 'b' }],
    }
    await importAll(object, [document, { id: '2', person: { name: 'Bob', age: 20 } }])
    expect(await exportAll(object, 'id:1')).toEqual([document])
    expect(await idsWhere(object, 'person.name:ada')).toEqual(['1'])
    expect(await idsWhere(object, 'person.age:>30')).toEqual(['1'])
    expect(await idsWhere(object, 'person.address.city:london')).toEqual(['1'])
    expect(await idsWhere(object, 'orders.sku:=b')).toEqual(['1'])
    expect(await idsWhere(object, 'orders.price:1.5')).toEqual(['1'])
    expect(await object.patch('1', '{"person":{"age":37}}')).toMatchObject({
      value: { person: { name: 'Ada', age: 37, address: { city: 'London' } } },
    })
    expect(await object.write('{"person":5}', { action: 'create' })).toEqual(
      failure(400, 'Field `person` has an incorrect type.'),
    )
  })

  it('wants an array type for fields inside arrays of objects', async () => {
    const object = await newCollection(
      [
        { name: 'orders', type: 'object[]' },
        { name: 'orders.sku', type: 'string' },
      ],
      { enable_nested_fields: true },
    )
    expect(await object.write('{"orders":[{"sku":"a"}]}', { action: 'create' })).toEqual(
      failure(
        400,
        'Field `orders.sku` has an incorrect type. Hint: field inside an array of objects must be an array type as well.',
      ),
    )
  })
})

describe('fields that nobody named', () => {
  it('finds out types from the first document, and coerces later ones', async () => {
    const object = await newCollection([{ name: '.*', type: 'auto' }])
    await importAll(object, [{ id: '1', title: 'hello', points: 3, price: 2.5, ok: true, tags: ['a'] }])
    expect(await importAll(object, [{ id: '2', points: '17' }])).toEqual([{ success: true }])
    expect(await importAll(object, [{ id: '3', points: 'many' }])).toEqual([
      { success: false, error: 'Field `points` must be an int64.', code: 400 },
    ])
    expect(await idsWhere(object, 'points:>10')).toEqual(['2'])
    expect(await idsWhere(object, 'tags:a')).toEqual(['1'])
    const summary = await object.summary()
    expect(summary.ok && (summary.value.fields as { name: string; type: string }[])).toMatchObject([
      { name: '.*', type: 'auto', optional: true },
      { name: 'title', type: 'string', sort: false },
      { name: 'points', type: 'int64', sort: true },
      { name: 'price', type: 'float' },
      { name: 'ok', type: 'bool' },
      { name: 'tags', type: 'string[]' },
    ])
  })

  it('knows patterns, and fields whose type comes with the first value', async () => {
    const object = await newCollection([
      { name: '.*_facet', type: 'string', facet: true },
      { name: 'code', type: 'auto' },
      { name: 'words', type: 'string*' },
    ])
    const results = await importAll(object, [
      { id: '1', color_facet: 'red', code: 5, words: 8, other: 'x' },
      { id: '2', code: '6', words: 'nine' },
    ])
    expect(results).toEqual([{ success: true }, { success: true }])
    expect(await idsWhere(object, 'color_facet:=red')).toEqual(['1'])
    expect(await idsWhere(object, 'code:6')).toEqual(['2'])
    expect(await exportAll(object, 'words:8')).toMatchObject([{ words: '8' }])
  })

  it('leaves no field behind for a document that is refused', async () => {
    const object = await newCollection([
      { name: 'points', type: 'int32' },
      { name: '.*', type: 'auto' },
    ])
    await importAll(object, [{ points: 'x', title: 'never' }])
    const summary = await object.summary()
    expect(summary.ok && (summary.value.fields as unknown[]).length).toBe(2)
  })

  it('leaves nothing behind of a document that brings too many string fields', async () => {
    const object = await newCollection([{ name: '.*', type: 'auto' }])
    const strings = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`field ${n}`, 'text']))
    const results = await importAll(object, [
      { amount: 1, ...strings(1_001) },
      { amount: 2, ...strings(3) },
    ])
    expect(results).toEqual([
      { success: false, code: 400, error: 'A collection can have at most 1000 indexed string fields.' },
      { success: true },
    ])
  })

  it('makes room for more string fields than text_index was made for', async () => {
    const object = await newCollection([{ name: '.*', type: 'auto' }])
    const wide = Object.fromEntries(Array.from({ length: 80 }, (_, n) => [`f${n}`, `word${n}`]))
    await importAll(object, [{ id: 'first', f0: 'early' }])
    expect(await importAll(object, [{ id: 'wide', ...wide }])).toEqual([{ success: true }])
    while (!(await object.reindex()).done);
    expect(await idsWhere(object, 'f79:word79')).toEqual(['wide'])
    expect(await idsWhere(object, 'f0:early')).toEqual(['first'])
    const tooWide = Object.fromEntries(Array.from({ length: 940 }, (_, n) => [`g${n}`, `word${n}`]))
    // What was found beside the fields that are too many must leave nothing behind either.
    expect(await importAll(object, [{ id: 'wider', number: 1, ...tooWide }])).toMatchObject([
      { success: false, code: 400 },
    ])
    expect(await importAll(object, [{ id: 'next', f0: 'late', other: 2 }])).toEqual([{ success: true }])
    expect(await idsWhere(object, 'other:2')).toEqual(['next'])
  })

  it('spreads many typed fields over several tables', async () => {
    const fields = Array.from({ length: 120 }, (_, n) => ({ name: `n${n}`, type: 'int32', optional: true }))
    const object = await newCollection(fields)
    await importAll(object, [{ id: '1', n0: 1, n60: 2, n119: 3 }, { id: '2' }])
    expect(await idsWhere(object, 'n119:3')).toEqual(['1'])
    expect(await idsWhere(object, 'n60:2 && n0:1')).toEqual(['1'])
  })
})

describe('fields that are not stored', () => {
  it('indexes them without giving them back, and still after an update', async () => {
    const object = await newCollection([
      { name: 'title', type: 'string' },
      { name: 'secret', type: 'string', store: false },
      { name: 'n', type: 'int32', optional: true },
    ])
    expect(await object.write('{"id":"1","title":"a","secret":"hush"}', { action: 'create' })).toEqual({
      ok: true,
      value: { id: '1', title: 'a' },
    })
    expect(await object.patch('1', '{"n":1}')).toEqual({ ok: true, value: { id: '1', title: 'a', n: 1 } })
    expect(await idsWhere(object, 'secret:hush')).toEqual(['1'])
    await object.patch('1', '{"secret":"loud"}')
    expect(await idsWhere(object, 'secret:hush')).toEqual([])
    expect(await idsWhere(object, 'secret:loud')).toEqual(['1'])
  })
})

describe('geopoints and booleans', () => {
  it('finds them by filters', async () => {
    const object = await newCollection([
      { name: 'place', type: 'geopoint' },
      { name: 'open', type: 'bool' },
      { name: 'stops', type: 'geopoint[]', optional: true },
    ])
    await importAll(object, [
      { id: 'paris', place: [48.8566, 2.3522], open: true, stops: [[52.52, 13.405]] },
      { id: 'rome', place: [41.9028, 12.4964], open: false },
    ])
    expect(await idsWhere(object, 'place:(48.85, 2.35, 10 km)')).toEqual(['paris'])
    expect(await idsWhere(object, 'stops:(52.52, 13.4, 10 km)')).toEqual(['paris'])
    expect(await idsWhere(object, 'open:false')).toEqual(['rome'])
    expect(await object.write('{"place":[1],"open":true}', { action: 'create' })).toEqual(
      failure(400, 'Field `place` must be a 2 element array: [lat, lng].'),
    )
  })
})
