/** The stream of a search that is answered. */
import type { Failure } from '../../errors'
import type { TurnEvent } from '../../turn/events'
import { emptyTurn, fold, type Turn } from '../../turn/fold'
import { type Wording, writeDelta } from '../../turn/wording'
import { eventWording, type TurnEncoder } from '../shared/stream'
import type { Json } from './route'

/** How the pieces of an answer are written. @param hasMemory whether events carry ids */
export const answerWording = (hasMemory: boolean): Wording =>
  eventWording([
    ...(hasMemory ? (['id: ', { slot: 'turn' }, '.', { slot: 'seq' }, '\n'] as const) : []),
    'event: answer\ndata: {"text":"',
    { slot: 'text' },
    '"}\n\n',
  ])

interface Searched {
  /** the reply of the search alone */
  found: Json
  hasMemory: boolean
  /** whether the pipeline answers with the search alone if the turn fails */
  ignoresFailure: boolean
  /** The whole reply at the turn's end. */
  whole(turn: Turn): Json
  /** The body of an error. */
  failed(failure: Failure): Json
}

/**
 * Server-sent events: `hits` with the search's reply, `answer` with each piece of text, and `done` with the whole
 * reply; `error` if it fails, or `done` with the hits alone if the pipeline ignores failures. With a memory, events carry
 * the ids of the conversation's log.
 */
export class AnswerEncoder implements TurnEncoder {
  readonly #searched: Searched
  readonly #wording: Wording
  readonly #turn = emptyTurn()
  #begun = false

  constructor(searched: Searched) {
    this.#searched = searched
    this.#wording = answerWording(searched.hasMemory)
  }

  encode(event: TurnEvent): string {
    fold(this.#turn, event)
    const head = this.#opening()
    if (event.type === 'delta') return head + writeDelta(this.#wording, event)
    if (event.type === 'done') return head + this.#written(event, 'done', this.#searched.whole(this.#turn))
    return head
  }

  fail(failure: Failure): string {
    const { found, ignoresFailure, failed } = this.#searched
    if (ignoresFailure) return this.#opening() + written('done', found)
    return written('error', failed(failure))
  }

  #opening(): string {
    if (this.#begun) return ''
    this.#begun = true
    return written('hits', this.#searched.found)
  }

  #written({ turn, seq }: TurnEvent, type: string, data: unknown): string {
    return (this.#searched.hasMemory ? `id: ${turn}.${seq}\n` : '') + written(type, data)
  }
}

const written = (type: string, data: unknown): string => `event: ${type}\ndata: ${JSON.stringify(data)}\n\n`
