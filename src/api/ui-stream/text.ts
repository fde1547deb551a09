/** Plain text streams, for `TextStreamChatTransport` and `useCompletion` with `streamProtocol: 'text'`. */
import type { Failure } from '../../errors'
import type { TurnEvent } from '../../turn/events'
import type { TurnEncoder } from '../turn/stream'

export class TextEncoderOfTurn implements TurnEncoder {
  encode(event: TurnEvent): string {
    return event.type === 'delta' ? event.text : ''
  }

  /** Text has no other place for an error: without a word, half an answer would be taken for a whole one. */
  fail({ message }: Failure): string {
    return `\n\n[The answer broke off: ${message}]`
  }
}
