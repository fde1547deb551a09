/** Captured searches whose users may still be typing. They are kept only in memory. */
import type { LogRecord, QueryRecord, Typed } from './records'

/** A search counts if its user sends no other one for this long, as in Typesense. */
export const PAUSE_MS = 4_000
/** Limits: users whose last keystroke is kept, and bytes of all keystrokes. Beyond them a search counts at once. */
const MOST_TYPING = 10_000
export const MOST_TYPING_BYTES = 8 * 1024 * 1024

export type Captured = (QueryRecord | LogRecord) & { at: number }

interface Waiting {
  captured: Captured
  bytes: number
}

export class Typing {
  #waiting = new Map<string, Waiting>()
  #bytes = 0

  get isEmpty(): boolean {
    return this.#waiting.size === 0
  }

  /**
   * Stores a keystroke. @returns the searches that count now: one that its user had finished before, or this one if
   * there is no room
   */
  type(captured: Captured, { by, counts }: Typed): Captured[] {
    const key = `${captured.rule}\n${by}`
    const before = this.#waiting.get(key)?.captured
    this.#drop(key)
    const finished = before !== undefined && captured.at - before.at >= PAUSE_MS ? [before] : []
    if (!counts) return finished
    const bytes = sizeOf(key, captured)
    if (this.#waiting.size >= MOST_TYPING || this.#bytes + bytes > MOST_TYPING_BYTES) {
      return [...finished, captured]
    }
    this.#waiting.set(key, { captured, bytes })
    this.#bytes += bytes
    return finished
  }

  /** Removes and returns the searches that arrived until then, in unix milliseconds. */
  settle(until: number): Captured[] {
    const settled = [...this.#waiting].filter(([, { captured }]) => captured.at <= until)
    for (const [key] of settled) this.#drop(key)
    return settled.map(([, { captured }]) => captured)
  }

  /** Drops a rule's waiting searches, or those of one user that its log would get. */
  forget(rule: string, user?: string): void {
    for (const [key, { captured }] of this.#waiting) {
      const theirs = user === undefined || (captured.kind === 'log' && captured.user === user)
      if (captured.rule === rule && theirs) this.#drop(key)
    }
  }

  /** How many wait, by rule. */
  counts(): Record<string, number> {
    const counts: Record<string, number> = {}
    for (const { captured } of this.#waiting.values())
      counts[captured.rule] = (counts[captured.rule] ?? 0) + 1
    return counts
  }

  #drop(key: string): void {
    this.#bytes -= this.#waiting.get(key)?.bytes ?? 0
    this.#waiting.delete(key)
  }
}

/** Memory takes up to two bytes for a character. */
const sizeOf = (key: string, captured: Captured): number => 2 * (key.length + JSON.stringify(captured).length)
