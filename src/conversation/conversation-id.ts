/** Ids of conversations: random to whoever looks at them, and made from what they stand for. */
import { ADMIN } from './ownership'
import type { Asker, AskRequest } from './request'

/**
 * The id of a new conversation, which a retry of its first request is led to as well: by its idempotency key, else by
 * its fingerprint. Made under a secret of the server, or whoever shares a key could work out the ids of others.
 */
export async function newConversationId(
  env: Cloudflare.Env,
  {
    asker = ADMIN,
    idempotencyKey,
    fingerprint,
  }: Pick<AskRequest, 'asker' | 'idempotencyKey' | 'fingerprint'>,
): Promise<string> {
  if (idempotencyKey === undefined && fingerprint === undefined) return crypto.randomUUID()
  const named = idempotencyKey === undefined ? ['request', fingerprint] : ['key', idempotencyKey]
  const secret = env.ENCRYPTION_KEY ?? env.ADMIN_API_KEY
  if (!secret) return crypto.randomUUID()
  return digestOf(`conversation ids ${secret}`, [asker.owner, asker.userId, ...named])
}

/**
 * The id of a conversation that its caller gave a name. Another key's conversation of the same name is another one, and
 * so is another user's. There is no secret in it: the name alone lets its key and user in, and the conversation has to
 * be found again when the server's secrets have changed.
 * @param scope where the name counts
 */
export const namedConversationId = ({ owner, userId }: Asker, scope: string, name: string): Promise<string> =>
  digestOf('named conversations', [owner, userId, 'name', scope, name])

async function digestOf(secret: string, parts: (string | undefined)[]): Promise<string> {
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
