/**
 * A collection's links with others: the collections that it refers to, those that refer to it, and its calls to them.
 */

import { RowCache } from '../../db/client'
import { findCollectionRow, isOwn } from '../../db/registry'
import { type ApiError, logFailure, type Outcome, unwrap } from '../../errors'
import { removeAll } from '../documents/bulk'
import { keysIn, nextRemoved, settleRemoved, stillRemoved } from '../documents/join-keys'
import { cascadeFrom, ensureKeyed, type ReferenceAnswer, referenceFaults } from '../documents/references'
import type { Store } from '../documents/store'
import type { Incoming, Writer } from '../documents/writer'
import type { JoinPort } from '../run/joins'
import { referenceOf } from '../schema/field'
import type { Referrer } from '../schema/layout'
import type { FieldPlan } from '../schema/plan'
import { findField } from '../schema/schema'
import type { JoinAnswer, JoinPlace } from '../types'
import type { Background, Surroundings } from '../work'
import type { BackgroundWorks } from './background'
import { type Cascaded, type CascadeSource, peer } from './rpc'

/** How long the object of a name is remembered, in milliseconds. */
const CACHE_MS = 3_000
const objectIds = new RowCache<string>('a referenced collection', CACHE_MS)

/** A collection in a cluster has no object that could be asked. */
const objectIdOf = async (env: Cloudflare.Env, name: string): Promise<string | undefined> => {
  const row = await findCollectionRow(env.DB, name)
  return row && isOwn(row) ? row.objectId : undefined
}

const lookUp = (env: Cloudflare.Env, name: string): Promise<string | undefined> =>
  objectIds.find(name, () => objectIdOf(env, name))

/** Steps of a cascade that the reply to a delete waits for. The rest follows in the background. */
const STEPS_AWAITED = 20

/** How a collection's searches reach others. */
export function joinPort({ env, objectId }: Surroundings, open: () => Pick<Parts, 'store'>): JoinPort {
  return {
    objectId,
    lookUp: (name) => lookUp(env, name),
    ensureKeyed: (field) => ensureKeyed(open().store, open().store.schema.name, field),
    abandon: ({ objectId: of }, ticket) =>
      void peer(env, of)
        .abandon(ticket)
        .catch(() => {}),
    ask: async (place, question) => named(place, await peer(env, place.objectId).join(question)),
  }
}

/** The answer, or its error with the name of the collection that it comes from. */
function named({ name }: JoinPlace, outcome: Outcome<JoinAnswer>): JoinAnswer {
  if (outcome.ok) return outcome.value
  const { status, code, message } = outcome.error
  // The message of `not_joined` names the collection already.
  const named = code === 'not_joined' || (status !== 400 && status !== 404)
  const prefixed = named ? message : `Referenced collection \`${name}\`: ${message}`
  return unwrap({ ok: false, error: { ...outcome.error, message: prefixed } })
}

/**
 * Fields that have been announced to their target, by the target's object. They are announced again after this object
 * has slept.
 */
export type Told = Set<string>

/** The parts of an open collection that links need. */
interface Parts {
  store: Store
  writer: Writer
  background: Pick<BackgroundWorks, 'kick'>
  cascade: Background
}

/**
 * Checks references of documents that are about to be written.
 * @returns an error for each item whose references are refused
 */
export async function checkReferences(
  { env, objectId }: Surroundings,
  { store }: Pick<Parts, 'store'>,
  told: Told,
  items: readonly Incoming[],
): Promise<(ApiError | undefined)[]> {
  if (store.plan.references.length === 0) return []
  const ask = async ({ field, name }: FieldPlan, keys: string) => {
    const { collection, field: target } = referenceOf(field)
    const place = await lookUp(env, collection)
    if (place === undefined) return undefined
    const cascades = field.cascade_delete !== false
    const known = JSON.stringify([place, name, target, cascades])
    // The document referred to may arrive later. Only its collection must learn of the reference.
    if (field.async_reference && told.has(known)) return undefined
    const answer = await peer(env, place).refer(
      { objectId, field: name, target, cascades },
      collection,
      field.async_reference ? '[]' : keys,
    )
    if (answer.ok) told.add(known)
    return answer
  }
  return referenceFaults(store, items, ask)
}

/** Notes who refers to a field here, and looks keys up. @param as the name that the referrer uses for this collection */
export async function answerReference(
  { store }: Pick<Parts, 'store'>,
  referrer: Referrer,
  as: string,
  keys: string,
): Promise<ReferenceAnswer> {
  const { target } = referrer
  await ensureKeyed(store, as, target)
  const { linked } = store.schema
  const same = ({ objectId, field }: Referrer) => objectId === referrer.objectId && field === referrer.field
  if (JSON.stringify(linked?.referrers.find(same)) !== JSON.stringify(referrer)) {
    const others = linked?.referrers.filter((each) => !same(each)) ?? []
    store.saveSchema({
      ...store.schema,
      linked: { keyed: {}, ...linked, referrers: [...others, referrer] },
    })
  }
  const relation = keysIn(target)
  const counts = store.sql
    .exec<{ key: string; count: number }>(
      `SELECT json_quote(v.value) AS key,
          (SELECT count(*) FROM (SELECT 1 FROM ${relation.sql} k WHERE k.key = v.value LIMIT 2)) AS count
        FROM json_each(?) v`,
      ...relation.bindings,
      keys,
    )
    .toArray()
  const having = (wanted: number) => counts.filter(({ count }) => count === wanted).map(({ key }) => key)
  const type = target === 'id' ? 'string' : findField(store.schema, target)!.type.replace('[]', '')
  return { type, missing: having(0), multiple: having(2) }
}

/**
 * One step of the consequences of deletes in another collection. An alias may have moved, and a field may have been
 * replaced, since that collection was told who refers to it. So this reads from D1 what the field refers to now.
 * @throws what D1 throws: the other collection asks again
 */
export async function cascade(
  { env, storage }: Surroundings,
  { store, writer, background, cascade: work }: Parts,
  told: Told,
  { field: name, keys, from }: { field: string; keys: string; from: CascadeSource },
): Promise<Cascaded> {
  const before = store.schema
  // The keys of some documents may be missing. The other collection asks again.
  if (store.isReindexing()) throw new Error('Documents are being indexed again.')
  const { newest } = store.sql
    .exec<{ newest: number }>('SELECT coalesce(max(seq), 0) AS newest FROM documents')
    .one()
  const plan = store.plan.references.find((each) => each.name === name)
  const reference = plan && plan.field.cascade_delete !== false ? referenceOf(plan.field) : undefined
  const place = reference?.field === from.target ? await objectIdOf(env, reference.collection) : undefined
  if (!store.closed && store.schema !== before) return 'more'
  if (store.closed || place !== from.objectId) {
    // The other collection forgets this one. Announce the field again if it refers there again.
    told.clear()
    return 'gone'
  }
  const { remove, update, more } = cascadeFrom(store, name, keys, newest)
  if (remove.length > 0) removeAll(storage, store, remove)
  if (update.length > 0) writer.write(update)
  if (store.schema.linked !== undefined) background.kick(work)
  return more ? 'more' : 'done'
}

/** Tells the referring collections which documents are gone. */
export function cascading(
  { env, objectId }: Surroundings,
  open: () => Pick<Parts, 'store'> | undefined,
): Background {
  const step = async (): Promise<number | undefined> => {
    const store = open()?.store
    const next = store && nextRemoved(store.sql)
    if (store === undefined || next === undefined) return undefined
    const { field: target } = next
    let { keys } = next
    let more = false
    for (const referrer of store.schema.linked?.referrers ?? []) {
      if (!referrer.cascades || referrer.target !== target) continue
      const object = peer(env, referrer.objectId)
      const answer = await object.cascade(referrer.field, keys, { objectId, target })
      if (store.closed) return undefined
      if (answer === 'gone') forget(store, referrer)
      more ||= answer === 'more'
      // During the call a document may have been written again, and others that refer to it.
      keys = stillRemoved(store.sql, target, keys)
      if (keys === '[]') return 0
    }
    if (!more) settleRemoved(store.sql, target, keys)
    return 0
  }
  return { name: 'cascade', step }
}

function forget(store: Store, referrer: Referrer): void {
  const linked = store.schema.linked!
  const referrers = linked.referrers.filter((each) => each !== referrer)
  if (referrers.length < linked.referrers.length)
    store.saveSchema({ ...store.schema, linked: { ...linked, referrers } })
}

/** Follows the references to documents that were just deleted. Long work is left to the background. */
export async function settleCascade({ store, background, cascade: work }: Parts): Promise<void> {
  const { linked } = store.schema
  if (linked === undefined || nextRemoved(store.sql) === undefined) return
  try {
    for (let steps = 0; steps < STEPS_AWAITED; steps++) if ((await work.step()) === undefined) return
  } catch (error) {
    logFailure('a cascade goes on in the background', error, { collection: store.schema.name })
  }
  if (!store.closed && nextRemoved(store.sql) !== undefined) background.kick(work)
}
