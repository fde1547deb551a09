/** What the chat says of faults, in words that tell what to do. */
import type { TurnFault } from '../../../widget/src/wire'
import { ENGLISH, type Words } from '../../../widget/src/words'

export const WORDS: Words = {
  ...ENGLISH,
  stopped: 'Stopped. Nothing of this answer is kept.',
  failed: 'Something went wrong.',
  offline: 'The connection broke before the answer was complete. Check that Parley is running and try again.',
  tooLong: 'This question is too long for the model. Make it shorter, or raise `max_bytes` of the model.',
  refused: 'Your API key may not ask this. Choose another one with "Switch key".',
}

/** What is said of a conversation that is there, but does not go on. */
export const STUCK =
  'This conversation cannot go on: its model, or the history that the model writes, has changed since. Start a new one to ask on.'

/** What the console says in place of the server's words, by the code of the error. */
const FAULTS: Record<string, string> = {
  unknown_conversation: 'This conversation has expired. Start a new one to go on.',
  unknown_model: 'There is no such conversation model. Choose another one under Settings.',
  unknown_collection: 'There is no such collection. Choose another one under Settings.',
  stopped: WORDS.stopped,
}

/** Limits that the server says more of: which it is, and when to ask again. */
const OF_LIMITS = ['over_budget', 'too_many_waiting']

/** @param message the server's own @param code of an `error` event, or of a refused request */
export function inWords({ status, message, code }: TurnFault): string {
  if (status === 429 && !(code !== undefined && OF_LIMITS.includes(code)))
    return 'Too many questions at once. Wait a moment and ask again.'
  return FAULTS[code ?? ''] ?? (message || `The server answered with status ${status}.`)
}
