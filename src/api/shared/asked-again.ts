/** Detects that a question is asked again to get another answer, by a client that does not say so. Pure. */
import { textOf } from '../../lib/parts'
import type { TranscriptMessage } from '../../turn/look-back'
import type { Replacement } from '../../turn/request'

/**
 * What a question with a whole transcript may replace: the last turn, if it asked the same. A client that regenerates
 * leaves the old answer out of the transcript; if a user repeats a question, the answer is in it. A question without
 * a transcript may come from a client that never sends one, so it can replace only the single turn of a conversation.
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
