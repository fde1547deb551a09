/** POST /ui/{assistant}/text: an answer as plain text, for `TextStreamChatTransport` and `useCompletion` of the AI SDK. */
import type { Failure } from '../../errors'
import type { TurnEvent } from '../../turn/events'
import type { Wording } from '../../turn/wording'
import { HEARTBEAT_MS, type TurnEncoder } from '../shared/stream'

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
