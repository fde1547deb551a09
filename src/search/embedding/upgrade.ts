/**
 * Another version of Parley may have other built-in models under the same names. Then a collection's vectors are made
 * again in the background, as if its field got another model (replacement.ts). Until all are there, searches use the
 * old vectors with the model that made them.
 */

import type { Store } from '../documents/store'
import { replacementOf } from '../schema/layout'
import type { Field } from '../types'
import { servedNow, serverOf } from '../vectors/embedders'
import { beginReplacement } from './replacement'

const isBuiltIn = (model: string | undefined): boolean => model?.startsWith('local/') === true

/**
 * Whether a field's built-in model has changed. Only built-in models are replaced: a provider's vectors cost money,
 * so their owner decides.
 */
function isOutdated(field: Field, env: Cloudflare.Env): boolean {
  if (field.embed === undefined) return false
  const current = servedNow(field, env).embed?.served_by
  const server = serverOf(field, env)
  return current !== server && isBuiltIn(current) && isBuiltIn(server)
}

/** Starts replacing the vectors of outdated fields. */
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
