/** What the chat says of faults, in words that tell what to do. */
import type { TurnFault } from '../../../widget/src/wire'
import { ENGLISH, type Words } from '../../../widget/src/words'

export const WORDS: Words = {
  ...ENGLISH,
  placeholder: 'Ask a question',
  stopped: 'Stopped. Nothing of this answer is kept.',
  failed: 'This did not work.',
  offline: 'The connection broke before the answer was complete. Check that Parley is running and try again.',
  refused: 'Your API key may not ask this. Choose another one with "Use another key".',
}

/** @param message the server's own @param code of an `error` event */
export function inWords({ status, message, code }: TurnFault): string {
  if (status === 429) return 'Too many questions at once. Wait a moment and ask again.'
  if (
    code === 'unknown_conversation' ||
    /conversation_id` is invalid|^Conversation not found/.test(message)
  ) {
    return 'This conversation has expired. Start a new one to go on.'
  }
  if (code === 'stopped') return WORDS.stopped
  if (/conversation_model_id` is invalid|^Model not found/.test(message)) {
    return 'There is no such conversation model. Choose another one under Settings.'
  }
  if (message === 'Collection not found') {
    return 'There is no such collection. Choose another one under Settings.'
  }
  return message || `The server answered with status ${status}.`
}
