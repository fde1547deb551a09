/** Seals every secret in D1 under the present ENCRYPTION_KEY, after a rotation. */
import { and, eq, isNotNull } from 'drizzle-orm'
import type { Database } from './client'
import { apiKeys, collections, conversationModels, resources } from './schema'
import { reseal } from './sealing'

/**
 * Does not overwrite a secret that was replaced meanwhile: the new one is already sealed under the present key.
 * @returns how many secrets were sealed again
 * @throws ApiError 400 when one cannot be opened
 */
export async function resealRegistry(db: Database, env: Cloudflare.Env): Promise<number> {
  let count = 0
  const models = await db
    .select({ id: conversationModels.id, sealed: conversationModels.sealedSecrets })
    .from(conversationModels)
    .where(isNotNull(conversationModels.sealedSecrets))
  for (const { id, sealed } of models) {
    const anew = await reseal(sealed!, env)
    if (anew === undefined) continue
    await db
      .update(conversationModels)
      .set({ sealedSecrets: anew })
      .where(and(eq(conversationModels.id, id), eq(conversationModels.sealedSecrets, sealed!)))
    count += 1
  }
  const keys = await db
    .select({ id: apiKeys.id, sealed: apiKeys.sealedValue })
    .from(apiKeys)
    .where(isNotNull(apiKeys.sealedValue))
  for (const { id, sealed } of keys) {
    const anew = await reseal(sealed!, env)
    if (anew === undefined) continue
    await db
      .update(apiKeys)
      .set({ sealedValue: anew })
      .where(and(eq(apiKeys.id, id), eq(apiKeys.sealedValue, sealed!)))
    count += 1
  }
  const stored = await db
    .select({ kind: resources.kind, id: resources.id, sealed: resources.sealed })
    .from(resources)
    .where(isNotNull(resources.sealed))
  for (const { kind, id, sealed } of stored) {
    const anew = await reseal(sealed!, env)
    if (anew === undefined) continue
    await db
      .update(resources)
      .set({ sealed: anew })
      .where(and(eq(resources.kind, kind), eq(resources.id, id), eq(resources.sealed, sealed!)))
    count += 1
  }
  const clusters = await db
    .select({ objectId: collections.objectId, sealed: collections.sealedCredentials })
    .from(collections)
    .where(isNotNull(collections.sealedCredentials))
  for (const { objectId, sealed } of clusters) {
    const anew = await reseal(sealed!, env)
    if (anew === undefined) continue
    await db
      .update(collections)
      .set({ sealedCredentials: anew })
      .where(and(eq(collections.objectId, objectId), eq(collections.sealedCredentials, sealed!)))
    count += 1
  }
  return count
}
