/** Questions that were not answered well, those that mean the same in one group: what to mend or to write next. */
import type { InferOutput } from 'valibot'
import type * as responses from '../../../../src/api/parley/response-schemas'
import { NEW, pageOf, to, toConversation } from '../address'
import { read, send, useLoaded } from '../api'
import { loadChoices } from '../chat/choices'
import { titleOf } from '../chat/insight'
import { searchParams } from '../collections/query'
import { type Collection, hasDocuments, type SearchResult, textFields } from '../collections/wire'
import { Button } from '../parts/button'
import { ago, csv, download, likeness, many, share } from '../parts/format'
import { Item, List } from '../parts/list'
import { Badges, Page, Tabs } from '../parts/page'
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

type Gaps = InferOutput<typeof responses.Gaps>
type Gap = Gaps['gaps'][number]

interface Found extends Gaps {
  collections: Collection[]
}

async function find(signal: AbortSignal): Promise<Found> {
  const [choices, found] = await Promise.all([loadChoices(signal), read<Gaps>('/gaps', signal)])
  const collections = (choices.collections ?? []).filter(
    (each) => hasDocuments(each) && textFields(each).length > 0 && each.num_documents > 0,
  )
  return { ...found, collections }
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
async function nearestOf({ gaps, collections }: Found): Promise<(Nearest | undefined)[]> {
  const places = collections.slice(0, MOST_PLACES)
  const first = gaps.slice(0, MOST_SEARCHES / (places.length || 1))
  const searches = first.flatMap(({ question: q }) =>
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

const MOST_EXAMPLES = 3

/** Faults in the words of the page. */
const FAULTS: Record<string, string> = {
  cites_nothing: 'cites nothing',
  warned: 'with a warning',
  rated_down: 'rated bad',
  asked_again: 'asked again',
}

/** What speaks against the answers of some gaps, the most frequent first: `cites nothing (2)`, `Outdated`. */
function faultsIn(gaps: Gap[]): string[] {
  const counts = new Map<string, number>()
  for (const { faults, reasons } of gaps) {
    const said = Object.entries(reasons).map(([reason, times]) => [inWords(reason), times] as const)
    for (const [name, times] of [...Object.entries(faults), ...said]) {
      const fault = FAULTS[name] ?? name
      counts.set(fault, (counts.get(fault) ?? 0) + times)
    }
  }
  return [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([fault, count]) => (count > 1 ? `${fault} (${count})` : fault))
}

const asCsv = (gaps: Gap[], nearest: (Nearest | undefined)[]): string =>
  csv([
    [
      'question',
      'times',
      'last asked',
      'why',
      'other wordings',
      'nearest document',
      'alike',
      'answered since',
    ],
    ...gaps.map((gap, at) => [
      gap.question,
      gap.times,
      new Date(gap.last_asked.created_at).toISOString(),
      faultsIn([gap]).join(', '),
      gap.examples.join(' | '),
      nearest[at]?.ref ?? '',
      nearest[at]?.alike.toFixed(2) ?? '',
      gap.answered_since ? new Date(gap.answered_since.created_at).toISOString() : '',
    ]),
  ])

export function Unanswered() {
  const found = useLoaded('unanswered', find)
  const { data } = found
  const near = useLoaded(data && `nearest ${data.gaps.length}`, () => nearestOf(data!))
  const nearest = near.data ?? []
  return (
    <Page
      title="Unanswered questions"
      lead={
        <>
          Questions whose answers cite nothing, were declined, came with a warning, were rated bad or were
          asked again, grouped by their meaning.{' '}
          {data && data.gaps.length > 0 && (
            <>
              Of the latest {many(data.turns, 'turn')}. In all: {faultsIn(data.gaps).join(', ')}.
            </>
          )}
        </>
      }
      actions={
        data &&
        data.gaps.length > 0 && (
          <Button
            label="CSV"
            icon="download"
            onClick={() => download('unanswered.csv', 'text/csv', asCsv(data.gaps, nearest))}
          />
        )
      }
    >
      <ConversationTabs current="unanswered" />
      <List
        of={{ ...found, data: data?.gaps }}
        label="Reading conversations"
        class="pile"
        empty={{
          icon: 'check',
          title: 'Nothing is left unanswered',
          text: 'Answers that cite no document are listed here, so that you see what your documents lack.',
          action: <Button label="Ask a question" kind="primary" href={NEW} />,
        }}
        item={(gap, at) => <GapItem key={gap.question} gap={gap} nearest={nearest[at]} />}
      />
    </Page>
  )
}

function GapItem({ gap, nearest }: { gap: Gap; nearest: Nearest | undefined }) {
  const { question, times, examples, last_asked: last, answered_since: answered } = gap
  const a = `${last.conversation_id}/${last.turn}`
  return (
    <Item
      name={question}
      href={toConversation(last.conversation_id)}
      about={
        <>
          Asked {ago(last.created_at)}
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
          <Badges of={faultsIn([gap])} kind="warn" />
        </>
      }
    >
      {answered && (
        <a class="badge good" href={toConversation(answered.conversation_id)}>
          answered {ago(answered.created_at)}
        </a>
      )}
      <span class="badge">{many(times, 'time')}</span>
      <div class="line">
        <Button label="Fix" icon="edit" href={to(['fix'], { a })} />
        <Button label="Write a page" icon="plus" href={to(['fix'], { a, write: '1' })} />
      </div>
    </Item>
  )
}
