/** Collections whose full-text index a test fills by SQL. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { Alarm } from '../../src/durable/objects'
import { type Open, openCollection } from '../../src/search/collection/open'
import { readSchema } from '../../src/search/schema/plan'
import { makeCollection } from './make-collection'

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'text', type: 'string' },
]

/** The numbers from 1 to a binding, as `n.i`. */
export const COUNTED = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)'

/** Opens a new collection, whose documents the test puts into the index by SQL. */
export async function withIndex<Result>(
  work: (open: Open, sql: SqlStorage) => Promise<Result>,
): Promise<Result> {
  const { objectId } = await makeCollection(FIELDS, [])
  return runInDurableObject(
    env.COLLECTION.get(env.COLLECTION.idFromName(objectId)),
    (_, { storage, id }: DurableObjectState) =>
      work(
        openCollection(
          { storage, env, objectId: String(id), alarm: new Alarm(storage) },
          readSchema(storage.sql)!,
        ),
        storage.sql,
      ),
  )
}
