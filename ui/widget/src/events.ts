/** The events of a turn, as a stream brings them. */
import type { TurnEvent } from './wire'

/** The server cannot be reached, or the connection broke. */
export class NetworkError extends Error {}

/**
 * The events of a stream, as they come. It ends when the browser goes offline, which a connection may notice only much later.
 * @throws NetworkError when the connection breaks
 */
export async function* readEvents(response: Response, signal: AbortSignal): AsyncGenerator<TurnEvent, void> {
  if (!response.body) return
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  const fields: Record<string, string> = {}
  let rest = ''
  const cancel = () => void reader.cancel().catch(() => {})
  addEventListener('offline', cancel)
  try {
    for (;;) {
      const { done, value } = await reader.read().catch((error) => {
        signal.throwIfAborted()
        throw new NetworkError(String(error))
      })
      if (done) return
      rest += decoder.decode(value, { stream: true })
      const lines = rest.split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        if (line !== '') {
          const colon = line.indexOf(':')
          fields[line.slice(0, colon)] = line.slice(colon + 1).trimStart()
        } else if (fields.data !== undefined) {
          const [turn = 0, seq = 0] = (fields.id ?? '').split('.').map(Number)
          yield { turn, seq, type: fields.event ?? '', data: JSON.parse(fields.data) }
          delete fields.data
        }
      }
    }
  } finally {
    removeEventListener('offline', cancel)
    cancel()
  }
}
