/**
 * Writes the events of a turn as server-sent events. It remembers the search results.
 *
 *     id: <turn>.<seq>
 *     event: <type>
 *     data: <the event as JSON, without what the other lines say>
 *
 * JSON escapes line breaks, so the data is always one line. A `retrieval` shows the engine's replies beside the documents of
 * the prompt.
 */
import { textOf } from '../../lib/parts'
import type { SearchReply, TurnEvent } from '../../turn/events'
import { writeDelta } from '../../turn/wording'
import { askedReplies } from '../shared/results'
import { eventWording } from '../shared/stream'
import { wordsOf } from './errors'

/** How long a client waits before it reconnects, in milliseconds. Sent once, at the beginning of a stream. */
export const RETRY = 'retry: 1000\n\n'

/** How the pieces of an answer are written. */
export const LOG_WORDING = eventWording([
  'id: ',
  { slot: 'turn' },
  '.',
  { slot: 'seq' },
  '\nevent: delta\ndata: {"text":"',
  { slot: 'text' },
  '"}\n\n',
])

export class LogEncoder {
  /** the engine's replies, kept until their `retrieval` event */
  #results: SearchReply[] | undefined
  /** the latest turn's question, as it was asked */
  #asked: { turn: number; question: string } | undefined

  encode(event: TurnEvent): string {
    if (event.type === 'results') {
      this.#results = event.replies
      return ''
    }
    // Clients only know text parts of an answer so far.
    if (event.type === 'history' || event.type === 'part') return ''
    if (event.type === 'delta') return writeDelta(LOG_WORDING, event)
    const { type, turn, seq } = event
    return `id: ${turn}.${seq}\nevent: ${type}\ndata: ${JSON.stringify(this.#dataOf(event))}\n\n`
  }

  #dataOf(event: TurnEvent): object {
    const { type: _type, conversation_id, turn: _turn, seq: _seq, ...data } = event
    // The first event of a turn is where a client learns which conversation it began.
    if (event.type === 'question') {
      const question = textOf(event.question)
      this.#asked = { turn: event.turn, question }
      return { conversation_id, ...data, question }
    }
    if (event.type === 'done') return { ...data, answer: textOf(event.answer) }
    if (event.type === 'error') return { ...data, message: wordsOf(event) }
    if (event.type !== 'retrieval') return data
    const { passages, searches, cut } = event
    const results = this.#results
    this.#results = undefined
    const { question } = this.#asked?.turn === event.turn ? this.#asked : {}
    const further = searches.flatMap(({ collection, q, found, again }) =>
      q === undefined ? [] : { collection, q, found, again },
    )
    return {
      replies: askedReplies({ passages, summaries: searches, ...(results && { results }) }, question),
      ...(further.length > 0 && { further }),
      sources: passages.map(({ collection, id }) => ({ collection, document_id: id })),
      ...(cut && { cut }),
    }
  }
}
