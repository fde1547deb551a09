/** What went wrong in the last days, the most frequent first. */
import { mapFew } from '../../../../src/lib/few'
import { to } from '../address'
import { useLoaded } from '../api'
import { failedTurns, listConversations } from '../conversations/record'
import { ago, many } from '../parts/format'
import { Shown } from '../parts/states'
import { groupedFailures } from './sums'

/** Conversations whose failed turns are read: the latest. */
const READ = 20
const AT_ONCE = 4
const DAY_MS = 86_400_000

export function Failures({ days }: { days: string }) {
  const loaded = useLoaded(`failures ${days}`, async (signal) => {
    const from = Date.now() - Number(days) * DAY_MS
    const filter = { failed: 'true', from: String(from), limit: READ }
    const { conversations } = await listConversations(filter, signal)
    const failed = await mapFew(conversations, AT_ONCE, async ({ id }) =>
      (await failedTurns(id, signal)).map((turn) => ({ ...turn, conversation: id })),
    )
    return groupedFailures(failed.flat().filter(({ created_at: at }) => at >= from))
  })
  return (
    <section class="panel-card">
      <div class="card-bar">
        <h2>Errors</h2>
        <a href={to(['conversations'], { only: 'failed', days })}>All failed answers</a>
      </div>
      <Shown of={loaded} lines={2} label="Reading errors">
        {(failures) =>
          failures.length === 0 ? (
            <p class="hint">No question failed in this time.</p>
          ) : (
            <ul class="faults">
              {failures.map(({ message, count, last }) => (
                <li key={message}>
                  <span class="bad">{message}</span>
                  <span class="soft">{many(count, 'time')}, last </span>
                  <a href={to(['conversations', 'read', last.conversation])}>{ago(last.created_at)}</a>
                </li>
              ))}
            </ul>
          )
        }
      </Shown>
    </section>
  )
}
