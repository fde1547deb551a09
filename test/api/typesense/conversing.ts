/** What tests of conversations share. */
import { historySchema } from '../../history-schema'
import { call, queryString } from './api'

export const HISTORY = historySchema('history')

type Parameters = Record<string, unknown>

/** Asks by searches of a collection. `common` is what all questions of a file say. */
export function askingBySearch({ collection = 'facts', query_by = 'text', ...common }: Parameters) {
  const asking = (parameters: Parameters) => queryString({ conversation: true, ...common, ...parameters })
  return {
    ask: (parameters: Parameters = {}, key?: string) =>
      call('GET', `/collections/${collection}/documents/search${asking({ query_by, ...parameters })}`, {
        key,
      }),
    askAcross: (
      parameters: Parameters = {},
      key?: string,
      searches: unknown[] = [{ collection, query_by }],
    ) => call('POST', `/multi_search${asking(parameters)}`, { key, body: { searches } }),
  }
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
