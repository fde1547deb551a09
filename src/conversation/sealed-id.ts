/**
 * Sealed ids show that this server made them.
 *
 * Asking an object for its conversation creates the object, and with it a file, even if there is no
 * conversation. Callers can send any id. So the last eight digits of an id that the server makes are a digest
 * of the others, under its secret. An id without that seal reaches its object only if its conversation is known
 * elsewhere: begun before ids were sealed, begun under another secret, or imported. The name that a client gives to a chat
 * reaches the object of its digest (api/http/chat-names.ts), mostly for a question that was admitted (api/http/admit-turn.ts).
 */
import { database } from '../db/client'
import { findConversationRow } from '../db/conversations'
import { historyStore } from '../registry/engines'

/** Hexadecimal digits of a UUID that form the seal. */
const SEAL = 8

const encoder = new TextEncoder()

/** The HMAC of a text under a secret. */
export async function hmacOf(secret: string, text: string): Promise<Uint8Array> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const key = await crypto.subtle.importKey('raw', encoder.encode(secret), algorithm, false, ['sign'])
  return new Uint8Array(await crypto.subtle.sign('HMAC', key, encoder.encode(text)))
}

/** In hexadecimal digits. */
export const hexOf = (bytes: Uint8Array): string =>
  Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('')

async function seal(env: Cloudflare.Env, beginning: string): Promise<string> {
  const secret = `sealed conversation ids ${env.ENCRYPTION_KEY ?? env.ADMIN_API_KEY ?? ''}`
  return hexOf(await hmacOf(secret, beginning)).slice(0, SEAL)
}

/** Seals an id. @param id a UUID; its last digits are replaced */
export async function sealedId(env: Cloudflare.Env, id: string = crypto.randomUUID()): Promise<string> {
  const beginning = id.slice(0, -SEAL)
  return beginning + (await seal(env, beginning))
}

/** Whether this server made an id. */
export async function isSealed(env: Cloudflare.Env, id: string): Promise<boolean> {
  const beginning = id.slice(0, -SEAL)
  return id === beginning + (await seal(env, beginning))
}

/** An id without a seal of its own, and its seal after it. */
const HANDLE = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})-([0-9a-f]{8})$/

/**
 * The id for callers who return before D1 knows the conversation. A client's own name for a conversation becomes a digest
 * without a seal, so the seal is appended.
 */
export async function handleOf(env: Cloudflare.Env, id: string): Promise<string> {
  return (await isSealed(env, id)) ? id : `${id}-${await seal(env, id)}`
}

/** The id in a handle, sealed or not. */
export const idIn = (handle: string): string => HANDLE.exec(handle)?.[1] ?? handle

/** The id of a handle that this server gave out with a seal; undefined for any other text, plain ids too. */
export async function idOfHandle(env: Cloudflare.Env, handle: string): Promise<string | undefined> {
  const id = idIn(handle)
  return id !== handle && handle === `${id}-${await seal(env, id)}` ? id : undefined
}

/** Whether an id may belong to a conversation with messages in a history collection. */
export async function mayHaveHistory(env: Cloudflare.Env, id: string, historyId: string): Promise<boolean> {
  if (await isSealed(env, id)) return true
  return (await historyStore(env, historyId).recentMessages(id, 0)).messages.length > 0
}

/**
 * Whether an id may belong to a conversation. If the id came from outside, check this before asking its object.
 */
export async function mayBeConversation(env: Cloudflare.Env, id: string): Promise<boolean> {
  if (await isSealed(env, id)) return true
  return (await findConversationRow(database(env), id, Date.now())) !== undefined
}
