/** What a collection keeps in `meta` is checked when it is read. */

import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, it } from 'vitest'
import { writeMeta } from '../../src/search/meta'
import { readSchema } from '../../src/search/schema/plan'
import { CREATE, importAll, newObject } from './object'

const FIELDS = [
  { name: 'constructor', type: 'string' },
  { name: 'price.*', type: 'float', optional: true },
  {
    name: 'e',
    type: 'float[]',
    embed: { from: ['constructor'], model_config: { model_name: 'local/hash-16', url: 5 } },
  },
]

const schemaIn = (objectId: string) =>
  runInDurableObject(env.COLLECTION.get(env.COLLECTION.idFromName(objectId)), (_, { storage }) =>
    readSchema(storage.sql),
  )

it('is the whole schema, whatever its fields are called and its models are given', async () => {
  const { object, objectId } = newObject()
  await object.create(
    { name: 'things', fields: FIELDS, enable_nested_fields: true, metadata: { constructor: 1 } },
    1,
  )
  await importAll(object, [{ id: '1', constructor: 'a', price: { low: 1.5 } }], CREATE)
  const schema = await schemaIn(objectId)
  expect(schema?.fields.map(({ name }) => name)).toEqual([
    'constructor',
    'price.*',
    'e',
    'price',
    'price.low',
  ])
  expect(Object.hasOwn(schema!.slots, 'constructor')).toBe(true)
  expect(Object.hasOwn(schema!.metadata!, 'constructor')).toBe(true)
  expect(schema?.fields[2]?.embed?.model_config.url).toBe(5)
})

it('is refused when it is something else', async () => {
  const { object, objectId } = newObject()
  await object.create({ name: 'things', fields: FIELDS, enable_nested_fields: true }, 1)
  const stub = env.COLLECTION.get(env.COLLECTION.idFromName(objectId))
  await runInDurableObject(stub, (_, { storage }) => {
    writeMeta(storage.sql, 'schema', { ...readSchema(storage.sql), slots: { constructor: 1, e: 'two' } })
    expect(() => readSchema(storage.sql)).toThrow(/Expected Object/)
  })
})
