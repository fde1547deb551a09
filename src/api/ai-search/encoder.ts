/** Writes a turn in the snippet's format: chat completion chunks, with the sources in an event of their own. */
import type { Failure } from '../../errors'
import type { TurnEvent } from '../../turn/events'
import { emptyTurn, fold } from '../../turn/fold'
import { type SourceFields, sourcesOf } from '../shared/sources'
import type { TurnEncoder } from '../shared/stream'

const DONE = 'data: [DONE]\n\n'

export class SnippetEncoder implements TurnEncoder {
  readonly #fields: SourceFields
  readonly #turn = emptyTurn()

  constructor(fields: SourceFields) {
    this.#fields = fields
  }

  encode(event: TurnEvent): string {
    const known = this.#turn.passages.length
    fold(this.#turn, event)
    switch (event.type) {
      case 'retrieval': {
        const found = sourcesOf(this.#turn.passages.slice(known), this.#fields)
        const chunks = found.map(({ id, title, url = '', text }) => ({
          id,
          text,
          item: { key: url, metadata: { title } },
        }))
        return `event: chunks\ndata: ${JSON.stringify(chunks)}\n\n`
      }
      case 'delta':
        return chunk(event.text)
      case 'done':
        return DONE
      default:
        return ''
    }
  }

  /**
   * The snippet treats any end of a stream as a success, and shows no errors from it. So the message goes into the
   * text.
   */
  fail({ message }: Failure): string {
    return chunk(`\n\n**${message}**`) + DONE
  }
}

const chunk = (text: string): string =>
  `data: {"object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":${JSON.stringify(text)}}}]}\n\n`
