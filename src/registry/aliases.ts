/** Aliases: further names of collections. */
import { deleteAlias as deleteAliasRow, findAlias, listAliasRows, upsertAlias } from '../db/aliases'
import { database } from '../db/client'
import { isCollectionName } from '../db/collections'
import { ApiError, collectionMissing } from '../errors'
import { isObject } from '../search/schema/values'
import { forgetName } from './names'

/** An alias on the wire. */
export interface Alias {
  collection_name: string
  name: string
}

/** PUT /aliases/:alias. The collection need not exist yet. @throws ApiError 400; 500 if a collection has the name */
export async function putAlias(env: Cloudflare.Env, name: string, body: unknown): Promise<Alias> {
  if (!isObject(body)) throw new ApiError(400, 'Bad JSON.')
  if (!('collection_name' in body)) throw new ApiError(400, 'Parameter `collection_name` is required.')
  const target = body.collection_name
  if (typeof target !== 'string') throw new ApiError(400, 'Parameter `collection_name` must be a string.')
  const db = database(env)
  if (await isCollectionName(db, name)) {
    throw new ApiError(500, `Name \`${name}\` conflicts with an existing collection name.`)
  }
  await upsertAlias(db, { name, collectionName: target })
  forgetName(name)
  return { collection_name: target, name }
}

/** @throws ApiError 404 */
export async function getAlias(env: Cloudflare.Env, name: string): Promise<Alias> {
  const row = await findAlias(database(env), name)
  if (row === undefined) throw collectionMissing(name)
  return { collection_name: row.collectionName, name }
}

export async function listAliases(env: Cloudflare.Env): Promise<Alias[]> {
  const rows = await listAliasRows(database(env))
  return rows.map(({ name, collectionName }) => ({ collection_name: collectionName, name }))
}

/** @returns the deleted alias @throws ApiError 404 */
export async function deleteAlias(env: Cloudflare.Env, name: string): Promise<Alias> {
  const row = await deleteAliasRow(database(env), name)
  forgetName(name)
  if (row === undefined) throw collectionMissing(name)
  return { collection_name: row.collectionName, name }
}
