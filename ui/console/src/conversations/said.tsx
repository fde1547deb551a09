/** What people say of an answer. */
import { when } from '../parts/format'
import { Icon } from '../parts/icon'
import type { GivenFeedback } from './record'

export function Said({ feedback }: { feedback: GivenFeedback[] | undefined }) {
  if (!feedback || feedback.length === 0) return null
  return (
    <ul class="said" aria-label="Feedback">
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
            {each.reasons && (
              <p class="badges">
                {each.reasons.map((reason) => (
                  <span key={reason} class="badge">
                    {reason}
                  </span>
                ))}
              </p>
            )}
          </div>
        </li>
      ))}
    </ul>
  )
}

function titleOf({ rating, score }: GivenFeedback): string {
  const rated = rating === 'up' ? 'Good answer' : rating === 'down' ? 'Bad answer' : 'Comment'
  return score === undefined ? rated : `${rated}, ${score} of 5`
}
