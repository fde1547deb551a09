/** Swaps the names of two collections, so that a copy is found under the old name. */
import * as v from 'valibot'
import { database } from '../db/client'
import { type CollectionRow, findCollectionRow, switchPlaces } from '../db/collections'
import { ApiError, unwrap } from '../errors'
import { once } from '../lib/once'
import { collectionObject } from '../search/collection/handle'
import type { CollectionSummary } from '../search/types'
import { forgetConnection } from './clusters'
import { documentsOf } from './engines'
import { forgetNames } from './names'

const Switch = once(() =>
  v.strictObject({
    collection: v.pipe(v.string(), v.minLength(1)),
    documents: v.optional(v.pipe(v.number(), v.integer(), v.minValue(0))),
  }),
)

/**
 * PATCH of a collection with `switch_with`: from now on its name leads to the documents of the other collection, and the other's
 * name to its own. Both names change in one transaction.
 * @param given `collection`: the other one; `documents`: how many each has to have
 * @returns the collection that the name leads to now
 * @throws ApiError 400, 404, 409 if the counts differ
 */
export async function switchCollections(
  env: Cloudflare.Env,
  name: string,
  given: unknown,
): Promise<CollectionSummary> {
  const parsed = v.safeParse(Switch(), given)
  if (!parsed.success) {
    throw new ApiError(
      400,
      '`switch_with` takes `collection`, another collection, and `documents`, the number that each of both has.',
    )
  }
  const { collection: other, documents } = parsed.output
  if (other === name) throw new ApiError(400, '`switch_with` names another collection.')
  const [own, theirs] = [await rowOf(env, name), await rowOf(env, other)]
  if (documents !== undefined) await requireCount(env, [own, theirs], documents)
  await call(env, own, other)
  try {
    await call(env, theirs, name)
    if (!(await switchPlaces(database(env), own, theirs))) {
      throw new ApiError(409, 'One of the collections was changed meanwhile: try again.')
    }
  } catch (error) {
    await Promise.allSettled([call(env, own, name), call(env, theirs, other)])
    throw error
  }
  for (const { objectId } of [own, theirs]) forgetConnection(objectId)
  forgetNames()
  return unwrap(await documentsOf(env, theirs).summary())
}

/** @throws ApiError 400 for an alias, 404 */
async function rowOf(env: Cloudflare.Env, name: string): Promise<CollectionRow> {
  const row = await findCollectionRow(database(env), name)
  if (row === undefined) throw new ApiError(404, `No collection with name \`${name}\` found.`)
  if (row.name !== name) throw new ApiError(400, `\`${name}\` is an alias. Name the collection itself.`)
  return row
}

/** @throws ApiError 409 */
async function requireCount(env: Cloudflare.Env, rows: CollectionRow[], documents: number): Promise<void> {
  const counts = await Promise.all(
    rows.map(async (row) => Number(unwrap(await documentsOf(env, row).summary()).num_documents)),
  )
  if (counts.every((count) => count === documents)) return
  const found = rows.map(({ name }, at) => `\`${name}\` has ${counts[at]}`).join(', ')
  throw new ApiError(409, `Expected ${documents} documents in both collections: ${found}.`)
}

/** An object knows the name of its collection. @throws ApiError 400 */
async function call(env: Cloudflare.Env, { engine, objectId }: CollectionRow, name: string): Promise<void> {
  if (engine === 'object') unwrap(await collectionObject(env, objectId).rename(name))
}
