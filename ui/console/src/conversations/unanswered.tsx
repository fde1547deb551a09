/** Questions whose answers stand on nothing that was found, the most asked first. */
import { toConversation } from '../address'
import { useLoaded } from '../api'
import { ago, many } from '../parts/format'
import { Page } from '../parts/page'
import { Empty, Loading, Problem } from '../parts/states'
import { ConversationTabs } from './list'
import { grouped, listConversations, type RecordedConversation, readConversation } from './record'

/** Conversations that are read for it: the latest with an answer that cites nothing. */
const READ = 100
const AT_ONCE = 6

export function Unanswered() {
  const loaded = useLoaded('unanswered', async (signal) => {
    const { conversations } = await listConversations({ unanswered: 'true', limit: READ }, signal)
    const read: RecordedConversation[] = []
    const waiting = [...conversations]
    const next = async (): Promise<void> => {
      const one = waiting.shift()
      if (!one) return
      // One that was deleted meanwhile is passed over.
      const found = await readConversation(one.id, signal).catch(() => undefined)
      if (found) read.push(found)
      return next()
    }
    await Promise.all(Array.from({ length: AT_ONCE }, next))
    return { groups: grouped(read), among: read.reduce((sum, { turns }) => sum + turns.length, 0) }
  })
  const { data } = loaded
  return (
    <Page
      title="Not answered"
      up={{ title: 'Conversations', href: '#/conversations' }}
      lead={`Questions whose answers cite nothing, of the latest ${READ} conversations that have one: what to write next.`}
    >
      <ConversationTabs current="unanswered" />
      {loaded.loading && <Loading lines={6} label="Reading conversations" />}
      {loaded.error && <Problem error={loaded.error} retry={loaded.reload} />}
      {data?.groups.length === 0 && (
        <Empty icon="check" title="Every answer cites its sources">
          <p>
            {data.among === 0 ? 'Nothing was asked yet.' : `${many(data.among, 'answer')} were looked at.`}
          </p>
        </Empty>
      )}
      {data && data.groups.length > 0 && (
        <ul class="cards">
          {data.groups.map(({ question, turns }) => {
            const last = turns.reduce((best, each) => (each.at > best.at ? each : best))
            return (
              <li key={question} class="item">
                <div class="item-main">
                  <a class="item-name" href={toConversation(last.conversation)} dir="auto">
                    {question}
                  </a>
                  <p class="soft">asked {ago(last.at)}</p>
                </div>
                <span class="badge">{many(turns.length, 'time')}</span>
              </li>
            )
          })}
        </ul>
      )}
    </Page>
  )
}
