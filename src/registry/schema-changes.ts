/** Which collections are being indexed again, after a change of their schema. */
import { database } from '../db/client'
import { isOwn, listCollectionRows } from '../db/collections'
import { mapFew } from '../lib/few'
import { collectionObject } from '../search/collection/handle'
import type { SchemaProgress } from '../search/types'

/** Objects asked at the same time. */
const AT_ONCE = 20

/** @param isOpen whether the caller may know of a collection */
export async function schemaChanges(
  env: Cloudflare.Env,
  isOpen: (collection: string) => boolean,
): Promise<({ collection: string } & SchemaProgress)[]> {
  const rows = (await listCollectionRows(database(env), 0, 0)).filter((row) => isOwn(row) && isOpen(row.name))
  const all = await mapFew(rows, AT_ONCE, async ({ name, objectId }) => {
    const progress = await collectionObject(env, objectId).schemaProgress()
    return progress === undefined ? [] : [{ collection: name, ...progress }]
  })
  return all.flat()
}
