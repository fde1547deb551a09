/**
 * How a protocol writes the pieces of an answer, as data. With it the conversation's object writes them itself, and the Worker
 * passes the bytes on without running JavaScript for each piece: reading, encoding and writing a piece there takes 0.1 ms,
 * and the Free plan allows a request 10 ms. A heartbeat fills the silence between pieces.
 */

export type Slot =
  | { slot: 'text' | 'conversation' | 'turn' | 'seq' }
  /** the number of the piece among the pieces of its turn, counted from `from` */
  | { slot: 'piece'; from: number }

export interface LineWording {
  /** what is written for a piece, in order: a string as it is, or the value of a slot */
  line: (string | Slot)[]
  /** how texts are written: as the inside of a JSON string, the same in ASCII, or as they are */
  escapes: 'json' | 'ascii' | 'nothing'
  /** characters of text in a line; longer pieces are written as several lines */
  longest?: number
}

export interface Wording extends LineWording {
  /** written after a silence */
  heartbeat: string
  /** milliseconds of silence before a heartbeat */
  heartbeatMs: number
}

/** The place of a piece. */
export interface PiecePlace {
  conversation_id: string
  turn: number
  seq: number
  /** 0 for the first piece of the turn */
  piece: number
}

const ESCAPES: Record<LineWording['escapes'], (text: string) => string> = {
  json: (text) => JSON.stringify(text).slice(1, -1),
  ascii: (text) => asciiJson(text).slice(1, -1),
  nothing: (text) => text,
}

/** Writes a piece of an answer. */
export function writePiece({ line, escapes, longest }: LineWording, text: string, place: PiecePlace): string {
  if (longest !== undefined && text.length > longest) {
    return splitText(text, longest)
      .map((part) => writePiece({ line, escapes }, part, place))
      .join('')
  }
  const escaped = ESCAPES[escapes]
  let written = ''
  for (const part of line) {
    if (typeof part === 'string') written += part
    else if (part.slot === 'text') written += escaped(text)
    else if (part.slot === 'conversation') written += escaped(place.conversation_id)
    else if (part.slot === 'piece') written += place.piece + part.from
    else written += place[part.slot]
  }
  return written
}

/** The same in the Worker: the first piece, and all for readers whom the object gives none. @param piece its number */
export const writeDelta = (wording: LineWording, { text, ...place }: Delta, piece = 0): string =>
  writePiece(wording, text, { ...place, piece })

type Delta = Omit<PiecePlace, 'piece'> & { text: string }

/**
 * Writes something whenever nothing else was written for a while, so that neither a client nor a proxy takes a silent
 * connection for a dead one.
 */
export class Heartbeat {
  readonly #ms: number
  readonly #beat: () => void
  #last = Date.now()
  #timer: ReturnType<typeof setTimeout>

  /** @param ms the longest silence, in milliseconds */
  constructor(ms: number, beat: () => void) {
    this.#ms = ms
    this.#beat = beat
    this.#timer = this.#after(ms)
  }

  /** Call this whenever something is written. */
  written(): void {
    this.#last = Date.now()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  // To set the timer again for each piece would cost more than to look at the clock.
  #after(ms: number): ReturnType<typeof setTimeout> {
    return setTimeout(() => {
      const left = this.#last + this.#ms - Date.now()
      this.#timer = this.#after(left > 0 ? left : this.#ms)
      if (left > 0) return
      this.written()
      this.#beat()
    }, ms)
  }
}

/** JSON in ASCII, on one line. */
export const asciiJson = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[\u007f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** Splits a text into pieces of at most this many UTF-16 units, never within a character. */
export function splitText(text: string, longest: number): string[] {
  const pieces: string[] = []
  for (let start = 0; start < text.length; ) {
    let end = Math.min(text.length, start + longest)
    if (end < text.length && /[\ud800-\udbff]/.test(text[end - 1]!)) end -= 1
    pieces.push(text.slice(start, end))
    start = end
  }
  return pieces
}
