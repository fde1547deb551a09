/** Values whose rows are too long once their normal forms are those of this version. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, it } from 'vitest'
import { beginNormFilling, isNormFilling, normFilling } from '../../src/search/collection/norm-filling'
import { Store } from '../../src/search/documents/store'
import { readSchema } from '../../src/search/schema/stored'
import { makeCollection } from './make-collection'
import { putOldForms } from './old-forms'

it.each([
  ['emoji, which had no form', '\u{1f44d}'.repeat(260_000)],
  ['ligatures, which become words', '\ufdfa'.repeat(120_000)],
])('do not stop the forms of the others: %s', { timeout: 60_000 }, async (_, long) => {
  const { objectId } = await makeCollection(
    [{ name: 'one', type: 'string', facet: true }],
    [
      { id: 'long', one: 'x' },
      { id: 'signs', one: 'a-b' },
    ],
  )
  await runInDurableObject(
    env.COLLECTION.get(env.COLLECTION.idFromName(objectId)),
    async (_, { storage }) => {
      const { sql } = storage
      putOldForms(sql)
      sql.exec("UPDATE columns SET s0 = ?, n0 = '' WHERE seq = 0", long)
      beginNormFilling(sql)
      const store = new Store(sql, readSchema(sql)!, 0)
      while (isNormFilling(store.schema)) await normFilling(storage, store).step()
      expect(sql.exec('SELECT n0 FROM columns WHERE seq = 1').one().n0).toBe('ab')
    },
  )
})
