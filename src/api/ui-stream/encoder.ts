/**
 * Writes a turn as a UI message stream of version 1 (contract 3.2). Pure, but it remembers which part is open.
 *
 *     start · start-step · source-*… · text-start · text-delta… · text-end · data-suggestions · finish-step · finish
 *
 * Parts only have keys that the first client of this protocol knew: it fails on any other. What Parley adds is in the message's
 * metadata, which is free for the application.
 */
import type { ErrorCode, Failure } from '../../errors'
import type { Citation, TurnEvent, Wording } from '../../turn/events'
import { emptyTurn, fold, type Turn } from '../../turn/fold'
import { type AnswerSource, CitationLinks, type SourceFields, sourceId, sourcesOf } from '../shared/sources'
import { eventWording, HEARTBEAT_MS, type TurnEncoder } from '../shared/stream'
import { messageId } from './request'

export interface UiStreamShape {
  fields: SourceFields
  /** `markdown` turns citations in the text into links; `parts` leaves the text as it is */
  citations: 'parts' | 'markdown'
}

const DONE = 'data: [DONE]\n\n'

/** How the conversation's object writes the pieces of an answer whose citations are parts. */
export const TEXT_DELTA_WORDING = eventWording([
  'data: {"type":"text-delta","id":"text-1","delta":"',
  { slot: 'text' },
  '"}\n\n',
])

const part = (content: Record<string, unknown>): string => `data: ${JSON.stringify(content)}\n\n`

export class UiStreamEncoder implements TurnEncoder {
  readonly #shape: UiStreamShape
  readonly #turn: Turn = emptyTurn()
  readonly #links: CitationLinks | undefined
  /** id of the open text part */
  #text: string | undefined
  #texts = 0

  constructor(shape: UiStreamShape) {
    this.#shape = shape
    if (shape.citations === 'markdown') this.#links = new CitationLinks()
  }

  encode(event: TurnEvent): string {
    const known = this.#turn.passages.length
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
        const { fields } = this.#shape
        // Sources are numbered through all retrievals of a turn.
        this.#links?.cite(sourcesOf(this.#turn.passages, fields))
        return sourcesOf(this.#turn.passages.slice(known), fields).map(sourcePart).join('')
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

  /** Clients treat a stream that just ends as a success, so a failure is always written. */
  fail(failure: Failure): string {
    return this.#endText() + part(endOf(failure)) + DONE
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

const metadataOf = ({ conversationId, turn, finishReason, usage, timings, citations, verdict }: Turn) => ({
  conversation_id: conversationId,
  turn,
  finish_reason: finishReason,
  usage,
  timings,
  citations: citations.map(citationOf),
  ...verdict,
})

/** Offsets are in the text without links. */
const citationOf = ({ collection, document_id, start, end, quote }: Citation) => ({
  sourceId: sourceId(collection, document_id),
  start,
  end,
  quote,
})

// =============================================================================
// POST /ui/{assistant}/text: an answer as plain text, for `TextStreamChatTransport` and `useCompletion` of the AI SDK.

/** How the conversation's object writes the pieces of an answer. There is no heartbeat: all text is the answer's. */
export const PLAIN_WORDING: Wording = {
  line: [{ slot: 'text' }],
  escapes: 'nothing',
  heartbeat: '',
  heartbeatMs: HEARTBEAT_MS,
}

export class TextEncoderOfTurn implements TurnEncoder {
  encode(event: TurnEvent): string {
    return event.type === 'delta' ? event.text : ''
  }

  /** Text has no other place for an error: without a word, half an answer would be taken for a whole one. */
  fail({ message }: Failure): string {
    return `\n\n[The answer broke off: ${message}]`
  }
}

// =============================================================================
// The end of a UI message stream whose turn failed (contract 3.2).

/** The last part of the stream, by code. For all other codes it is an error in the failure's own words. */
const ENDS: Partial<Record<ErrorCode, { type: string }>> = {
  // A stopped answer is not shown as a failure.
  stopped: { type: 'abort' },
}

const endOf = ({ code, message }: Failure): Record<string, unknown> =>
  (code && ENDS[code]) ?? { type: 'error', errorText: message }
