/**
 * Changes of a collection as a whole: sealing its credentials again, renaming it, and removing all documents.
 */
import { ApiError } from '../../errors'
import { isHistoryShaped } from '../../history/turns'
import type { Store } from '../documents/store'
import { resealSchema } from '../schema/embedding-secrets'
import type { Step } from '../types'
import { settleCascade } from './links'
import type { Open } from './open'

/** Seals the credentials of embedders under the newest key. @returns how many there were @throws ApiError 409 */
export async function reseal(store: Store, env: Cloudflare.Env): Promise<number> {
  const before = store.schema
  const { schema, count } = await resealSchema(before, env)
  if (count === 0) return 0
  if (store.schema !== before) throw new ApiError(409, 'The collection was altered meanwhile: try again.')
  store.saveSchema(schema)
  return count
}

/**
 * Renames the collection. The registry decides which name leads here.
 * @throws ApiError 400 for a collection that others know by this name
 */
export function rename({ store, mirror }: Open, name: string): void {
  const { schema } = store
  if (mirror !== undefined || isHistoryShaped(schema)) {
    throw new ApiError(400, `\`${schema.name}\` holds messages of conversations, which stay where they are.`)
  }
  if (schema.fields.some(({ reference }) => reference) || (schema.linked?.referrers.length ?? 0) > 0) {
    throw new ApiError(400, `\`${schema.name}\` is joined with others, which a cluster cannot do.`)
  }
  if (schema.name !== name) store.saveSchema({ ...schema, name })
}

/** Removes all documents. @param open absent: the collection is gone */
export async function truncate(storage: DurableObjectStorage, open: Open | undefined): Promise<Step> {
  if (open === undefined) return { count: 0, done: true }
  const { store, mirror } = open
  const count = storage.transactionSync(() => {
    mirror?.recordAll()
    const removed = store.truncate()
    store.finish()
    return removed
  })
  await mirror?.settle()
  await settleCascade(open)
  return { count, done: true }
}
