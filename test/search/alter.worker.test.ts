/** PATCH of a collection: what is refused, and what documents look like afterwards. */
import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, it, vi } from 'vitest'
import { Alarm } from '../../src/durable/objects'
import { attempt, unwrap } from '../../src/errors'
import { Altering } from '../../src/search/collection/altering'
import { openCollection } from '../../src/search/collection/open'
import { readSchema } from '../../src/search/schema/plan'
import { HISTORY_FIELDS } from '../history-schema'
import { exportAll, idsWhere, importAll, newCollection, newObject } from './object'

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'points', type: 'int32' },
]

const failure = (status: number, message: string) => ({ ok: false, error: { status, message } })

async function reindexed(object: Awaited<ReturnType<typeof newCollection>>): Promise<number> {
  let count = 0
  for (let done = false; !done; ) {
    const step = await object.reindex()
    count += step.count
    done = step.done
  }
  return count
}

describe('altering a collection', () => {
  it('drops a list after a search that did not read all of its matches', async () => {
    const object = await newCollection([
      { name: 'title', type: 'string' },
      { name: 'tags', type: 'string[]', facet: true },
    ])
    const long = 'star '.repeat(20_000)
    for (let n = 0; n < 30; n++) await importAll(object, [{ id: `d${n}`, title: long, tags: ['a'] }])
    const { found } = unwrap(await object.search({ q: 'star', query_by: 'title', highlight_fields: 'none' }))
    expect(found).toBe(30)
    const altered = await object.alter({ fields: [{ name: 'tags', drop: true }] })
    expect(altered).toMatchObject({ ok: true })
  })

  it('drops a list after the end of a long conversation was read', async () => {
    const object = await newCollection([...HISTORY_FIELDS, { name: 'tags', type: 'string[]' }])
    const messages = Array.from({ length: 60 }, (_, n) => ({
      conversation_id: 'c',
      model_id: 'm',
      timestamp: n,
      role: 'user',
      message: `message ${n}`,
      tags: ['a'],
    }))
    await importAll(object, messages)
    for (const [bytes, count] of [
      [0, 1],
      [100, 11],
      [400, 41],
      [10_000, 60],
    ] as const) {
      const recent = await object.recentMessages('c', bytes)
      expect(recent.messages.map(({ timestamp }) => timestamp)).toEqual(
        Array.from({ length: recent.messages.length }, (_, n) => 60 - recent.messages.length + n),
      )
      expect([bytes, recent.messages.length, recent.complete]).toEqual([bytes, count, count === 60])
    }
    expect(await object.alter({ fields: [{ name: 'tags', drop: true }] })).toMatchObject({ ok: true })
  })

  it('refuses in the words of the wire', async () => {
    const object = await newCollection(FIELDS, { default_sorting_field: 'points' })
    await importAll(object, [{ title: 'a', points: 1, color: 'red' }])
    const refusals: [unknown, string][] = [
      [5, 'Bad JSON.'],
      [{}, 'Alter payload is empty.'],
      [{ name: 'x' }, 'Only `fields`, `metadata` and `synonym_sets` can be updated at the moment.'],
      [{ metadata: 1 }, 'The `metadata` value should be an object.'],
      [
        { fields: [] },
        'The `fields` value should be an array of objects containing the field `name` and other properties.',
      ],
      [{ fields: [{ name: 'id', drop: true }] }, 'Field `id` cannot be altered.'],
      [{ fields: [{ name: 'nope', drop: true }] }, 'Field `nope` is not part of collection schema.'],
      [{ fields: [{ name: 'title', drop: false }] }, 'Field `title` must have a drop value of `true`.'],
      [
        { fields: [{ name: 'title', type: 'string', facet: true }] },
        'Field `title` is already part of the schema: To change this field, drop it first before adding it back to the schema.',
      ],
      [
        { fields: [{ name: 'points', drop: true }] },
        'Default sorting field is defined as `points` but is not found in the schema.',
      ],
      [
        { fields: [{ name: 'year', type: 'int32' }] },
        'Field `year` has been declared in the schema, but is not found in the documents already present in the collection. If you still want to add this field, set it as `optional: true`.',
      ],
      [
        { fields: [{ name: 'color', type: 'int32', optional: true }] },
        'Schema change is incompatible with the type of documents already stored in this collection. Existing data for field `color` cannot be coerced into an int32.',
      ],
    ]
    for (const [body, message] of refusals) {
      expect(await object.alter(body), message).toEqual(failure(400, message))
    }
    expect(await object.summary()).toMatchObject({ value: { fields: [{}, {}] } })
  })

  it('adds no field twice that an import adds meanwhile', async () => {
    for (const [type, outcome] of [
      [
        'string',
        failure(
          400,
          'Field `attr_color` is already part of the schema: To change this field, drop it first before adding it back to the schema.',
        ),
      ],
      ['', { ok: true }],
    ] as const) {
      const { objectId, object } = newObject()
      const fields = [...FIELDS, { name: 'attr_.*', type: 'auto' }]
      unwrap(await object.create({ name: 'things', fields }, 0))
      const documents = Array.from({ length: 600 }, (_, n) => ({
        id: `d${n}`,
        title: 't',
        points: n,
        price: n,
      }))
      await importAll(object, documents)
      const added = [{ name: 'price', type: 'int32', optional: true }]
      const own = [{ name: 'attr_color', type, optional: true, facet: true }]
      const body = { fields: type === '' ? added : [...added, ...own] }
      await runInDurableObject(
        env.COLLECTION.get(env.COLLECTION.idFromName(objectId)),
        async (_, { storage, id }: DurableObjectState) => {
          const around = { storage, env, objectId: String(id), alarm: new Alarm(storage) }
          const open = openCollection(around, readSchema(storage.sql)!)
          // The documents are checked with pauses: in one of them comes an import.
          const paused = vi.spyOn(scheduler, 'wait').mockImplementationOnce(async () => {
            const document = JSON.stringify({ id: 'n', title: 'new', points: 1, attr_color: 'red' })
            open.writer.write([{ document, action: 'create' }])
          })
          expect(await attempt(() => new Altering().run(open, around, body))).toMatchObject(outcome)
          expect(paused).toHaveBeenCalled()
          const names = open.store.schema.fields.map(({ name }) => name)
          expect(new Set(names).size).toBe(names.length)
          expect(names).toContain('attr_color')
        },
      )
    }
  })

  it('adds fields, and indexes what documents already held', async () => {
    const object = await newCollection(FIELDS)
    const documents = Array.from({ length: 250 }, (_, n) => ({
      id: `d${n}`,
      title: `t${n}`,
      points: n,
      color: n % 2 ? 'red' : 'blue',
      sizes: [n, n + 1],
      vector: [n, 1],
    }))
    await importAll(object, documents)
    const body = {
      fields: [
        { name: 'color', type: 'string', facet: true },
        { name: 'sizes', type: 'int32[]', optional: true },
        { name: 'vector', type: 'float[]', num_dim: 2 },
      ],
    }
    const value = { fields: body.fields.map((field) => ({ ...field, truncate_len: 100 })) }
    expect(await object.alter(body)).toEqual({ ok: true, value })
    expect(await object.alter(body)).toMatchObject({ error: { status: 400 } })
    expect(await object.alter({ metadata: { a: 1 } })).toEqual(
      failure(422, 'Another collection update operation is in progress.'),
    )
    expect(await reindexed(object)).toBe(250)
    expect((await idsWhere(object, 'color:=red')).length).toBe(125)
    expect(await idsWhere(object, 'sizes:=250')).toEqual(['d249'])
    expect(await exportAll(object)).toEqual(documents)
    expect(await object.alter({ metadata: { a: 1 } })).toMatchObject({ ok: true })
    expect(await object.summary()).toMatchObject({ value: { metadata: { a: 1 }, num_documents: 250 } })
  })

  it('keeps nothing of a dropped field that a new one of its name could find', async () => {
    const object = await newCollection([
      ...FIELDS,
      { name: 'tag', type: 'string', facet: true, optional: true },
    ])
    await importAll(object, [{ id: '1', title: 'a', points: 1, tag: 'old' }])
    expect(
      await object.alter({
        fields: [
          { name: 'tag', drop: true },
          { name: 'tag', type: 'string[]', optional: true },
        ],
      }),
    ).toEqual(
      failure(
        400,
        'Schema change is incompatible with the type of documents already stored in this collection. Existing data for field `tag` cannot be coerced into an array.',
      ),
    )
    await object.alter({ fields: [{ name: 'tag', drop: true }] })
    await object.patch('1', '{"tag":["new"]}')
    expect(await idsWhere(object, 'title:a')).toEqual(['1'])
    await object.alter({ fields: [{ name: 'tag', type: 'string[]', optional: true }] })
    await reindexed(object)
    expect(await idsWhere(object, 'tag:old')).toEqual([])
    expect(await idsWhere(object, 'tag:new')).toEqual(['1'])
  })

  it('looks into objects that documents already had', async () => {
    const object = await newCollection(FIELDS, { enable_nested_fields: true })
    await importAll(object, [{ id: '1', title: 'a', points: 1, author: { name: 'Ada', tags: ['x', 'y'] } }])
    await object.alter({ fields: [{ name: 'author', type: 'object', optional: true }] })
    await reindexed(object)
    expect(await idsWhere(object, 'author.name:ada && author.tags:=y')).toEqual(['1'])
    await object.alter({ fields: [{ name: 'author', drop: true }] })
    expect(await object.summary()).toMatchObject({
      value: { fields: [{ name: 'title' }, { name: 'points' }] },
    })
  })

  it('gives vectors back to the documents when their field goes, and takes them into a new one', async () => {
    const object = await newCollection([
      { name: 'title', type: 'string' },
      { name: 'vector', type: 'float[]', num_dim: 2 },
    ])
    const documents = [{ id: '1', title: 'a', vector: [0.1, 0.2] }]
    await importAll(object, documents)
    await object.alter({ fields: [{ name: 'vector', drop: true }] })
    await reindexed(object)
    expect(await exportAll(object)).toEqual(documents)
    await object.alter({ fields: [{ name: 'vector', type: 'float[]', num_dim: 2, vec_dist: 'ip' }] })
    await reindexed(object)
    const again = [
      { name: 'vector', drop: true },
      { name: 'vector', type: 'float[]', num_dim: 2 },
    ]
    expect(await object.alter({ fields: again })).toMatchObject({ ok: true })
    await reindexed(object)
    expect(await exportAll(object)).toEqual(documents)
    expect(await object.search({ q: '*', vector_query: 'vector:([0.1,0.2], k:1)' })).toMatchObject({
      value: { hits: [{ document: { id: '1' } }] },
    })
  })

  it('embeds what was there before the embedding field', async () => {
    const object = await newCollection(FIELDS)
    await importAll(
      object,
      Array.from({ length: 150 }, (_, n) => ({ title: `title ${n}`, points: n })),
    )
    await object.alter({
      fields: [
        {
          name: 'e',
          type: 'float[]',
          embed: { from: ['title'], model_config: { model_name: 'ts/e5-small' } },
        },
      ],
    })
    await reindexed(object)
    const documents = await exportAll(object)
    expect(documents.every(({ e }) => (e as number[]).length === 384)).toBe(true)
  })

  it('finishes by itself when the caller is gone', async () => {
    const { object, objectId } = newObject()
    await object.create({ name: 'c', fields: FIELDS }, Math.floor(Date.now() / 1000))
    await importAll(
      object,
      Array.from({ length: 450 }, (_, n) => ({ title: 'a', points: n, color: 'red' })),
    )
    await object.alter({ fields: [{ name: 'color', type: 'string' }] })
    await runDurableObjectAlarm(env.COLLECTION.get(env.COLLECTION.idFromName(objectId)))
    expect((await idsWhere(object, 'color:red')).length).toBe(450)
    expect(await object.reindex()).toEqual({ count: 0, done: true })
  })

  it('masks keys in its echo and in the summary, and changes a key without more ado', async () => {
    const embedders = await import('../../src/models/embedders')
    vi.spyOn(embedders, 'probeDimensions').mockResolvedValue(2)
    const embed = (api_key: string) => ({
      name: 'e',
      type: 'float[]',
      embed: { from: ['title'], model_config: { model_name: 'openai/text-embedding-3-small', api_key } },
    })
    const object = await newCollection([...FIELDS, embed('sk-1234567')])
    const masked = { embed: { model_config: { api_key: 'sk-98*****' } } }
    expect(await object.alter({ fields: [embed('sk-9876543')] })).toMatchObject({
      value: { fields: [masked] },
    })
    expect(await object.summary()).toMatchObject({ value: { fields: [{}, {}, masked] } })
    const sealed = { sealed: expect.stringMatching(/^v1\.[A-Za-z0-9+/=]+$/), masked: 'sk-98*****' }
    expect(await object.schema()).toMatchObject({
      value: { fields: [{}, {}, { embed: { model_config: { api_key: sealed } } }] },
    })
    expect(await object.alter({ fields: [embed('sk-9876543')] })).toMatchObject({ error: { status: 400 } })
    vi.restoreAllMocks()
  })
})
