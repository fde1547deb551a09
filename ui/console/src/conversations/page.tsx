/** Conversations: the list of them, whatever protocol began them, what nothing answered, and one to read. */

import { useEffect, useState } from 'preact/hooks'
import { go, NEW, place, to } from '../address'
import { mapped, useLoaded } from '../api'
import type { Summary } from '../chat/wire'
import { Button } from '../parts/button'
import { SearchBox, SelectField, useTyped } from '../parts/form'
import { ago, count, many, when } from '../parts/format'
import { type EmptyProps, List } from '../parts/list'
import { Act, NotFound, Page } from '../parts/page'
import { ConversationPage } from './conversation'
import { type ListFilter, listConversations } from './record'
import { ConversationTabs, Unanswered } from './unanswered'

export default function Conversations() {
  const [name, id, more] = place.value.rest
  if (name === undefined) return <ConversationList />
  if (more !== undefined) return <NotFound />
  if (name === 'unanswered' && id === undefined) return <Unanswered />
  return <ConversationPage key={id ?? name} id={id ?? name} />
}

const PAGE = 50

/** The list of conversations, whatever protocol began them. */
function ConversationList() {
  const given = filters()
  const load = (cursor: string, signal?: AbortSignal) =>
    listConversations({ ...filterOf(given), limit: PAGE, cursor }, signal)
  const list = useLoaded(`conversations ${JSON.stringify(given)}`, (signal) => load('', signal))
  const { conversations = [], next_cursor: next = '' } = list.data ?? {}
  const more = async () => {
    const page = await load(next)
    list.set({ ...page, conversations: [...conversations, ...page.conversations] })
  }
  return (
    <Page title="Conversations" lead="What people asked, on any protocol, and what they were answered.">
      <ConversationTabs current="all" />
      <FilterForm />
      <List
        of={mapped(list, () => conversations)}
        class="rows frame"
        empty={isFiltered(given) ? UNFIT : NONE}
        item={(each) => <Row key={each.id} of={each} />}
        after={
          next !== '' && (
            <div class="pager line">
              <Act label="Load earlier ones" busy="Loading …" run={more} />
              <span class="soft">{count(conversations.length)} loaded</span>
            </div>
          )
        }
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
      <span class="row-title cut" dir="auto">
        {of.title || 'Untitled'}
      </span>
      <span class="row-text cut">
        {many(of.turn_count, 'turn')} · {of.protocol}
        {of.user_id !== '' && ` · ${of.user_id}`} · {of.model_id}
        <Marks of={of} />
      </span>
      <time class="row-text cut" dateTime={new Date(of.updated_at).toISOString()} title={when(of.updated_at)}>
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
// What narrows the list of conversations. It stands in the address, so that a link shows the same list.

const DAY_MS = 86_400_000

const NAMES = ['q', 'user', 'rating', 'only', 'days'] as const
type Filters = Record<(typeof NAMES)[number], string>

function filters(): Filters {
  const { query } = place.value
  return Object.fromEntries(NAMES.map((name) => [name, query.get(name) ?? ''])) as Filters
}

const isFiltered = (given: Filters): boolean => NAMES.some((name) => given[name] !== '')

/** @param now milliseconds */
const filterOf = ({ q, user, rating, only, days }: Filters, now = Date.now()): ListFilter => ({
  q: q.trim(),
  user_id: user,
  rating,
  unanswered: only === 'unanswered' ? 'true' : '',
  failed: only === 'failed' ? 'true' : '',
  from: days === '' ? '' : String(now - Number(days) * DAY_MS),
})

const set = (next: Partial<Filters>) =>
  go(to(['conversations'], { ...filters(), ...next }), { replace: true })

/** What each narrows by: its label and its name, nothing, and the others in their order. */
const CHOICES = [
  ['Rating', 'rating', 'Any rating', { down: 'Rated bad', up: 'Rated good' }],
  ['Answers', 'only', 'Any answer', { unanswered: 'Cites nothing', failed: 'Failed' }],
  ['Time', 'days', 'Any time', { 1: 'The last day', 7: 'The last 7 days', 30: 'The last 30 days' }],
] as const

function FilterForm() {
  const given = filters()
  const { q, user } = given
  const [words, setWords] = useTyped(q, (typed) => set({ q: typed }))
  const [name, setName] = useState(user)
  useEffect(() => setName(user), [user])
  return (
    <search class="search-form line">
      <SearchBox label="Search questions and answers" value={words} change={setWords} most={200} />
      <label class="filter-box">
        <span class="hidden">User</span>
        <input
          class="input"
          placeholder="User ID"
          spellcheck={false}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
          onChange={(event) => set({ user: event.currentTarget.value.trim() })}
        />
      </label>
      {CHOICES.map(([label, name, any, others]) => (
        <SelectField
          key={name}
          label={label}
          bare
          value={given[name]}
          options={[['', any], ...Object.entries(others)]}
          change={(value) => set({ [name]: value })}
        />
      ))}
    </search>
  )
}
