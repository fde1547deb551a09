/** Reads a body in one piece, up to a limit. */
import { byteReader } from '../lib/byte-reader'
import { rest, worked } from '../lib/turn-taking'

/** Bytes of the first read: most replies have fewer. */
const FIRST_READ = 16 * 1024
/**
 * Bytes. A body up to this size is read without pausing for other work. A pause is a timer of the event loop, and takes longer than
 * the rest of the work on such a body. Others had their turn anyway while the first bytes were on their way.
 */
const SHORT = 64 * 1024

/**
 * @param onRead called with the bytes of each read
 * @param most bytes to read; the rest is not requested
 * @returns the text, and whether it is complete
 */
export async function readWholeBody(
  body: ReadableStream<Uint8Array> | null,
  most: number,
  onRead: (bytes: Uint8Array) => void = () => {},
): Promise<{ text: string; complete: boolean }> {
  if (!body) return { text: '', complete: true }
  const reader = byteReader(body, FIRST_READ)
  const decoder = new TextDecoder()
  const pieces: string[] = []
  let size = 0
  try {
    while (true) {
      const { done, value } = await reader.read()
      if (done) return { text: pieces.join('') + decoder.decode(), complete: true }
      onRead(value)
      const room = most - size
      size += value.length
      pieces.push(decoder.decode(value.subarray(0, Math.max(0, room)), { stream: true }))
      if (size > most) return { text: pieces.join(''), complete: false }
      if (worked(value.length) && size > SHORT) await rest()
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}
