/** What tests of conversations share. */

export const HISTORY = {
  name: 'history',
  fields: [
    { name: 'conversation_id', type: 'string' },
    { name: 'model_id', type: 'string' },
    { name: 'timestamp', type: 'int32' },
    { name: 'role', type: 'string', index: false },
    { name: 'message', type: 'string', index: false },
  ],
}

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
