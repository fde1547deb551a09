/**
 * Scoped search keys: search parameters signed with a search-only key. Its owner makes them without asking the
 * server.
 *
 *     base64( base64(HMAC-SHA256(parent, parameters)) + first 4 characters of parent + parameters )
 */

import { parseExact } from '../lib/exact-json'

const DIGEST_LENGTH = 44
export const PREFIX_LENGTH = 4

export interface ScopedKey {
  digest: string
  prefix: string
  /** the signed JSON, byte for byte */
  parameters: Uint8Array
}

/** Search parameters in a scoped key, as the strings that a request would send. */
export interface EmbeddedParameters {
  values: Record<string, string>
  /** unix seconds */
  expiresAt?: number
}

/** Splits a presented key. @returns undefined when it cannot be a scoped key */
export function parseScopedKey(key: string): ScopedKey | undefined {
  if (key.length < DIGEST_LENGTH + PREFIX_LENGTH || !/^[A-Za-z0-9+/]+={0,2}$/.test(key)) return undefined
  let binary: string
  try {
    binary = atob(key)
  } catch {
    return undefined
  }
  const start = DIGEST_LENGTH + PREFIX_LENGTH
  if (binary[start] !== '{') return undefined
  return {
    digest: binary.slice(0, DIGEST_LENGTH),
    prefix: binary.slice(DIGEST_LENGTH, start),
    parameters: Uint8Array.from(binary.slice(start), (character) => character.charCodeAt(0)),
  }
}

/** Whether `parent` signed this key. The platform compares in constant time. */
export async function isSignedBy(key: ScopedKey, parent: string): Promise<boolean> {
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const secret = await crypto.subtle.importKey('raw', new TextEncoder().encode(parent), algorithm, false, [
    'verify',
  ])
  let digest: string
  try {
    digest = atob(key.digest)
  } catch {
    return false
  }
  const signature = Uint8Array.from(digest, (character) => character.charCodeAt(0))
  return crypto.subtle.verify('HMAC', secret, signature, key.parameters)
}

/**
 * Reads the signed parameters. A value that no request parameter can have makes the key invalid: ignoring it could
 * lift a restriction.
 *
 * @returns undefined when the key is invalid
 */
export function embeddedParameters(key: ScopedKey): EmbeddedParameters | undefined {
  let parsed: unknown
  try {
    parsed = parseExact(new TextDecoder().decode(key.parameters))
  } catch {
    return undefined
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return undefined
  const { expires_at: expiresAt, ...rest } = parsed as Record<string, unknown>
  if (expiresAt !== undefined && !(Number.isSafeInteger(expiresAt) && (expiresAt as number) >= 0)) {
    return undefined
  }
  const values: Record<string, string> = {}
  for (const [name, value] of Object.entries(rest)) {
    if (!['string', 'number', 'bigint', 'boolean'].includes(typeof value)) return undefined
    values[name] = String(value)
  }
  return expiresAt === undefined ? { values } : { values, expiresAt: expiresAt as number }
}
