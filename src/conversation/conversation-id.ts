/** Ids of conversations. They look random, but are derived from what they stand for. */

import type { Asker, AskRequest } from '../turn/request'
import { isToldApart } from './ownership'
import { hexOf, hmacOf, sealedId } from './sealed-id'

const DAY_MS = 86_400_000

/** The id of a new conversation, and until when the same request leads to it, in milliseconds since 1970. */
export interface NewId {
  conversationId: string
  /** absent: always, if made from an idempotency key; never, if random */
  foundUntil?: number
}

/**
 * Makes the id of a new conversation. A retry of its first request gets the same id, from its idempotency key
 * or else its fingerprint. A server secret goes into it. Otherwise anyone who shares a key could compute other
 * people's ids.
 *
 * A fingerprint leads there for a day. Within that time the object must not begin a second conversation, since
 * whoever began the first one knows the id.
 */
export async function newConversationId(
  env: Cloudflare.Env,
  { asker, idempotencyKey, fingerprint }: Pick<AskRequest, 'asker' | 'idempotencyKey' | 'fingerprint'>,
): Promise<NewId> {
  const secret = env.ENCRYPTION_KEY ?? env.ADMIN_API_KEY
  const day = Math.floor(Date.now() / DAY_MS)
  if ((idempotencyKey === undefined && fingerprint === undefined) || !secret) {
    return { conversationId: await sealedId(env) }
  }
  const { owner, userId, proofs: [proof] = [] } = asker
  const named = idempotencyKey === undefined ? ['request', fingerprint, day] : ['key', idempotencyKey]
  const digest = await digestOf(`conversation ids ${secret}`, [
    owner,
    userId,
    ...named,
    ...(proof === undefined ? [] : [proof]),
  ])
  const conversationId = await sealedId(env, digest)
  return { conversationId, ...(idempotencyKey === undefined && { foundUntil: (day + 1) * DAY_MS }) }
}

/**
 * Makes the id of a conversation that its caller named. The same name gives another id for another key, another
 * user, another visitor, and somebody who only claims to be the user. It contains no secret: the name alone
 * lets its asker in, and the id must stay the same when the server's secrets change.
 * @param scope where the name is unique
 */
export function namedConversationId(asker: Asker, scope: string, name: string): Promise<string> {
  const { owner, userId, proofs: [proof = ''] = [] } = asker
  const visitor = proof.startsWith('visitor:') ? [proof] : []
  const claimed = userId !== '' && !isToldApart(asker) ? ['claimed'] : []
  return digestOf('named conversations', [owner, userId, 'name', scope, name, ...visitor, ...claimed])
}

const digestOf = async (secret: string, parts: (string | number | undefined)[]): Promise<string> =>
  asUuid(await hmacOf(secret, JSON.stringify(parts)))

/** The first 122 bits of a digest as a UUID of version 4. */
function asUuid(digest: Uint8Array): string {
  const bytes = digest.slice(0, 16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x40
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  return [8, 12, 16, 20].reduceRight((text, at) => `${text.slice(0, at)}-${text.slice(at)}`, hexOf(bytes))
}
