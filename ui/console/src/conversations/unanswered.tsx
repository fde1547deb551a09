/** Questions that were not answered well, those that mean the same in one group: what to mend or to write next. */
import { mapFew } from '../../../../src/lib/few'
import { NEW, pageOf, to, toConversation } from '../address'
import { Refusal, send, useLoaded } from '../api'
import { loadChoices } from '../chat/choices'
import { titleOf } from '../chat/insight'
import { searchParams } from '../collections/query'
import {
  type Collection,
  hasDocuments,
  type SearchResult,
  textFields,
  vectorField,
} from '../collections/wire'
import { addressOf } from '../compare/side'
import { Button } from '../parts/button'
import { ago, csv, download, likeness, many, share } from '../parts/format'
import { Item, List } from '../parts/list'
import { Badges, Page, Tabs } from '../parts/page'
import { TESTER } from '../sets/store'
import { type Group, grouped, joined, listConversations, readConversation } from './record'
import { inWords } from './said'

export const ConversationTabs = ({ current }: { current: string }) => (
  <Tabs
    label="Views of conversations"
    current={current}
    tabs={[
      { id: 'all', title: 'All', href: to(['conversations']) },
      { id: 'unanswered', title: 'Unanswered questions', href: to(['conversations', 'unanswered']) },
    ]}
  />
)

/** Conversations that are read for it: the latest that each of these narrows the list to. */
const READ = [{ unanswered: 'true', limit: 100 }, { rating: 'down', limit: 50 }, { limit: 50 }]
const AT_ONCE = 6

interface Found {
  groups: Group[]
  /** whether questions were compared by their meaning */
  byMeaning: boolean
  collections: Collection[]
}

async function find(signal: AbortSignal): Promise<Found> {
  const [choices, ...pages] = await Promise.all([
    loadChoices(signal),
    ...READ.map((filter) => listConversations(filter, signal)),
  ])
  const listed = pages.flatMap(({ conversations }) => conversations)
  const ids = listed.flatMap(({ id, user_id: user }) => (user === TESTER['x-typesense-user-id'] ? [] : id))
  // One that was deleted meanwhile is passed over.
  const read = await mapFew([...new Set(ids)], AT_ONCE, (id) =>
    readConversation(id, signal).catch(() => undefined),
  )
  const groups = grouped(read.filter((each) => each !== undefined))
  const collections = (choices.collections ?? []).filter(
    (each) => hasDocuments(each) && textFields(each).length > 0 && each.num_documents > 0,
  )
  const vectors = await vectorsOf(groups, collections)
  return { groups: vectors ? joined(groups, vectors) : groups, byMeaning: vectors !== undefined, collections }
}

/** As many texts as the server takes at once, and the most of one. */
const MOST_TEXTS = 2_048
const LONGEST = 8_000

/** By Parley's own model, which costs nothing. @returns undefined where no collection has it, or the key may not ask it */
async function vectorsOf(groups: Group[], collections: Collection[]): Promise<number[][] | undefined> {
  const own = collections.find((each) => vectorField(each)?.embed?.served_by?.startsWith('local/'))
  if (own === undefined || groups.length === 0) return undefined
  const input = groups.slice(0, MOST_TEXTS).map(([{ question }]) => question.slice(0, LONGEST) || '-')
  const body = { model: own.name, input }
  const asked = send<{ data: { embedding: number[] }[] }>('POST', '/v1/embeddings', body)
  const made = await asked.catch((error) => {
    if (!(error instanceof Refusal) || error.status === 0) throw error
  })
  return made?.data.map(({ embedding }) => embedding)
}

/** A document, and how alike it and a question are in meaning: 0 where that is not known. */
interface Nearest {
  ref: string
  title: string
  alike: number
}

/** Searches that one request takes, and collections in which the nearest document is looked for. */
const MOST_SEARCHES = 50
const MOST_PLACES = 3

/** The document that comes nearest to each of the first groups, as many as one request has room for. */
async function nearestOf({ groups, collections }: Found): Promise<(Nearest | undefined)[]> {
  const places = collections.slice(0, MOST_PLACES)
  const first = groups.slice(0, MOST_SEARCHES / (places.length || 1))
  const searches = first.flatMap(([{ question: q }]) =>
    places.map((place) => ({
      ...Object.fromEntries(
        searchParams(place, { q, filter: '', by: 'meaning', weights: new Map(), alpha: '' }),
      ),
      collection: place.name,
      facet_by: '',
      per_page: 1,
    })),
  )
  if (searches.length === 0) return []
  const { results } = await send<{ results: Partial<SearchResult>[] }>('POST', '/multi_search', { searches })
  return first.map((_, at) => {
    const near = places.flatMap(({ name }, place): Nearest[] =>
      (results[at * places.length + place]?.hits ?? []).map(
        ({ document, vector_distance: distance = 1 }) => ({
          ref: `${name}/${document.id}`,
          title: titleOf(document),
          alike: likeness(distance),
        }),
      ),
    )
    return near.sort((a, b) => b.alike - a.alike)[0]
  })
}

/** Other ways in which a group was asked, each once. */
const examplesOf = ([first, ...more]: Group) =>
  [...new Set(more.map(({ question }) => question))].filter((each) => each !== first.question)

const MOST_EXAMPLES = 3

const lastOf = (group: Group) => group.reduce((best, each) => (each.at > best.at ? each : best))

/** What speaks against the answers of some groups, the most frequent first: `cites nothing (2)`, `Outdated`. */
function faultsIn(groups: Group[]): string[] {
  const counts = new Map<string, number>()
  for (const { faults, reasons } of groups.flat())
    for (const fault of [...faults, ...reasons.map(inWords)]) counts.set(fault, (counts.get(fault) ?? 0) + 1)
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([fault, count]) => (count > 1 ? `${fault} (${count})` : fault))
}

const asCsv = (groups: Group[], nearest: (Nearest | undefined)[]): string =>
  csv([
    ['question', 'times', 'last asked', 'why', 'other wordings', 'nearest document', 'alike'],
    ...groups.map((group, at) => [
      group[0].question,
      group.length,
      new Date(lastOf(group).at).toISOString(),
      faultsIn([group]).join(', '),
      examplesOf(group).join(' | '),
      nearest[at]?.ref ?? '',
      nearest[at]?.alike.toFixed(2) ?? '',
    ]),
  ])

export function Unanswered() {
  const found = useLoaded('unanswered', find)
  const { data } = found
  const near = useLoaded(data && `nearest ${data.groups.length}`, () => nearestOf(data!))
  const nearest = near.data ?? []
  return (
    <Page
      title="Unanswered questions"
      lead={
        <>
          Questions whose answers cite nothing, were declined, came with a warning or were rated bad. Read are
          the latest 100 conversations with an answer that cites nothing, 50 with a bad rating, and 50 of any
          kind.{' '}
          {data && data.groups.length > 0 && (
            <>
              Grouped by their{' '}
              {data.byMeaning
                ? 'meaning'
                : 'words: this key reaches no collection with Parley’s own embedding model'}
              . In all: {faultsIn(data.groups).join(', ')}.
            </>
          )}
        </>
      }
      actions={
        data &&
        data.groups.length > 0 && (
          <Button
            label="CSV"
            icon="download"
            onClick={() => download('unanswered.csv', 'text/csv', asCsv(data.groups, nearest))}
          />
        )
      }
    >
      <ConversationTabs current="unanswered" />
      <List
        of={{ ...found, data: data?.groups }}
        label="Reading conversations"
        class="pile"
        empty={{
          icon: 'check',
          title: 'Nothing is left unanswered',
          text: 'Answers that cite no document are listed here, so that you see what your documents lack.',
          action: <Button label="Ask a question" kind="primary" href={NEW} />,
        }}
        item={(group, at) => <GroupItem key={group[0].question} group={group} nearest={nearest[at]} />}
      />
    </Page>
  )
}

function GroupItem({ group, nearest }: { group: Group; nearest: Nearest | undefined }) {
  const last = lastOf(group)
  const examples = examplesOf(group)
  const a = addressOf(last)
  return (
    <Item
      name={group[0].question}
      href={toConversation(last.conversation)}
      about={
        <>
          Asked {ago(last.at)}
          {examples.length > 0 && (
            <span dir="auto">
              , also as{' '}
              {examples
                .slice(0, MOST_EXAMPLES)
                .map((each) => `“${each}”`)
                .join(', ')}
              {examples.length > MOST_EXAMPLES &&
                ` and in ${many(examples.length - MOST_EXAMPLES, 'other way')}`}
            </span>
          )}
          {nearest && (
            <>
              <br />
              Nearest document: <a href={pageOf(nearest.ref)}>{nearest.title}</a>
              {nearest.alike > 0 && `, ${share(nearest.alike)} alike in meaning`}
            </>
          )}
          <Badges of={faultsIn([group])} kind="warn" />
        </>
      }
    >
      <span class="badge">{many(group.length, 'time')}</span>
      <div class="line">
        <Button label="Fix" icon="edit" href={to(['fix'], { a })} />
        <Button label="Write a page" icon="plus" href={to(['fix'], { a, write: '1' })} />
      </div>
    </Item>
  )
}
