/**
 * A turn's events as a UI message stream of version 1 (contract 3.2): a pure function from events to bytes, with a
 * memory of what is open.
 *
 *     start · start-step · source-*… · text-start · text-delta… · text-end · data-suggestions · finish-step · finish
 *
 * Parts have no key beyond those that the first client of this protocol knew: it takes any other for an error.
 * What Parley has to add goes into the message's metadata, which is the application's own.
 */

import type { Failure } from '../../errors'
import type { Citation, TurnEvent } from '../../turn/events'
import { emptyTurn, fold, type Turn } from '../../turn/fold'
import { CitationLinks } from '../turn/linked-citations'
import { type AnswerSource, type SourceFields, sourceId, sourcesOf } from '../turn/sources'
import type { TurnEncoder } from '../turn/stream'
import { messageId } from './message-id'

export interface UiStreamShape {
  fields: SourceFields
  /** `markdown` makes links of the labels by which the answer cites; `parts` leaves its text alone */
  citations: 'parts' | 'markdown'
}

const DONE = 'data: [DONE]\n\n'

const part = (content: Record<string, unknown>): string => `data: ${JSON.stringify(content)}\n\n`

export class UiStreamEncoder implements TurnEncoder {
  readonly #shape: UiStreamShape
  readonly #turn: Turn = emptyTurn()
  #links: CitationLinks | undefined
  /** id of the text that is being written */
  #text: string | undefined
  #texts = 0

  constructor(shape: UiStreamShape) {
    this.#shape = shape
  }

  encode(event: TurnEvent): string {
    fold(this.#turn, event)
    switch (event.type) {
      case 'question':
        return (
          part({
            type: 'start',
            messageId: messageId(event),
            messageMetadata: { conversation_id: event.conversation_id },
          }) + part({ type: 'start-step' })
        )
      case 'retrieval': {
        const sources = sourcesOf(event.replies, event.sources, this.#shape.fields)
        if (this.#shape.citations === 'markdown') this.#links = new CitationLinks(sources)
        return sources.map(sourcePart).join('')
      }
      case 'delta':
        return this.#write(this.#links ? this.#links.add(event.text) : event.text)
      case 'followups':
        return this.#endText() + part({ type: 'data-suggestions', data: { suggestions: event.questions } })
      case 'done':
        return (
          this.#endText() +
          part({ type: 'finish-step' }) +
          part({ type: 'finish', messageMetadata: metadataOf(this.#turn) }) +
          DONE
        )
      default:
        return ''
    }
  }

  /** Clients take a stream that just ends for a success. One that its reader stopped is no failure to show. */
  fail({ code, message }: Failure): string {
    const end = code === 'stopped' ? { type: 'abort' } : { type: 'error', errorText: message }
    return this.#endText() + part(end) + DONE
  }

  #write(text: string): string {
    if (text === '') return ''
    const opened = this.#text === undefined
    this.#text ??= `text-${++this.#texts}`
    const delta = `data: {"type":"text-delta","id":"${this.#text}","delta":${JSON.stringify(text)}}\n\n`
    return opened ? part({ type: 'text-start', id: this.#text }) + delta : delta
  }

  #endText(): string {
    const rest = this.#links ? this.#write(this.#links.end()) : ''
    if (this.#text === undefined) return rest
    const end = part({ type: 'text-end', id: this.#text })
    this.#text = undefined
    return rest + end
  }
}

const sourcePart = ({ id, title, url, documentId }: AnswerSource): string =>
  url === undefined
    ? part({ type: 'source-document', sourceId: id, mediaType: 'text/plain', title, filename: documentId })
    : part({ type: 'source-url', sourceId: id, url, title })

const metadataOf = ({ conversationId, turn, finishReason, usage, timings, citations }: Turn) => ({
  conversation_id: conversationId,
  turn,
  finish_reason: finishReason,
  usage,
  timings,
  citations: citations.map(citationOf),
})

/** Offsets are those of the text without links. */
const citationOf = ({ collection, document_id, start, end, quote }: Citation) => ({
  sourceId: sourceId(collection, document_id),
  start,
  end,
  quote,
})
