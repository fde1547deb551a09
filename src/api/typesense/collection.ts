/** The collection that a route names. */

import type { DocumentStore } from '../../engines/port'
import { documentsOf } from '../../registry/engines'
import { findCollection } from '../../registry/names'

/** @throws ApiError 404 when neither a collection nor an alias has that name */
export async function openCollection(env: Cloudflare.Env, name: string): Promise<DocumentStore> {
  return documentsOf(env, await findCollection(env, name))
}
