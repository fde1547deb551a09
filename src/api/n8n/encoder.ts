/** Writes a turn as n8n's widget reads it: lines of JSON, with citations as Markdown links. */
import type { Failure } from '../../errors'
import type { TurnEvent } from '../../turn/events'
import { emptyTurn, fold, type Turn } from '../../turn/fold'
import { CitationLinks, type SourceFields, sourcesOf } from '../shared/sources'
import type { TurnEncoder } from '../shared/stream'

const line = (content: unknown): string => `${JSON.stringify(content)}\n`

/** Each line is an object: `begin`, an `item` for each piece of text, and `end` or `error`. */
export class LinesEncoder implements TurnEncoder {
  readonly #fields: SourceFields
  readonly #turn: Turn = emptyTurn()
  readonly #links = new CitationLinks()

  constructor(fields: SourceFields) {
    this.#fields = fields
  }

  encode(event: TurnEvent): string {
    fold(this.#turn, event)
    switch (event.type) {
      case 'question':
        return line({ type: 'begin' })
      case 'retrieval':
        this.#links.cite(sourcesOf(this.#turn.passages, this.#fields))
        return ''
      case 'delta':
        return item(this.#links.add(event.text))
      case 'done':
        return item(this.#links.end()) + line({ type: 'end' })
      default:
        return ''
    }
  }

  fail({ message }: Failure): string {
    return item(this.#links.end()) + line({ type: 'error', content: message })
  }
}

const item = (text: string): string =>
  text === '' ? '' : `{"type":"item","content":${JSON.stringify(text)}}\n`
