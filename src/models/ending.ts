/** How a provider's reply ends: one judgement for all of them of what is an answer and what is not. */
import type { ProviderCall } from './call'
import type { Delta, FinishReason } from './language-model'

/** What was seen of a reply, streamed or whole, when nothing more is to come. */
export interface Ending {
  /** whether anything came at all */
  any: boolean
  /** whether some of it was text of an answer */
  answered: boolean
  /** why the model ended; undefined for a reply without its end marker */
  finish?: FinishReason | undefined
  usage?: Delta | undefined
  /** the model's own words where it said no, apart from its text */
  refusal?: string | undefined
}

/**
 * The last deltas of a reply: what it cost and why it ended.
 * @throws ProviderError for a refusal, for a reply that broke off, and for one without text, with the reason of it
 */
export function* conclude(call: ProviderCall, ending: Ending): Generator<Delta> {
  const { any, answered, finish, usage, refusal } = ending
  if (refusal) throw call.failed(`the model refused to answer: ${refusal}`)
  if (!finish) throw any ? call.cut() : call.malformed()
  if (!answered) throw withoutText(call, finish)
  if (usage) yield usage
  yield { type: 'finish', reason: finish }
}

/** Whether a text is missing is said by the reason to end: a model that only reasoned has done nothing wrong. */
function withoutText(call: ProviderCall, finish: FinishReason): Error {
  switch (finish) {
    case 'content_filter':
      return call.failed('a content filter or the model itself withheld the answer')
    case 'length':
      return call.failed('the model reached its limit of tokens before its answer began: raise `max_tokens`')
    default:
      return call.malformed()
  }
}
