/** Ids of conversations: random to whoever looks at them, and made from what they stand for. */

import type { Asker, AskRequest } from '../turn/request'
import { isToldApart } from './ownership'
import { sealedId } from './sealed-id'

const DAY_MS = 86_400_000

/** The id of a new conversation, and until when the same request is led to it, in milliseconds since 1970. */
export interface NewId {
  conversationId: string
  /** absent: by its idempotency key at any time, or, being random, never */
  foundUntil?: number
}

/**
 * The id of a new conversation, which a retry of its first request is led to as well: by its idempotency key, else by
 * its fingerprint. Made under a secret of the server, or whoever shares a key could work out the ids of others.
 *
 * A fingerprint leads there for a day. Its object must not begin a second conversation in that time, since whoever
 * began the first one knows the id.
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
 * The id of a conversation that its caller gave a name. Another key's conversation of the same name is another one, and
 * so is another user's, another visitor's, and that of somebody who merely claims to be the user. There is no secret in
 * it: the name alone lets its asker in, and the conversation has to be found again when the server's secrets have changed.
 * @param scope where the name counts
 */
export function namedConversationId(asker: Asker, scope: string, name: string): Promise<string> {
  const { owner, userId, proofs: [proof = ''] = [] } = asker
  const visitor = proof.startsWith('visitor:') ? [proof] : []
  const claimed = userId !== '' && !isToldApart(asker) ? ['claimed'] : []
  return digestOf('named conversations', [owner, userId, 'name', scope, name, ...visitor, ...claimed])
}

async function digestOf(secret: string, parts: (string | number | undefined)[]): Promise<string> {
  const key = await crypto.subtle.importKey(
    'raw',
    encoder.encode(secret),
    { name: 'HMAC', hash: 'SHA-256' },
    false,
    ['sign'],
  )
  const signature = await crypto.subtle.sign('HMAC', key, encoder.encode(JSON.stringify(parts)))
  return asUuid(new Uint8Array(signature))
}

const encoder = new TextEncoder()

/** The first 122 bits of a digest as a UUID of version 4. */
function asUuid(digest: Uint8Array): string {
  const bytes = digest.slice(0, 16)
  bytes[6] = (bytes[6]! & 0x0f) | 0x40
  bytes[8] = (bytes[8]! & 0x3f) | 0x80
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
  return [8, 12, 16, 20].reduceRight((text, at) => `${text.slice(0, at)}-${text.slice(at)}`, hex)
}
