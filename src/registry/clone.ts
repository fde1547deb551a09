/** Clones collections. */
import * as v from 'valibot'
import { ApiError, unwrap } from '../errors'
import { once } from '../lib/once'
import { collectionObject } from '../search/collection/handle'
import type { CollectionRpc } from '../search/collection/rpc'
import type { Origin } from '../search/fault-log'
import { openFields } from '../search/schema/embedding-secrets'
import { isObject } from '../search/schema/values'
import type { CollectionSchema, CollectionSummary } from '../search/types'
import { createCollection, dropCollection } from './collections'
import { ownObject } from './engines'
import { findCollection, lookUp } from './names'

/**
 * POST /collections?src_name=: copies a schema, and the documents if asked to.
 * @param body only its `name` counts
 * @throws ApiError 400; with the status of the first document that could not be copied, and then there is no clone
 */
export async function cloneCollection(
  env: Cloudflare.Env,
  sourceName: string,
  body: unknown,
  copyDocuments: boolean,
  origin?: Origin,
): Promise<CollectionSummary> {
  const handle = await lookUp(env, sourceName)
  if (handle === undefined) throw new ApiError(400, `Collection with name \`${sourceName}\` not found.`)
  if (!isObject(body) || typeof body.name !== 'string') {
    throw new ApiError(400, 'Collection name must be provided.')
  }
  const source = ownObject(env, handle)
  const schema = cloneable(unwrap(await source.schema()))
  // A new collection accepts credentials only in clear.
  const fields = await openFields(schema.fields, env)
  const summary = await createCollection(env, { ...schema, fields, name: body.name }, origin)
  if (!copyDocuments) return summary
  const { objectId } = await findCollection(env, body.name)
  const target = collectionObject(env, objectId)
  try {
    await copy(source, target)
    return unwrap(await target.summary())
  } catch (error) {
    // Delete an incomplete clone. It would look complete, and the next attempt would find its name taken.
    await dropCollection(env, body.name)
    if (!(error instanceof ApiError)) throw error
    throw new ApiError(
      error.status,
      `The documents of \`${sourceName}\` could not be copied: ${error.message}`,
    )
  }
}

/** A schema as its owner wrote it. Dimensions that came from a model are left out, so that the model is asked again. */
const cloneable = (schema: CollectionSchema): CollectionSchema => ({
  ...schema,
  fields: schema.fields.map((field) => {
    if (field.embed === undefined || field.asks_dimensions === true) return field
    const { num_dim: _answered, ...asked } = field
    return asked
  }),
})

const refusal = once(() => v.object({ code: v.number(), error: v.string() }))

/** Lines in one import call. */
const COPY_LINES = 500

/** @throws ApiError for the first document that the target refuses */
async function copy(source: CollectionRpc, target: CollectionRpc): Promise<void> {
  const all = { filterBy: '', include: '', exclude: '', unstored: true }
  for (let cursor = 0, done = false; !done; ) {
    const page = unwrap(await source.exportPage(all, cursor))
    const lines = page.lines === '' ? [] : page.lines.split('\n')
    for (let from = 0; from < lines.length; from += COPY_LINES) {
      const { results } = unwrap(
        await target.importLines(lines.slice(from, from + COPY_LINES), {
          action: 'create',
          returnDocument: false,
          returnId: false,
        }),
      )
      const refused = results.split('\n').find((line) => !line.startsWith('{"success":true'))
      if (refused !== undefined) {
        const { code, error } = v.parse(refusal(), JSON.parse(refused))
        throw new ApiError(code, error)
      }
    }
    cursor = page.cursor
    done = page.done
  }
}
