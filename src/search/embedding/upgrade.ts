/**
 * A collection that another version of Parley left: the built-in model under a name may be another one by now. Its
 * vectors are made anew in the background, by the machinery that gives a field another model (replacement.ts). Until
 * all are there, the old ones are searched with the model that made them.
 */

import type { Store } from '../documents/store'
import { replacementOf } from '../schema/layout'
import type { Field } from '../types'
import { servedNow, serverOf } from '../vectors/embedders'
import { beginReplacement } from './replacement'

const isBuiltIn = (model: string | undefined): boolean => model?.startsWith('local/') === true

/** Only from one built-in model to another: a provider's vectors cost money, which their owner decides about. */
function isOutdated(field: Field, env: Cloudflare.Env): boolean {
  if (field.embed === undefined) return false
  const current = servedNow(field, env).embed?.served_by
  const server = serverOf(field, env)
  return current !== server && isBuiltIn(current) && isBuiltIn(server)
}

/** Begins to make the vectors of outdated fields anew. Changes nothing where there are none. */
export function upgradeEmbeddings(storage: DurableObjectStorage, store: Store, env: Cloudflare.Env): void {
  const outdated = store.schema.fields.filter(
    (field) => isOutdated(field, env) && replacementOf(store.schema, field.name) === undefined,
  )
  if (outdated.length === 0) return
  storage.transactionSync(() => {
    const schema = structuredClone(store.schema)
    for (const field of outdated) beginReplacement(store, schema, servedNow(field, env))
    store.saveSchema(schema)
  })
}
