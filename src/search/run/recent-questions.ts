/**
 * Caches the best matches of recent questions. A follow-up searches the question before it again, and the cache
 * avoids repeating a query of many common words.
 */
import { changesOf } from '../changes'
import { KeptUntilWrite, type Memory } from '../memory'
import type { TextMatch } from '../text/query'
import { Gathered } from './gathered'
import type { Pace } from './pace'

/** This many of the best matches of the earlier conversation count. */
export const MOST_OF_CONTEXT = 1_000
/** This many are cached for a plain search for a question: ranking more takes longer. */
export const MOST_OF_PAGES = 250
/** Bytes of a match. */
const MATCH_BYTES = 32

export class RecentQuestions {
  /** by expression */
  readonly #known: KeptUntilWrite<string, Gathered>
  /** by expression: searches that read its matches now, and what had been written when they began */
  #running = new Map<string, { changes: number; ended: Promise<void> }>()

  constructor(memory?: Memory) {
    this.#known = new KeptUntilWrite(memory)
  }

  /**
   * The cached matches of a question without a filter, if nothing was written since.
   * @param count so many of the best
   */
  find(sql: SqlStorage, match: TextMatch, count = MOST_OF_CONTEXT): Gathered | undefined {
    return this.#known.in(sql).get(keyOf(match, count))
  }

  /**
   * Reads the best matches of a question without a filter, and keeps them: unless the search was cut off, as it then lacks
   * some, or something was written meanwhile. One that is abandoned, or fails, throws.
   * @param count how many of the best to cache
   */
  async read(
    sql: SqlStorage,
    match: TextMatch,
    pace: Pace,
    read: () => Promise<Gathered>,
    count = MOST_OF_CONTEXT,
  ): Promise<Gathered> {
    const changes = changesOf(sql)
    const matches = await read()
    if (pace.cutoff || changesOf(sql) !== changes) return matches
    const key = keyOf(match, count)
    const best = bestByScore(matches, count)
    this.#known.in(sql).set(key, best, key.length + best.size * MATCH_BYTES)
    return matches
  }

  /**
   * `find`, or else `read`. A search that reads the same now is waited for. If it has kept nothing, this one reads for itself.
   */
  async findOrRead(
    sql: SqlStorage,
    match: TextMatch,
    pace: Pace,
    read: () => Promise<Gathered>,
    count = MOST_OF_CONTEXT,
  ): Promise<Gathered> {
    const key = keyOf(match, count)
    for (;;) {
      const known = this.find(sql, match, count)
      if (known !== undefined) return known
      const running = this.#running.get(key)
      if (running?.changes !== changesOf(sql) || !(await pace.awaits(running.ended))) break
    }
    const { promise: ended, resolve: end } = Promise.withResolvers<void>()
    const own = { changes: changesOf(sql), ended }
    this.#running.set(key, own)
    try {
      return await this.read(sql, match, pace, read, count)
    } finally {
      if (this.#running.get(key) === own) this.#running.delete(key)
      end()
    }
  }
}

const keyOf = ({ match, table, rank, first }: TextMatch, count: number): string =>
  JSON.stringify([match, table, rank, first, count])

/** The matches with the lowest scores; among equals the newest documents. */
function bestByScore(matches: Gathered, count: number): Gathered {
  if (matches.size <= count) return matches
  const { seqs, scores } = matches
  const limit = Float64Array.from(scores).sort()[count - 1]!
  const places: number[] = []
  const last: number[] = []
  for (const [at, score] of scores.entries()) {
    if (score < limit) places.push(at)
    else if (score === limit) last.push(at)
  }
  last.sort((a, b) => seqs[b]! - seqs[a]!)
  places.push(...last.slice(0, count - places.length))
  const best = new Gathered()
  for (const at of places) best.add(seqs[at]!, scores[at]!)
  return best
}
