/** Updates or deletes documents whose referenced documents were deleted. */

import { readExactList } from '../../lib/stored-json'
import { leaves } from '../schema/values'
import { keysOf } from './join-keys'
import type { Store } from './store'
import type { Incoming } from './writer'

/** Documents that one step of a cascade changes. */
const DOCUMENTS_A_STEP = 500

/**
 * Handles one step of documents that refer to deleted ones. Deleted keys are removed from a list. A document is
 * deleted if this field then refers to nothing, unless the field is optional and another reference field has a value.
 * @param keys of deleted documents, as a JSON list
 * @param newest the last document here that may refer to them. Later ones refer to documents that were written again.
 */
export function cascadeFrom(
  store: Store,
  name: string,
  keys: string,
  newest: number,
): { remove: [number, string][]; update: Incoming[]; more: boolean } {
  const plan = store.plan.references.find((each) => each.name === name)
  if (plan === undefined) return { remove: [], update: [], more: false }
  const seqs = store.sql
    .exec<{ seq: number }>(
      `SELECT DISTINCT seq FROM join_keys WHERE field = ? AND key IN (SELECT value FROM json_each(?))
        AND seq <= ? LIMIT ?`,
      name,
      keys,
      newest,
      DOCUMENTS_A_STEP,
    )
    .toArray()
    .map(({ seq }) => seq)
  const gone = new Set(readExactList(keys).map((key) => JSON.stringify(key)))
  const remove: [number, string][] = []
  const update: Incoming[] = []
  for (const [seq, document] of store.read(seqs, true)) {
    const { id } = document
    const left = keysOf(plan, document).filter((key) => !gone.has(JSON.stringify(key)))
    const others = store.plan.references.some((each) => each !== plan && keysOf(each, document).length > 0)
    const [leaf] = leaves(document, name, plan.path)
    const nested = leaf?.parent !== document
    if (left.length === 0 && !(plan.field.optional && others)) remove.push([seq, id])
    else {
      // The next step must not find the document again, even if its update is refused.
      store.writeKeys(seq, [[name, left]])
      if (!nested) update.push({ document: { id, [name]: left.length > 0 ? left : null }, action: 'update' })
    }
  }
  return { remove, update, more: seqs.length === DOCUMENTS_A_STEP }
}
