/**
 * Encrypts secrets at rest: AES-256-GCM with a key derived (HKDF-SHA-256) from the Worker's ENCRYPTION_KEY.
 *
 * A sealed string is `v1.` + base64(12 bytes of nonce + ciphertext with its tag). A value that was changed, or sealed
 * under another key, does not open.
 */
import sql, { raw } from 'sql-template-tag'
import { ApiError } from '../errors'
import { fromBase64, toBase64 } from '../lib/base64'
import { all, type Database, run } from './client'
import { apiKeys, collections, conversationModels, resources } from './schema'

const VERSION = 'v1.'
const NONCE_BYTES = 12

type Sealing = Pick<Cloudflare.Env, 'ENCRYPTION_KEY' | 'ENCRYPTION_KEY_PREVIOUS'>

// Deriving a key takes longer than sealing, so derived keys are cached, two at most. The secret is the cache key, so
// a rotated secret gets a new one.
const derived = new Map<string, Promise<CryptoKey>>()

function masterKey(env: Sealing): Promise<CryptoKey> {
  const secret = env.ENCRYPTION_KEY
  if (!secret || secret.length < 16) {
    throw new ApiError(
      400,
      'Provider credentials cannot be stored: set the Worker secret ENCRYPTION_KEY to a random string of 16 characters or more.',
      undefined,
      true,
    )
  }
  return keyOf(secret)
}

function keyOf(secret: string): Promise<CryptoKey> {
  let key = derived.get(secret)
  if (key === undefined) {
    if (derived.size > 1) derived.clear()
    key = derive(secret)
    derived.set(secret, key)
  }
  return key
}

async function derive(secret: string): Promise<CryptoKey> {
  const bytes = new TextEncoder().encode(secret)
  const material = await crypto.subtle.importKey('raw', bytes, 'HKDF', false, ['deriveKey'])
  const info = new TextEncoder().encode('parley provider credentials')
  return crypto.subtle.deriveKey(
    { name: 'HKDF', hash: 'SHA-256', salt: new Uint8Array(32), info },
    material,
    { name: 'AES-GCM', length: 256 },
    false,
    ['encrypt', 'decrypt'],
  )
}

/** @throws ApiError 400 when the deployment has no ENCRYPTION_KEY */
export async function seal(plain: string, env: Sealing): Promise<string> {
  const key = await masterKey(env)
  const nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES))
  const sealed = await crypto.subtle.encrypt(
    { name: 'AES-GCM', iv: nonce },
    key,
    new TextEncoder().encode(plain),
  )
  const bytes = new Uint8Array(NONCE_BYTES + sealed.byteLength)
  bytes.set(nonce)
  bytes.set(new Uint8Array(sealed), NONCE_BYTES)
  return VERSION + toBase64(bytes)
}

/**
 * Opens what was sealed under the present key or, during a rotation, under the previous one.
 * @throws ApiError 400 when there is no ENCRYPTION_KEY, or neither key opens it
 */
export async function open(sealed: string, env: Sealing): Promise<string> {
  const plain = await decrypt(sealed, await masterKey(env))
  if (plain !== undefined) return plain
  const previous = env.ENCRYPTION_KEY_PREVIOUS
  const old = previous ? await decrypt(sealed, await keyOf(previous)) : undefined
  if (old !== undefined) return old
  throw new ApiError(
    400,
    'A stored credential cannot be opened: ENCRYPTION_KEY is not the one it was sealed under. Set the old one as ENCRYPTION_KEY_PREVIOUS, or store the credential anew.',
    undefined,
    true,
  )
}

/**
 * Seals a secret again, under the present key.
 * @returns undefined if it already is
 * @throws ApiError 400 when neither key opens it
 */
export async function reseal(sealed: string, env: Sealing): Promise<string | undefined> {
  if ((await decrypt(sealed, await masterKey(env))) !== undefined) return undefined
  return seal(await open(sealed, env), env)
}

/** @returns undefined for another key, or for a sealed string that was changed */
async function decrypt(sealed: string, key: CryptoKey): Promise<string | undefined> {
  if (!sealed.startsWith(VERSION)) return undefined
  try {
    const bytes = fromBase64(sealed.slice(VERSION.length))
    const iv = bytes.subarray(0, NONCE_BYTES)
    const plain = await crypto.subtle.decrypt({ name: 'AES-GCM', iv }, key, bytes.subarray(NONCE_BYTES))
    return new TextDecoder().decode(plain)
  } catch {
    return undefined
  }
}

// =============================================================================
// Seals every secret in D1 under the present ENCRYPTION_KEY, after a rotation.

const SEALED = [
  { table: conversationModels, column: 'sealed_api_key' },
  { table: apiKeys, column: 'sealed_value' },
  { table: resources, column: 'sealed' },
  { table: collections, column: 'sealed_credentials' },
]

/**
 * Does not overwrite a secret that was replaced meanwhile: the new one is already sealed under the present key.
 * @returns how many secrets were sealed again
 * @throws ApiError 400 when one cannot be opened
 */
export async function resealRegistry(db: Database, env: Cloudflare.Env): Promise<number> {
  let count = 0
  for (const { table, column } of SEALED) {
    const [name, sealed] = [raw(table.name), raw(column)]
    const stored = await all<{ number: number; sealed: string }>(
      db,
      sql`SELECT rowid AS number, ${sealed} AS sealed FROM ${name} WHERE ${sealed} IS NOT NULL`,
    )
    for (const row of stored) {
      const anew = await reseal(row.sealed, env)
      if (anew === undefined) continue
      await run(
        db,
        sql`UPDATE ${name} SET ${sealed} = ${anew} WHERE rowid = ${row.number} AND ${sealed} = ${row.sealed}`,
      )
      count += 1
    }
  }
  return count
}

// =============================================================================
// Digests: keys are stored and compared as these.

/** SHA-256 of a text, hexadecimal. */
export const sha256 = (text: string): Promise<string> => sha256Bytes(new TextEncoder().encode(text))

/** SHA-256 of bytes, hexadecimal. */
export async function sha256Bytes(bytes: Uint8Array): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', bytes)
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** Compares two digests in constant time. */
export function sameDigest(a: string, b: string): boolean {
  let difference = a.length ^ b.length
  for (let index = 0; index < a.length; index++) difference |= a.charCodeAt(index) ^ b.charCodeAt(index)
  return difference === 0
}
