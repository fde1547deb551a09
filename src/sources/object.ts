/**
 * The object of a source: it reads its pages, one step at a time. Reading takes the CPU of an object, which is 30 s for a call on
 * every plan, and none of a collection's.
 */

import { CountingObject } from '../durable/counting-object'
import { nameOf, objectCalls, objectStubs, type Repetitions } from '../durable/objects'
import { readStep } from './step'

interface SourceRpc {
  /** Reads some pages of the source, if a run is due or goes on. A second call while one runs waits for it. */
  read(): Promise<void>
}

const SOURCE_CALLS: Repetitions<SourceRpc> = { read: 'once' }

export class Source extends CountingObject implements SourceRpc {
  #reading: Promise<void> | undefined

  read(): Promise<void> {
    this.#reading ??= readStep(this.env, nameOf(this.ctx.id), this.ctx.storage).finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }
}

/** A handle on the object of a source. Makes no call. */
export const sourceObject = (env: Cloudflare.Env, name: string): SourceRpc =>
  objectCalls(objectStubs<SourceRpc>(env.SOURCE as DurableObjectNamespace, env, name), SOURCE_CALLS)
