/** Writes a turn in deep-chat's format: pieces of text, with citations as Markdown links. */
import type { Failure } from '../../errors'
import type { TurnEvent } from '../../turn/events'
import { emptyTurn, fold, type Turn } from '../../turn/fold'
import { CitationLinks, linkedAnswer, type SourceFields, sourcesOf } from '../shared/sources'
import type { TurnEncoder } from '../shared/stream'

const frame = (content: unknown): string => `data: ${JSON.stringify(content)}\n\n`

export class DeepChatEncoder implements TurnEncoder {
  readonly #fields: SourceFields
  readonly #turn: Turn = emptyTurn()
  readonly #links = new CitationLinks()

  constructor(fields: SourceFields) {
    this.#fields = fields
  }

  encode(event: TurnEvent): string {
    fold(this.#turn, event)
    switch (event.type) {
      case 'retrieval':
        this.#links.cite(sourcesOf(this.#turn.passages, this.#fields))
        return ''
      case 'delta':
        return written(this.#links.add(event.text))
      // deep-chat ignores frames without text; a page's `responseInterceptor` can read them.
      case 'done':
        return written(this.#links.end()) + frame(extrasOf(this.#turn, this.#fields))
      default:
        return ''
    }
  }

  fail({ message }: Failure): string {
    return written(this.#links.end()) + frame({ error: message })
  }
}

const written = (text: string): string => (text === '' ? '' : `data: {"text":${JSON.stringify(text)}}\n\n`)

const extrasOf = ({ conversationId, passages, suggestions }: Turn, fields: SourceFields) => ({
  conversation_id: conversationId,
  sources: sourcesOf(passages, fields).map(({ id, title, url }) => ({ id, title, ...(url && { url }) })),
  ...(suggestions && { followups: suggestions }),
})

/** The whole answer. @param turn one that is done */
export function messageOf(turn: Turn, fields: SourceFields) {
  return { text: linkedAnswer(turn, fields), ...extrasOf(turn, fields) }
}
