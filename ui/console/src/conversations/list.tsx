/** The list of conversations, whatever protocol began them. */
import { useState } from 'preact/hooks'
import { go, NEW, place, to } from '../address'
import { Refusal, useLoaded } from '../api'
import { ago, count, many, when } from '../parts/format'
import { Icon } from '../parts/icon'
import { Page } from '../parts/page'
import { Empty, Loading, Problem } from '../parts/states'
import { Tabs } from '../parts/tabs'
import { type ConversationPage, listConversations } from './record'

const PAGE = 50
const DAY_MS = 86_400_000

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
  const { query } = place.value
  const user = query.get('user') ?? ''
  const days = query.get('days') ?? ''
  const words = query.get('q') ?? ''
  const [typed, setTyped] = useState(user)
  const loaded = useLoaded(`conversations ${user}`, (signal) =>
    listConversations({ user, limit: PAGE }, signal),
  )
  const [problem, setProblem] = useState<Refusal>()
  const [busy, setBusy] = useState(false)
  const { data } = loaded
  const set = (next: Record<string, string>) =>
    go(to(['conversations'], { user, days, q: words, ...next }), { replace: true })
  const more = async (page: ConversationPage) => {
    setBusy(true)
    setProblem(undefined)
    try {
      const next = await listConversations({ user, limit: PAGE, cursor: page.next_cursor ?? '' })
      loaded.set({ ...next, conversations: [...page.conversations, ...next.conversations] })
    } catch (error) {
      setProblem(error instanceof Refusal ? error : new Refusal(0, String(error)))
    }
    setBusy(false)
  }
  const since = days === '' ? 0 : Date.now() - Number(days) * DAY_MS
  const shown = (data?.conversations ?? []).filter(
    ({ title, updated_at }) => updated_at >= since && title.toLowerCase().includes(words.toLowerCase()),
  )
  const filtered = user !== '' || days !== '' || words !== ''
  return (
    <Page title="Conversations" lead="What people asked, on any protocol, and what they were answered.">
      <ConversationTabs current="all" />
      <search class="search-form">
        <label class="search-box">
          <span class="hidden">Search titles</span>
          <Icon name="search" />
          <input
            type="search"
            placeholder="Search titles"
            value={words}
            onInput={(event) => set({ q: event.currentTarget.value })}
          />
        </label>
        <label class="filter-box">
          <span class="hidden">User</span>
          <input
            class="input"
            placeholder="User, exactly"
            spellcheck={false}
            value={typed}
            onInput={(event) => setTyped(event.currentTarget.value)}
            onChange={(event) => set({ user: event.currentTarget.value.trim() })}
          />
        </label>
        <label>
          <span class="hidden">Time</span>
          <select class="input" value={days} onChange={(event) => set({ days: event.currentTarget.value })}>
            <option value="">Any time</option>
            <option value="1">The last day</option>
            <option value="7">The last 7 days</option>
            <option value="30">The last 30 days</option>
          </select>
        </label>
      </search>
      {loaded.loading && <Loading lines={8} />}
      {loaded.error && <Problem error={loaded.error} retry={loaded.reload} />}
      {data && shown.length === 0 && (
        <Empty icon="conversations" title={filtered ? 'No conversation fits' : 'No conversations yet'}>
          <p>
            {filtered
              ? 'Take a filter away, or load earlier ones below.'
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
      {problem && <Problem error={problem} />}
      {data?.next_cursor !== undefined && (
        <div class="pager">
          <button type="button" class="button" disabled={busy} onClick={() => more(data)}>
            {busy ? 'Loading …' : 'Load earlier ones'}
          </button>
          <span class="soft">{count(data.conversations.length)} loaded</span>
        </div>
      )}
    </Page>
  )
}
