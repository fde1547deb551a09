/** Begins, opens and ends the collection of an object. Everything in memory can be read again from SQLite. */

import { collectionGone } from '../../errors'
import { HistoryMirror } from '../../history/turns'
import { VectorOutbox } from '../../vectorize/outbox'
import { VectorMirror } from '../../vectorize/vector-mirror'
import { Store } from '../documents/store'
import { logging, type Origin } from '../fault-log'
import { hasMeta, writeMeta } from '../meta'
import type { StoredSchema } from '../schema/layout'
import { readSchema, writeSchema } from '../schema/plan'
import { createTables } from '../schema/tables'
import type { CollectionSchema } from '../types'
import type { Surroundings } from '../work'
import { isCreated, migrate, type Open, openCollection } from './open'
import { checkRegistration, noteOutline, REGISTRATION_MS } from './outline'

/**
 * When the alarm takes over work that a caller began, or retries a call that another service refused, in
 * milliseconds.
 */
export const ABANDONED_MS = 10_000

export class CollectionLife {
  readonly around: Surroundings
  #open: Open | undefined

  constructor(around: Surroundings) {
    this.around = around
  }

  get #sql(): SqlStorage {
    return this.around.storage.sql
  }

  /** Creates the collection. The object is deleted again if no name leads to it after a while. */
  begin(schema: CollectionSchema, createdAt: number): void {
    const stored = this.around.storage.transactionSync(() => {
      migrate(this.#sql)
      const made = createTables(this.#sql, schema)
      writeSchema(this.#sql, made)
      writeMeta(this.#sql, 'created_at', createdAt)
      noteOutline(this.#sql, made)
      return made
    })
    this.around.alarm.within(REGISTRATION_MS)
    this.#openWith(stored)
  }

  /** The collection's name, for the log. The object's own before the collection is open. */
  get name(): string {
    return this.#open?.store.schema.name ?? this.around.objectId
  }

  /** The collection, read from storage if the object has just woken. */
  open(): Open | undefined {
    if (this.#open !== undefined || !isCreated(this.#sql)) return this.#open
    migrate(this.#sql)
    const schema = readSchema(this.#sql)
    if (schema === undefined || hasMeta(this.#sql, 'destroyed')) return undefined
    return this.#openWith(schema)
  }

  #openWith(schema: StoredSchema): Open {
    this.#open = openCollection(this.around, schema)
    return this.#open
  }

  /** Runs a call that does nothing if the collection is gone, with a line in the log for a fault. */
  ifOpen<T>(
    event: string,
    origin: Origin | undefined,
    otherwise: T,
    work: (open: Open) => T | Promise<T>,
  ): Promise<T> {
    return logging(
      () => this.name,
      event,
      origin,
      () => {
        const open = this.open()
        return open === undefined ? otherwise : work(open)
      },
    )
  }

  /** @throws ApiError 404 */
  existing(): Open {
    const open = this.open()
    if (open === undefined) throw collectionGone()
    return open
  }

  /** The collection, once its models are ready for a write. @throws ApiError 404 */
  async writable(): Promise<Open> {
    const { embedders, store } = this.existing()
    await embedders.ready(store.plan.embedded)
    return this.existing()
  }

  /** Deletes everything that the object holds. While another service does not answer, the alarm retries. */
  async destroy(): Promise<void> {
    const open = this.open()
    if (open !== undefined) {
      open.store.closed = true
      this.#open = undefined
      writeMeta(this.#sql, 'destroyed', true)
      // Vectorize may be slow, and vectors may still be on their way to it. So let the alarm delete the rest later.
      if (new VectorOutbox(this.#sql).fields().length > 0) return this.around.alarm.within(ABANDONED_MS)
    }
    await this.#clear()
  }

  /**
   * Deletes the history's copy in D1, then the vectors in Vectorize, then everything here. If one of them does not
   * answer, the alarm retries.
   */
  async #clear(): Promise<void> {
    if (isCreated(this.#sql) && hasMeta(this.#sql, 'history')) {
      const schema = readSchema(this.#sql) as StoredSchema
      const store = new Store(this.#sql, schema, 0)
      const mirror = new HistoryMirror(store, this.around.env, this.around.objectId, this.around.alarm)
      if (!(await mirror.removeAll())) {
        this.around.alarm.within(ABANDONED_MS)
        return
      }
    }
    if (isCreated(this.#sql)) {
      const wait = await new VectorMirror(this.around).removeAll()
      if (wait !== undefined) return this.around.alarm.within(wait)
    }
    await this.around.storage.deleteAll()
    this.around.alarm.rang()
  }

  /** Does the work that is due when the object's alarm fires. */
  async alarm(): Promise<void> {
    this.around.alarm.rang()
    const open = this.open()
    if (open === undefined) {
      if (isCreated(this.#sql)) await this.#clear()
      return
    }
    const registration = await checkRegistration(this.#sql, this.around.env, this.around.objectId)
    if (registration === 'orphan') return await this.destroy()
    if (registration !== 'registered') this.around.alarm.within(registration)
    if (open.store.closed) return
    await open.background.run()
  }
}
