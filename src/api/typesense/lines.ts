/**
 * Reads JSONL in bounded memory: lines from bytes, batches from lines. Blank lines and overlong lines make no batch, and there
 * can be any number of them, so reading pauses by the bytes and lines read.
 */
import { Pauses, pause } from '../../lib/pause'
import { byteLength } from '../../turn/prompt'

/** UTF-16 units of the longest line: a row of SQLite holds 2 MB. */
export const LINE_LIMIT = 2 * 1024 * 1024

/** Bytes, and lines, to read between pauses. Both take a few milliseconds. */
const BYTES_A_PAUSE = 512 * 1024
const LINES_A_PAUSE = 10_000

const LINE_FEED = 0x0a

const [TAB, CARRIAGE_RETURN, SPACE] = [0x09, 0x0d, 0x20]

/** Lines that are written together, or a line that is too long. */
export type Batch = { lines: string[] } | { tooLong: true }

export interface BatchSize {
  lines: number
  /** UTF-16 units, or bytes of UTF-8 where `inBytes` is true */
  characters: number
  inBytes?: true
}

/** The non-blank lines of a text. In place of a line longer than `limit` comes undefined. */
export async function* splitLines(
  chunks: AsyncIterable<Uint8Array>,
  limit = LINE_LIMIT,
): AsyncGenerator<string | undefined, void, undefined> {
  const decoder = new TextDecoder()
  const byBytes = new Pauses(BYTES_A_PAUSE)
  const byLines = new Pauses(LINES_A_PAUSE)
  // The chunks of a line are joined once, at its end. To join at every chunk would take quadratic time.
  let parts: string[] = []
  let length = 0
  const add = (part: string): void => {
    length += part.length
    if (length > limit) parts = []
    else parts.push(part)
  }
  /** @returns the line that ends here: undefined if it is too long, empty if it is blank */
  const end = (): string | undefined => {
    const line = parts.length === 1 ? parts[0]! : parts.join('')
    const tooLong = length > limit
    parts = []
    length = 0
    if (tooLong) return undefined
    return line.trim() === '' ? '' : line
  }

  for await (const bytes of chunks) {
    if (byBytes.due(bytes.byteLength)) await pause()
    let chunk = bytes
    if (length > limit) {
      // A line that is too long is not decoded any further, only its end is looked for: in UTF-8 the byte of a line feed is
      // never part of another character.
      const next = bytes.indexOf(LINE_FEED)
      if (next < 0) continue
      chunk = bytes.subarray(next)
    }
    const text = decoder.decode(chunk, { stream: true })
    let start = length === 0 ? afterBlankLines(text, 0) : 0
    for (let at = text.indexOf('\n', start); at >= 0; at = text.indexOf('\n', start)) {
      add(text.slice(start, at))
      const line = end()
      if (line !== '') yield line
      start = afterBlankLines(text, at + 1)
      if (byLines.due(1)) await pause()
    }
    add(text.slice(start))
  }
  add(decoder.decode())
  const last = end()
  if (last !== '') yield last
}

/**
 * Passes blank lines without a pause for each: a small gzipped body can have hundreds of millions.
 * @param start of a line
 * @returns the start of the next line with something in it, or that does not end in this text
 */
function afterBlankLines(text: string, start: number): number {
  let line = start
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === LINE_FEED) line = at + 1
    else if (code !== SPACE && code !== TAB && code !== CARRIAGE_RETURN) break
  }
  return line
}

/** Gathers lines into batches. `size` is called before every line, because it can change. */
export async function* batches(
  lines: AsyncIterable<string | undefined>,
  size: () => BatchSize,
): AsyncGenerator<Batch, void, undefined> {
  let gathered: string[] = []
  let characters = 0
  for await (const line of lines) {
    const full = size()
    const length = (full.inBytes ? line && byteLength(line) : line?.length) || 0
    const fits = gathered.length < full.lines && characters + length <= full.characters
    if (gathered.length > 0 && (line === undefined || !fits)) {
      yield { lines: gathered }
      gathered = []
      characters = 0
    }
    if (line === undefined) {
      yield { tooLong: true }
    } else {
      gathered.push(line)
      characters += length
    }
  }
  if (gathered.length > 0) yield { lines: gathered }
}
