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
