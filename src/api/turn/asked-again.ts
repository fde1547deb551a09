/** Notices that a question is asked again for another answer, by a client that does not say so. Pure. */
import { textOf } from '../../parts'
import type { Replacement } from '../../turn/request'
import type { TranscriptMessage } from '../../turn/transcript'

/**
 * What a question with a whole transcript may replace: the last turn, if it asked the same. Such a client leaves out the answer
 * that it wants anew, while somebody who repeats a question has it in the transcript. A question alone may come from a client
 * that sends no transcript, so it replaces the only turn of a conversation and no later one.
 * @returns undefined if the question is repeated
 */
export function askedAgain({
  question,
  transcript,
}: {
  question: string
  transcript: readonly TranscriptMessage[]
}): Replacement | undefined {
  const before = transcript.findLast(({ role }) => role === 'user')
  if (before === undefined) return { last: 'only' }
  return textOf(before.content) === question ? undefined : { last: 'any' }
}
