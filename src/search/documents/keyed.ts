/** Makes the join keys of fields that other collections refer to. */

import { ApiError } from '../../errors'
import { columnOf } from '../fragment'
import { findField } from '../schema/schema'
import { keysOf } from './join-keys'
import type { Store } from './store'

/** Documents that are read before other requests get a turn. */
const STEP = 500

/** By field: keys that are being made. Further callers wait for the same work. */
const underWay = new WeakMap<Store, Map<string, Promise<void>>>()

/**
 * Makes the keys of a field that another collection refers to, at their first use.
 * @throws ApiError 400 for a field that cannot be referred to
 */
export async function ensureKeyed(store: Store, collection: string, name: string): Promise<void> {
  if (name === 'id' || store.plan.keyed.some((plan) => plan.name === name && plan.keysComplete)) return
  const ongoing = underWay.get(store) ?? new Map<string, Promise<void>>()
  underWay.set(store, ongoing)
  const making = ongoing.get(name) ?? makeKeys(store, collection, name).finally(() => ongoing.delete(name))
  ongoing.set(name, making)
  return making
}

async function makeKeys(store: Store, collection: string, name: string): Promise<void> {
  const field = findField(store.schema, name)
  const refuse = (message: string): never => {
    throw new ApiError(400, message)
  }
  if (field === undefined)
    return refuse(`Referenced field \`${name}\` not found in the collection \`${collection}\`.`)
  if (!field.index)
    refuse(`Referenced field \`${name}\` in the collection \`${collection}\` must be indexed.`)
  if (!/^(string|int32|int64)(\[\])?$/.test(field.type)) {
    refuse(`Cannot add a reference to \`${collection}.${name}\` of type \`${field.type}\`.`)
  }
  // Every write stores its keys from now on. Then add those of older documents.
  markKeyed(store, name, false)
  const planned = () => store.plan.keyed.find((each) => each.name === name)
  for (let after = -1; ; await scheduler.wait(0)) {
    if (store.closed) throw new ApiError(404, 'Collection not found')
    const plan = planned()
    // The field was dropped during the work, together with its keys. Try again: it may have been added anew.
    if (plan === undefined) return makeKeys(store, collection, name)
    const seqs = columnOf<number>(
      store.sql,
      'SELECT seq FROM documents WHERE seq > ? ORDER BY seq LIMIT ?',
      after,
      STEP,
    )
    for (const [seq, document] of store.read(seqs, true, true))
      store.writeKeys(seq, [[name, keysOf(plan, document)]])
    if (seqs.length < STEP) break
    after = seqs.at(-1)!
  }
  markKeyed(store, name, true)
}

function markKeyed(store: Store, name: string, complete: boolean): void {
  const { linked } = store.schema
  store.saveSchema({
    ...store.schema,
    linked: { referrers: [], ...linked, keyed: { ...linked?.keyed, [name]: complete } },
  })
}
