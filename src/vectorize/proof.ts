/**
 * Tests whether Vectorize finds a field's vectors by their labels.
 *
 * A binding does not tell which metadata indexes exist, and Vectorize silently omits vectors that are older than the
 * metadata index from every filtered answer. So one of the oldest vectors is queried by each of its labels as soon as
 * it is visible. Searches use filters only if it was found by its own labels and not by others.
 *
 * If the test fails, the vector is sent again. The next test is an hour later at the earliest, when a search could
 * use a filter. If it then succeeds, the metadata indexes were created in the meantime, and all other vectors are
 * sent again too.
 */
import { logFailure } from '../errors'
import type { LabelFilter } from './labels'
import { type Labels, PROPERTIES } from './labels'
import type { Kept, VectorizedField, VectorOutbox } from './outbox'

const RETRY_MS = 3_600_000

/** What a test needs of Vectorize and of the rows. */
export interface Trials {
  /** id of the collection's object, for the log */
  collection: string
  /** whether the field's index is bound */
  isBound(field: VectorizedField): boolean
  read(slot: number, seqs: number[]): Map<number, Kept>
  /** The documents of the vectors nearest to this one. @throws Error when Vectorize refuses or does not answer */
  query(field: VectorizedField, vector: Float32Array, filter?: LabelFilter): Promise<number[]>
  /** Sends a vector again. */
  resend(slot: number, seq: number): void
}

interface Witness {
  seq: number
  vector: Float32Array
  labels: Labels
}

export class LabelProof {
  #outbox: VectorOutbox
  #trials: Trials
  #isClosed: () => boolean
  /** slots for which a search wanted a filter */
  #wanted = new Set<number>()

  constructor(outbox: VectorOutbox, trials: Trials, isClosed: () => boolean) {
    this.#outbox = outbox
    this.#trials = trials
    this.#isClosed = isClosed
  }

  /** A search could use a filter. @returns whether another test is due */
  want(field: VectorizedField): boolean {
    this.#wanted.add(field.slot)
    return this.#isDue(field)
  }

  /** Vectorize found nothing where it should have: test again. */
  doubt(slot: number): void {
    this.#outbox.prove(slot, false, Date.now())
  }

  /** Runs the tests that are due. */
  async step(): Promise<void> {
    for (const field of this.#outbox.fields()) {
      if (!this.#isDue(field) || !this.#trials.isBound(field)) continue
      const witness = await this.#witness(field)
      if (witness === undefined || this.#isClosed()) continue
      const works = await this.#findsByLabels(field, witness)
      if (!this.#isClosed()) this.#conclude(field, witness.seq, works)
    }
  }

  #isDue({ slot, retired, labelled, proven, triedAt }: VectorizedField): boolean {
    if (retired || !labelled || proven) return false
    return triedAt === undefined || (this.#wanted.has(slot) && Date.now() - triedAt >= RETRY_MS)
  }

  #conclude({ slot, triedAt }: VectorizedField, seq: number, works: boolean): void {
    if (works) {
      if (triedAt !== undefined) this.#outbox.relabel(slot, true)
      this.#outbox.prove(slot, true)
    } else {
      logFailure(
        'Vectorize does not find vectors by their labels: its metadata indexes are missing, or too young',
        undefined,
        this.#trials,
      )
      this.#outbox.prove(slot, false, Date.now())
    }
    // After a failure the vector may be found once it is sent again. After a late success this starts sending the
    // others.
    if (!works || triedAt !== undefined) this.#trials.resend(slot, seq)
  }

  /**
   * One of the oldest vectors that is found without a filter. Undefined if there is none: then nothing can be
   * concluded.
   */
  async #witness(field: VectorizedField): Promise<Witness | undefined> {
    for (const [seq, { vector, labels }] of this.#trials.read(field.slot, this.#outbox.oldest(field.slot))) {
      if (labels === undefined) return undefined
      const named = await this.#trials.query(field, vector).catch(() => undefined)
      if (named === undefined || this.#isClosed()) return undefined
      // Use it only if the query found it. It may be missing from the results even if all is well, because a hundred
      // other vectors are just like it.
      if (named.includes(seq)) return { seq, vector, labels }
    }
    return undefined
  }

  async #findsByLabels(field: VectorizedField, { seq, vector, labels }: Witness): Promise<boolean> {
    const finds = async (filter: LabelFilter) =>
      (await this.#trials.query(field, vector, filter)).includes(seq)
    try {
      if (!(await finds(labels))) return false
      for (const property of PROPERTIES) {
        if (await finds({ [property]: { $ne: labels[property] } })) return false
      }
      return true
    } catch (error) {
      logFailure('Vectorize does not take a filter', error, this.#trials)
      return false
    }
  }
}
