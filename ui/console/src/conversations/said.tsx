/** What is said of an answer: by people, and by the documents, which support its sentences or do not. */

import { REASONS } from '../../../widget/src/feedback-view'
import { WORDS } from '../chat/words'
import { Icon } from '../parts/button'
import { many, when } from '../parts/format'
import { Badges } from '../parts/page'
import type { GivenFeedback, RecordedTurn } from './record'

export function Said({ feedback }: { feedback: GivenFeedback[] | undefined }) {
  if (!feedback || feedback.length === 0) return null
  return (
    <ul class="said pile apart" aria-label="Feedback">
      {feedback.map((each) => (
        <li
          key={`${each.created_at} ${each.comment}`}
          class={each.rating === 'down' ? 'said-item bad' : 'said-item'}
        >
          {each.rating && <Icon name={each.rating === 'up' ? 'thumbUp' : 'thumbDown'} />}
          <div>
            <strong>{titleOf(each)}</strong>
            {each.own && ' · yours'}
            <span class="soft"> · {when(each.updated_at)}</span>
            {each.comment !== undefined && <p dir="auto">{each.comment}</p>}
            <Badges of={each.reasons?.map(inWords) ?? []} />
          </div>
        </li>
      ))}
    </ul>
  )
}

/** A reason as the widget words it, or in the words of whoever gave it. */
export const inWords = (reason: string): string =>
  Object.hasOwn(REASONS, reason) ? WORDS[REASONS[reason]!] : reason

function titleOf({ rating, score }: GivenFeedback): string {
  const rated = rating === 'up' ? 'Good answer' : rating === 'down' ? 'Bad answer' : 'Comment'
  return score === undefined ? rated : `${rated}, ${score} of 5`
}

const OUTCOMES = { supported: '', partly: 'Supported in part', not_found: 'Not found in the documents' }

/** The sentences that the documents do not support. Nothing where there are none. */
export function Doubted({ answer, support = [] }: Pick<RecordedTurn, 'answer' | 'support'>) {
  const doubted = support.filter((sentence) => sentence.support !== 'supported')
  if (doubted.length === 0) return null
  return (
    <details class="doubted pile apart">
      <summary>
        The documents do not support {doubted.length} of {many(support.length, 'sentence')}
      </summary>
      <ul class="faults pile">
        {doubted.map(({ start, end, support: found, missing }) => (
          <li key={start} class="line">
            <span dir="auto">{answer.slice(start, end)}</span>
            <span class="soft">
              {missing ? `Not in the documents: ${missing.join(', ')}` : OUTCOMES[found]}
            </span>
          </li>
        ))}
      </ul>
    </details>
  )
}
