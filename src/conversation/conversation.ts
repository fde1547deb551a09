/**
 * A conversation: the one place where its turns run, one after another.
 *
 * A turn belongs to this object and not to the request that asked for it: readers come and go, it runs to its
 * end. What is kept here is the log of recent turns and what history has not yet taken; history itself is in
 * the history collection and in D1.
 */
import { DurableObject } from 'cloudflare:workers'
import { database } from '../db/client'
import { ttlsOf } from '../db/conversation-models'
import { ApiError, attempt, type Outcome } from '../errors'
import { createLanguageModel } from '../models/providers'
import { collectionObject } from '../search/catalog'
import type { Asked, ConversationRpc, Position } from './conversation-object'
import { type HistoryMessage, isTerminal } from './events'
import { migrate } from './migrations'
import { Outbox } from './outbox'
import type { TurnPorts } from './ports'
import type { Asker, AskRequest } from './request'
import { runTurn } from './turn'
import { TurnLog, type TurnStatus } from './turn-log'
import { Reader, TurnStream } from './turn-stream'

/** turns that may wait behind the running one */
export const QUEUE_LIMIT = 32

const encoder = new TextEncoder()

interface RunningTurn {
  stream: TurnStream
  abort: AbortController
}

export class Conversation extends DurableObject implements ConversationRpc {
  readonly #log: TurnLog
  readonly #outbox: Outbox
  readonly #id: string
  #running: RunningTurn | undefined
  #waiting = 0
  /** settles when the last turn in the queue has ended; never rejects */
  #queue: Promise<void> = Promise.resolve()

  constructor(ctx: DurableObjectState, env: Cloudflare.Env) {
    super(ctx, env)
    const { sql } = ctx.storage
    migrate(sql)
    this.#id = ctx.id.name ?? ctx.id.toString()
    this.#log = new TurnLog(sql)
    this.#outbox = new Outbox(sql, env, this.#id)
    this.#log.interrupt(this.#id, Date.now())
  }

  ask(request: AskRequest): Promise<Outcome<Asked>> {
    return attempt(() => {
      if (this.#waiting > QUEUE_LIMIT) {
        throw new ApiError(
          429,
          `Too many turns are waiting in this conversation (${QUEUE_LIMIT}). Try again later.`,
        )
      }
      const reader = new Reader()
      this.#waiting += 1
      this.#queue = this.#queue
        .then(() => this.#run(request, reader))
        .catch((error) => {
          console.error('turn could not run', error)
          reader.end()
        })
        .finally(() => {
          this.#waiting -= 1
          this.#running = undefined
        })
      this.ctx.waitUntil(this.#queue)
      return { events: reader.stream }
    })
  }

  events(_asker: Asker, after?: Position): Promise<Outcome<ReadableStream<Uint8Array> | null>> {
    return attempt(() => {
      const reader = new Reader()
      const turn = after?.turn ?? this.#running?.stream.turn ?? this.#log.latest()
      const seq = after?.seq ?? -1
      if (this.#running && this.#running.stream.turn === turn) {
        this.#running.stream.join(reader, seq)
        return reader.stream
      }
      const lines = turn === undefined ? undefined : this.#log.lines(turn)
      if (!lines) throw new ApiError(404, 'Turn not found')
      const missed = lines.slice(seq + 1)
      if (missed.length > 0) reader.write(encoder.encode(`${missed.join('\n')}\n`))
      reader.end()
      return reader.stream
    })
  }

  stop(_asker: Asker): Promise<Outcome<boolean>> {
    return attempt(() => {
      this.#running?.abort.abort()
      return this.#running !== undefined
    })
  }

  async erase(): Promise<boolean> {
    this.#running?.abort.abort()
    await this.#queue
    await this.ctx.storage.deleteAll()
    return true
  }

  /** Delivers what history has not taken yet, and forgets turns past their time. */
  override async alarm(): Promise<void> {
    await this.#outbox.deliver()
    this.#log.expire(Date.now())
    await this.#setAlarm()
  }

  async #run(request: AskRequest, reader: Reader): Promise<void> {
    const turn = this.#log.begin(Date.now())
    let status: TurnStatus = 'failed'
    const stream = new TurnStream(this.#id, turn, (lines) => this.#log.append(turn, lines))
    const abort = new AbortController()
    this.#running = { stream, abort }
    stream.join(reader)
    const end = () => this.#log.finish(turn, status, Date.now() + request.model.ttl * 1000)
    await runTurn(
      request,
      this.#ports(request, turn, (event) => {
        if (event.type === 'done') status = 'done'
        stream.emit(event)
        if (isTerminal(event)) end()
      }),
      abort.signal,
    )
    await this.#setAlarm()
  }

  #ports(request: AskRequest, turn: number, emit: TurnPorts['emit']): TurnPorts {
    const { env } = this
    const history = collectionObject(env, request.historyId)
    return {
      emit,
      // Made when it is first asked for: a namespace that nobody serves is then the turn's error.
      get model() {
        return createLanguageModel(request.model, env)
      },
      search: (objectId, params) => collectionObject(env, objectId).search(params),
      schema: (objectId) => collectionObject(env, objectId).schema(),
      messages: async () => {
        await this.#outbox.deliver()
        const stored = await history.messages(this.#id)
        return [...stored, ...this.#outbox.pending(request.historyId)]
      },
      ttls: (ids) => ttlsOf(database(env), ids),
      store: (said) => this.#store(request, turn, said),
      now: () => Date.now(),
    }
  }

  /** Writes a turn down here, then hands it to its history; an alarm is set first, in case this object dies. */
  async #store(request: AskRequest, turn: number, said: HistoryMessage[]): Promise<Outcome<void>> {
    this.#outbox.put(
      turn,
      request.historyId,
      said.map(({ role, message, timestamp }) => ({
        conversation_id: this.#id,
        role,
        message,
        timestamp,
        model_id: request.model.id,
      })),
    )
    await this.#setAlarm()
    return this.#outbox.deliver()
  }

  /** Wakes this object for whatever comes next: another try to deliver, or the next turn to forget. */
  async #setAlarm(): Promise<void> {
    const retry = this.#outbox.empty ? undefined : Date.now() + this.#outbox.patience
    const times = [retry, this.#log.nextExpiry()].filter((time) => time !== undefined)
    if (times.length > 0) await this.ctx.storage.setAlarm(Math.min(...times))
    else await this.ctx.storage.deleteAlarm()
  }
}
