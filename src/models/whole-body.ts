/** A body in one piece, as far as there is room for it. */

/**
 * @param onRead called for each read: the sign of life that a timeout waits for
 * @param most bytes that are read; nothing is asked of the sender after them
 * @returns the text, and whether it is all that came
 */
export async function readWholeBody(
  body: ReadableStream<Uint8Array> | null,
  most: number,
  onRead: () => void = () => {},
): Promise<{ text: string; complete: boolean }> {
  if (!body) return { text: '', complete: true }
  const reader = body.getReader()
  const decoder = new TextDecoder()
  const pieces: string[] = []
  let size = 0
  try {
    while (true) {
      const { done, value } = await reader.read()
      onRead()
      if (done) return { text: pieces.join('') + decoder.decode(), complete: true }
      const room = most - size
      size += value.length
      pieces.push(decoder.decode(value.subarray(0, Math.max(0, room)), { stream: true }))
      if (size > most) return { text: pieces.join(''), complete: false }
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
}
