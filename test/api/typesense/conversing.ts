/** What tests of conversations share. */
import { historySchema } from '../../history-schema'

export const HISTORY = historySchema('history')

/** A scoped key, as a client makes it. */
export async function scopedKey(parent: string, parameters: Record<string, unknown>): Promise<string> {
  const text = JSON.stringify(parameters)
  const encoder = new TextEncoder()
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  const secret = await crypto.subtle.importKey('raw', encoder.encode(parent), algorithm, false, ['sign'])
  const signature = await crypto.subtle.sign('HMAC', secret, encoder.encode(text))
  const digest = btoa(String.fromCharCode(...new Uint8Array(signature)))
  return btoa(digest + parent.slice(0, 4) + text)
}
