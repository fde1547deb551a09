/** Questions whose answers stand on nothing that was found, the most asked first. */
import { mapFew } from '../../../../src/lib/few'
import { NEW, toConversation } from '../address'
import { useLoaded } from '../api'
import { Button } from '../parts/button'
import { ago, many } from '../parts/format'
import { List } from '../parts/list'
import { Item } from '../parts/list-page'
import { Page } from '../parts/page'
import { TESTER } from '../sets/running'
import { ConversationTabs } from './list'
import { grouped, listConversations, readConversation } from './record'

/** Conversations that are read for it: the latest with an answer that cites nothing. */
const READ = 100
const AT_ONCE = 6

export function Unanswered() {
  const loaded = useLoaded('unanswered', async (signal) => {
    const page = await listConversations({ unanswered: 'true', limit: READ }, signal)
    const conversations = page.conversations.filter(
      ({ user_id: user }) => user !== TESTER['x-typesense-user-id'],
    )
    // One that was deleted meanwhile is passed over.
    const read = await mapFew(conversations, AT_ONCE, ({ id }) =>
      readConversation(id, signal).catch(() => undefined),
    )
    return grouped(read.filter((each) => each !== undefined))
  })
  return (
    <Page
      title="Unanswered questions"
      lead={`Questions whose answers cite nothing, from the latest ${READ} conversations that have one. They show what to write next.`}
    >
      <ConversationTabs current="unanswered" />
      <List
        of={loaded}
        lines={6}
        label="Reading conversations"
        class="cards"
        empty={{
          icon: 'check',
          title: 'Nothing is left unanswered',
          text: 'Answers that cite no document are listed here, so that you see what your documents lack.',
          action: <Button label="Ask a question" kind="primary" href={NEW} />,
        }}
        item={({ question, turns }) => {
          const last = turns.reduce((best, each) => (each.at > best.at ? each : best))
          return (
            <Item
              key={question}
              name={question}
              href={toConversation(last.conversation)}
              about={`asked ${ago(last.at)}`}
            >
              <span class="badge">{many(turns.length, 'time')}</span>
            </Item>
          )
        }}
      />
    </Page>
  )
}
