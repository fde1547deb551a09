/** Whether the documents support what an answer says, sentence by sentence. */
import { many } from '../parts/format'
import type { RecordedTurn } from './record'

const OUTCOMES = { supported: '', partly: 'Supported in part', not_found: 'Not found in the documents' }

/** The sentences that the documents do not support. Nothing where there are none. */
export function Doubted({ answer, support = [] }: Pick<RecordedTurn, 'answer' | 'support'>) {
  const doubted = support.filter((sentence) => sentence.support !== 'supported')
  if (doubted.length === 0) return null
  return (
    <details class="doubted">
      <summary>
        The documents do not support {doubted.length} of {many(support.length, 'sentence')}
      </summary>
      <ul class="faults">
        {doubted.map(({ start, end, support: found, missing }) => (
          <li key={start}>
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
