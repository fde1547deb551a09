/** The list of conversations, whatever protocol began them. */
import { NEW, to } from '../address'
import { useAction, useLoaded } from '../api'
import { ago, count, many, when } from '../parts/format'
import { Page } from '../parts/page'
import { Empty, Loading, Problem } from '../parts/states'
import { Tabs } from '../parts/tabs'
import { FilterForm, filterOf, filters, isFiltered } from './filters'
import { type ConversationPage, type Listed, listConversations } from './record'

const PAGE = 50

export const ConversationTabs = ({ current }: { current: string }) => (
  <Tabs
    label="Views of conversations"
    current={current}
    tabs={[
      { id: 'all', title: 'All', href: to(['conversations']) },
      { id: 'unanswered', title: 'Not answered', href: to(['conversations', 'unanswered']) },
    ]}
  />
)

export function ConversationList() {
  const given = filters()
  const loaded = useLoaded(`conversations ${JSON.stringify(given)}`, (signal) =>
    listConversations({ ...filterOf(given), limit: PAGE }, signal),
  )
  const { data } = loaded
  const more = useAction(async (page: ConversationPage) => {
    const next = await listConversations({ ...filterOf(given), limit: PAGE, cursor: page.next_cursor ?? '' })
    loaded.set({ ...next, conversations: [...page.conversations, ...next.conversations] })
  })
  const shown = data?.conversations ?? []
  const filtered = isFiltered(given)
  return (
    <Page title="Conversations" lead="What people asked, on any protocol, and what they were answered.">
      <ConversationTabs current="all" />
      <FilterForm />
      {loaded.loading && <Loading lines={8} />}
      {loaded.error && <Problem error={loaded.error} retry={loaded.reload} />}
      {data && shown.length === 0 && (
        <Empty icon="conversations" title={filtered ? 'No conversation fits' : 'No conversations yet'}>
          <p>
            {filtered
              ? 'Take a filter away, or look for the beginning of a word.'
              : 'Questions that are asked here, in the widget or by a program are listed here.'}
          </p>
          {!filtered && (
            <a class="button primary" href={NEW}>
              Ask a question
            </a>
          )}
        </Empty>
      )}
      {shown.length > 0 && (
        <ul class="rows">
          {shown.map((each) => (
            <li key={each.id}>
              <a class="row conversation-row" href={to(['conversations', 'read', each.id])}>
                <span class="row-title" dir="auto">
                  {each.title || 'Untitled'}
                </span>
                <span class="row-text">
                  {many(each.turn_count, 'turn')} · {each.protocol}
                  {each.user_id !== '' && ` · ${each.user_id}`} · {each.model_id}
                  <Marks of={each} />
                </span>
                <time
                  class="row-text"
                  dateTime={new Date(each.updated_at).toISOString()}
                  title={when(each.updated_at)}
                >
                  {ago(each.updated_at)}
                </time>
              </a>
            </li>
          ))}
        </ul>
      )}
      {more.error && <Problem error={more.error} />}
      {data?.next_cursor !== undefined && (
        <div class="pager">
          <button type="button" class="button" disabled={more.busy} onClick={() => more.start(data)}>
            {more.busy ? 'Loading …' : 'Load earlier ones'}
          </button>
          <span class="soft">{count(data.conversations.length)} loaded</span>
        </div>
      )}
    </Page>
  )
}

/** How its answers were rated, and whether one of its turns failed. */
function Marks({ of: { ratings: { up, down } = { up: 0, down: 0 }, failed_at } }: { of: Listed }) {
  return (
    <>
      {up > 0 && <span class="badge mark">{count(up)} good</span>}
      {down > 0 && <span class="badge warn mark">{count(down)} bad</span>}
      {failed_at !== undefined && <span class="badge warn mark">failed</span>}
    </>
  )
}
