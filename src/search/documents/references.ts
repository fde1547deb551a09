/** Checks that documents refer to existing documents of other collections, before they are written. */

import { ApiError, type Outcome, unlessRefused, unwrap } from '../../errors'
import { readExactList } from '../../lib/stored-json'
import { columnOf } from '../fragment'
import { refuse } from '../refused'
import { referenceOf } from '../schema/field'
import type { FieldPlan } from '../schema/plan'
import { findField } from '../schema/schema'
import { leaves } from '../schema/values'
import { type Draft, parseDocument } from './document'
import { keysOf } from './join-keys'
import { isTooLong, tooLong } from './rows'
import type { Store } from './store'
import type { Incoming } from './writer'

/**
 * The other collection's answer about some keys: as JSON texts, those that no document has and those that several
 * have.
 */
export interface ReferenceAnswer {
  /** the type of its field, without brackets */
  type: string
  missing: string[]
  multiple: string[]
}

/**
 * Asks the collection that a field refers to. @param keys a JSON list
 * @returns undefined when it does not exist
 */
type AskReference = (plan: FieldPlan, keys: string) => Promise<Outcome<ReferenceAnswer> | undefined>

/**
 * The faults of a batch. Each collection that it refers to is asked once for each reference field.
 * @returns an error for each item whose references are refused
 */
export async function referenceFaults(
  store: Store,
  items: readonly Incoming[],
  ask: AskReference,
): Promise<(ApiError | undefined)[]> {
  // Ignore lines that do not parse. Writing them reports the error.
  const drafts = items.map(({ document }) =>
    typeof document === 'string' ? unlessRefused(() => parseDocument(document)) : document,
  )
  const faults: (ApiError | undefined)[] = items.map(() => undefined)
  await Promise.all(
    store.plan.references.map(async (plan) => {
      const values = drafts.map((draft, index) => {
        if (draft === undefined) return []
        const read = referencedValues(plan, draft, items[index]!.action)
        if (!(read instanceof ApiError)) return read
        faults[index] ??= read
        return []
      })
      const keys = new Map(
        values
          .flat()
          .filter(isKey)
          .map((value) => [JSON.stringify(value), value]),
      )
      if (values.every((some) => some.length === 0)) return
      const list = `[${[...keys.keys()].join(',')}]`
      const judge = isTooLong(list) ? () => tooLong() : judgeOf(plan, await ask(plan, list))
      for (const [index, some] of values.entries()) {
        for (const value of some) faults[index] ??= judge(value)
      }
    }),
  )
  return faults
}

const isKey = (value: unknown): boolean =>
  typeof value === 'string' || typeof value === 'bigint' || Number.isInteger(value)

const refused = (message: string): ApiError => new ApiError(400, message)

function referencedValues(
  { field, name, path }: FieldPlan,
  draft: Draft,
  action: Incoming['action'],
): unknown[] | ApiError {
  const found = leaves(draft, name, path)
  if (found.length === 0) {
    const whole = action === 'create' || action === 'upsert'
    if (!whole || field.optional || field.async_reference) return []
    return refused(`Missing the required reference field \`${name}\` in the document.`)
  }
  const values = found.flatMap(({ value }) => value)
  if (!values.includes(null)) return values
  return field.optional
    ? values.filter((value) => value !== null)
    : refused(`Field \`${name}\` cannot have \`null\` value.`)
}

/** Returns a check of values by the other collection's answer. */
function judgeOf(
  { field, name }: FieldPlan,
  outcome: Outcome<ReferenceAnswer> | undefined,
): (value: unknown) => ApiError | undefined {
  if (field.async_reference) return () => undefined
  const { collection, field: target } = referenceOf(field)
  if (outcome === undefined) return () => refused(`Referenced collection \`${collection}\` not found.`)
  // Throw server errors: a fault of the other object is not the document's.
  if (!outcome.ok && outcome.error.status >= 500) unwrap(outcome)
  if (!outcome.ok) return () => refused(outcome.error.message)
  const { type } = outcome.value
  const missing = new Set(outcome.value.missing)
  const multiple = new Set(outcome.value.multiple)
  return (value) => {
    if (type === 'string' ? typeof value !== 'string' : !isKey(value) || typeof value === 'string') {
      return refused(
        target === 'id'
          ? `Field \`${name}\` must have string value.`
          : `Field \`${name}\` must have \`${type}\` value.`,
      )
    }
    const key = JSON.stringify(value)
    if (!missing.has(key) && !multiple.has(key)) return undefined
    const inCollection = `in the collection \`${collection}\`.`
    if (target === 'id')
      return refused(`Referenced document having \`id: ${value}\` not found ${inCollection}`)
    const query = typeof value === 'string' ? `${target}:= \`${value}\`` : `${target}: ${value}`
    return refused(
      missing.has(key)
        ? `Reference document having \`${query}\` not found ${inCollection}`
        : `Multiple documents having \`${query}\` found ${inCollection}`,
    )
  }
}

// =============================================================================
// Updates or deletes documents whose referenced documents were deleted.

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
  const seqs = columnOf<number>(
    store.sql,
    `SELECT DISTINCT seq FROM join_keys WHERE field = ? AND key IN (SELECT value FROM json_each(?))
        AND seq <= ? LIMIT ?`,
    name,
    keys,
    newest,
    DOCUMENTS_A_STEP,
  )
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

// =============================================================================
// Makes the join keys of fields that other collections refer to.

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
  if (field === undefined)
    refuse(`Referenced field \`${name}\` not found in the collection \`${collection}\`.`)
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
