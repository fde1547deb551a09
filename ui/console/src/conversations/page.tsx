/** Conversations: the list of them, whatever protocol began them, what nothing answered, and one to read. */
import { mapFew } from '../../../../src/lib/few'
import { NEW, place, to, toConversation } from '../address'
import { useLoaded, usePagedList } from '../api'
import type { Summary } from '../chat/wire'
import { Button } from '../parts/button'
import { ago, count, many, when } from '../parts/format'
import { type EmptyProps, Item, List, More } from '../parts/list'
import { NotFound, Page, Tabs } from '../parts/page'
import { TESTER } from '../sets/store'
import { ConversationPage } from './conversation'
import { FilterForm, filterOf, filters, isFiltered } from './filters'
import { grouped, listConversations, readConversation } from './record'

export default function Conversations() {
  const [name, id, more] = place.value.rest
  if (name === undefined) return <ConversationList />
  if (more !== undefined) return <NotFound />
  if (name === 'unanswered' && id === undefined) return <Unanswered />
  return <ConversationPage key={id ?? name} id={id ?? name} />
}

const PAGE = 50

const ConversationTabs = ({ current }: { current: string }) => (
  <Tabs
    label="Views of conversations"
    current={current}
    tabs={[
      { id: 'all', title: 'All', href: to(['conversations']) },
      { id: 'unanswered', title: 'Unanswered questions', href: to(['conversations', 'unanswered']) },
    ]}
  />
)

/** The list of conversations, whatever protocol began them. */
function ConversationList() {
  const given = filters()
  const list = usePagedList(`conversations ${JSON.stringify(given)}`, async (cursor, signal) => {
    const page = await listConversations({ ...filterOf(given), limit: PAGE, cursor }, signal)
    return { items: page.conversations, next: page.next_cursor }
  })
  return (
    <Page title="Conversations" lead="What people asked, on any protocol, and what they were answered.">
      <ConversationTabs current="all" />
      <FilterForm />
      <List
        of={list}
        lines={8}
        class="rows"
        empty={isFiltered(given) ? UNFIT : NONE}
        item={(each) => <Row key={each.id} of={each} />}
        after={<More of={list} title="Load earlier ones" />}
      />
    </Page>
  )
}

const UNFIT: EmptyProps = {
  icon: 'conversations',
  title: 'No conversation fits',
  text: 'Take a filter away, or look for the beginning of a word.',
}

const NONE: EmptyProps = {
  icon: 'conversations',
  title: 'No conversations yet',
  text: 'Questions that are asked here, in the widget or by a program are listed here.',
  action: <Button label="Ask a question" kind="primary" href={NEW} />,
}

const Row = ({ of }: { of: Summary }) => (
  <li>
    <a class="row conversation-row" href={to(['conversations', 'read', of.id])}>
      <span class="row-title" dir="auto">
        {of.title || 'Untitled'}
      </span>
      <span class="row-text">
        {many(of.turn_count, 'turn')} · {of.protocol}
        {of.user_id !== '' && ` · ${of.user_id}`} · {of.model_id}
        <Marks of={of} />
      </span>
      <time class="row-text" dateTime={new Date(of.updated_at).toISOString()} title={when(of.updated_at)}>
        {ago(of.updated_at)}
      </time>
    </a>
  </li>
)

/** How its answers were rated, and whether one of its turns failed. */
function Marks({ of: { ratings: { up, down } = { up: 0, down: 0 }, failed_at } }: { of: Summary }) {
  return (
    <>
      {up > 0 && <span class="badge mark">{count(up)} good</span>}
      {down > 0 && <span class="badge warn mark">{count(down)} bad</span>}
      {failed_at !== undefined && <span class="badge warn mark">failed</span>}
    </>
  )
}

// =============================================================================
// Questions whose answers stand on nothing that was found, the most asked first.

/** Conversations that are read for it: the latest with an answer that cites nothing. */
const READ = 100
const AT_ONCE = 6

function Unanswered() {
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
