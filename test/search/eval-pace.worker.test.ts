/** Filters in an order read documents. A long search counts them, so that others get their turn. */

import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, it } from 'vitest'
import { fragment } from '../../src/search/fragment'
import { EVERYWHERE } from '../../src/search/range'
import { orderBy, parseSort, splitSort } from '../../src/search/request/sort'
import { ordered } from '../../src/search/run/candidates'
import { readSchema } from '../../src/search/schema/stored'
import { makeCollection } from './make-collection'

it('counts the documents that a filter of `_eval` reads', async () => {
  const fields = [
    { name: 'parts', type: 'object[]' },
    { name: 'parts.a', type: 'int32[]' },
    { name: 'parts.b', type: 'int32[]' },
  ]
  const documents = Array.from({ length: 40 }, (_, n) => ({ parts: [{ a: n % 2, b: n }] }))
  const things = await makeCollection(fields, documents, { enable_nested_fields: true })
  const stub = env.COLLECTION.get(env.COLLECTION.idFromName(things.objectId))
  const read = await runInDurableObject(stub, (_, { storage: { sql } }) => {
    const schema = readSchema(sql)!
    const sort = parseSort(splitSort('_eval(parts.{a:=1 && b:>=0}):desc'), schema)
    const counted: number[] = []
    const part = { relation: fragment('SELECT d.seq FROM documents d'), range: EVERYWHERE }
    ordered(part, orderBy(sort, sql, schema, false), { countDocuments: (number) => counted.push(number) })
    return counted
  })
  // Every second one, since the others have no `a` of 1. To test one takes a little longer than to read it.
  expect(read).toEqual([expect.closeTo(20, -1)])
  const { hits } = await things.search({
    q: '*',
    sort_by: '_eval(parts.{a:=1 && b:>=30}):desc',
    per_page: '5',
  })
  expect(hits!.map(({ document }) => (document.parts as { b: number }[])[0]!.b)).toEqual([39, 37, 35, 33, 31])
})
