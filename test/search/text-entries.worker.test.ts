/** When the full-text indexes take a document: whenever a text changes, and only then. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, it } from 'vitest'
import { unwrap } from '../../src/errors'
import type { CollectionRpc } from '../../src/search/collection/handle'
import { idsWhere, importAll, newCollection, newObject } from './object'

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'points', type: 'int32' },
]

describe('the text indexes', () => {
  const TEXTS = [
    ...FIELDS,
    { name: 'code', type: 'string', optional: true, infix: true },
    { name: 'note', type: 'string', optional: true, store: false },
  ]

  /** What the text indexes consist of, to the byte. */
  const blocks = (objectId: string) =>
    runInDurableObject(env.COLLECTION.get(env.COLLECTION.idFromName(objectId)), (_, { storage }) =>
      ['text_index', 'word_index'].map((table) =>
        storage.sql.exec(`SELECT id, hex(block) AS block FROM ${table}_data ORDER BY id`).toArray(),
      ),
    )

  const collection = async () => {
    const { object, objectId } = newObject()
    unwrap(await object.create({ name: 'things', fields: TEXTS }, 1))
    await importAll(object, [
      { id: '1', title: 'a wolf', points: 1, code: 'ab-123', note: 'unseen' },
      { id: '2', title: 'a fox', points: 2 },
    ])
    return { object, objectId }
  }
  const found = async (object: CollectionRpc, q: string, query_by: string) =>
    unwrap(await object.search({ q, query_by, num_typos: '0' })).hits!.map(({ document }) => document.id)

  it('stay as they are when no text changes, whatever else does', async () => {
    const { object, objectId } = await collection()
    const before = await blocks(objectId)
    const whole = '{"id":"1","title":"a wolf","points":4,"code":"ab-123","note":"unseen"}'
    unwrap(await object.write('{"id":"1","points":3}', { action: 'update' }))
    unwrap(await object.write(whole, { action: 'upsert' }))
    unwrap(await object.updateWhere('points:>0', '{"points":9}', 0))
    expect(await blocks(objectId)).toEqual(before)
    expect(await idsWhere(object, 'points:9')).toEqual(['1', '2'])
    for (const [q, by] of [
      ['wolf', 'title'],
      ['ab123', 'code'],
      ['unseen', 'note'],
    ] as const) {
      expect(await found(object, q, by), q).toEqual(['1'])
    }
  })

  it.each([
    ['a text changes', '{"id":"1","title":"a bear"}', 'wolf', 'bear', 'title'],
    ['a text that is not stored changes', '{"id":"1","note":"hidden"}', 'unseen', 'hidden', 'note'],
    ['a text goes', '{"id":"1","code":null}', 'ab123', '', 'code'],
    ['a text comes', '{"id":"2","code":"ab-123"}', '', 'ab123', 'code'],
  ])('are written when %s', async (_, patch, gone, come, by) => {
    const { object } = await collection()
    unwrap(await object.write(patch, { action: 'update' }))
    const { id } = JSON.parse(patch) as { id: string }
    if (gone !== '') expect(await found(object, gone, by)).toEqual([])
    if (come !== '') expect(await found(object, come, by)).toContain(id)
  })

  it('get a document again that is updated while a new field is indexed', async () => {
    const object = await newCollection(FIELDS)
    await importAll(object, [{ id: '1', title: 'a wolf', points: 1, kind: 'mammal' }])
    unwrap(await object.alter({ fields: [{ name: 'kind', type: 'string', optional: true }] }))
    unwrap(await object.write('{"id":"1","points":2}', { action: 'update' }))
    expect(await found(object, 'mammal', 'kind')).toEqual(['1'])
  })
})
