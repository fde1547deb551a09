/**
 * JSONL as it arrives: lines out of bytes, batches out of lines, in bounded memory. Lines that no batch is made of,
 * blank ones and the bytes of one that is too long, can be any number: reading pauses by what is read.
 */
import { Pauses, pause } from '../../pause'

/** The longest line that is looked at, in UTF-16 units: a row of SQLite ends at 2 MB. */
export const LINE_LIMIT = 2 * 1024 * 1024

/** Read without a pause, at most: bytes, and lines, blank or not. Both take a few milliseconds. */
const BYTES_A_PAUSE = 512 * 1024
const LINES_A_PAUSE = 10_000

const LINE_FEED = 0x0a

/** Lines that go to the collection together, or a line that is too long to go anywhere. */
export type Batch = { lines: string[] } | { tooLong: true }

export interface BatchSize {
  lines: number
  /** UTF-16 units */
  characters: number
}

/** The non-blank lines of a text. A line longer than `limit` comes out as undefined, in its place. */
export async function* splitLines(
  chunks: AsyncIterable<Uint8Array>,
  limit = LINE_LIMIT,
): AsyncGenerator<string | undefined, void, undefined> {
  const decoder = new TextDecoder()
  const byBytes = new Pauses(BYTES_A_PAUSE)
  const byLines = new Pauses(LINES_A_PAUSE)
  // A line that spans many chunks is joined once, at its end: joining at every chunk would be quadratic.
  let parts: string[] = []
  let length = 0
  const add = (part: string): void => {
    length += part.length
    if (length > limit) parts = []
    else parts.push(part)
  }
  function* end(): Generator<string | undefined> {
    const line = parts.join('')
    const tooLong = length > limit
    parts = []
    length = 0
    if (tooLong) yield undefined
    else if (line.trim() !== '') yield line
  }

  for await (const bytes of chunks) {
    if (byBytes.due(bytes.byteLength)) await pause()
    let chunk = bytes
    if (length > limit) {
      // No more text is made of a line that is too long. In UTF-8 the byte of a line feed is never part of another
      // character.
      const next = bytes.indexOf(LINE_FEED)
      if (next < 0) continue
      chunk = bytes.subarray(next)
    }
    const text = decoder.decode(chunk, { stream: true })
    let start = 0
    for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', start)) {
      add(text.slice(start, at))
      yield* end()
      start = at + 1
      if (byLines.due(1)) await pause()
    }
    add(text.slice(start))
  }
  add(decoder.decode())
  yield* end()
}

/** Gathers lines. `size` is asked before every line, so that it may change on the way. */
export async function* batches(
  lines: AsyncIterable<string | undefined>,
  size: () => BatchSize,
): AsyncGenerator<Batch, void, undefined> {
  let gathered: string[] = []
  let characters = 0
  for await (const line of lines) {
    const full = size()
    const fits = gathered.length < full.lines && characters + (line?.length ?? 0) <= full.characters
    if (gathered.length > 0 && (line === undefined || !fits)) {
      yield { lines: gathered }
      gathered = []
      characters = 0
    }
    if (line === undefined) {
      yield { tooLong: true }
    } else {
      gathered.push(line)
      characters += line.length
    }
  }
  if (gathered.length > 0) yield { lines: gathered }
}
