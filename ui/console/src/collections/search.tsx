/** A search box over one collection, with filters, facets, weights, and the scores of each hit explained. */
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { plain } from '../../../widget/src/plain'
import { go, place, to } from '../address'
import { mapped, read, useKept, useLoaded } from '../api'
import { titleOf } from '../chat/insight'
import { Button } from '../parts/button'
import { SearchBox, SelectField, TextField, useTyped } from '../parts/form'
import { count, duration, likeness, many, share } from '../parts/format'
import { List } from '../parts/list'
import { DocumentDialog } from './documents'
import {
  type By,
  conditionOf,
  MOST_WEIGHT,
  type Query,
  readQuery,
  searchParams,
  toggled,
  writtenQuery,
} from './query'
import {
  type Collection,
  type Doc,
  excerpt,
  type Hit,
  needsWords,
  pathOf,
  type SearchResult,
  textFields,
  vectorField,
} from './wire'

const BY: Record<By, string> = { both: 'Words and meaning', words: 'Words', meaning: 'Meaning' }
const NOTHING: SearchResult = { found: 0, search_time_ms: 0, hits: [] }

export function Search({ collection }: { collection: Collection }) {
  const { name } = collection
  const query = readQuery(place.value.query)
  const { q, filter, by } = query
  const ask = (part: Partial<Query>) => {
    const current = readQuery(place.peek().query)
    go(to(['collections', name], writtenQuery({ ...current, ...part })), { replace: true })
  }
  const [text, setText] = useTyped(q, (typed) => ask({ q: typed }))
  const [filterText, setFilterText] = useTyped(filter, (typed) => ask({ filter: typed }))
  const params = searchParams(collection, query)
  const asksNothing = needsWords(collection) && q.trim() === ''
  // Hits stay while the next ones are on their way, and go when there are none to come.
  const loaded = useKept(
    useLoaded(`search ${name} ${params}`, async (signal) =>
      asksNothing ? NOTHING : read<SearchResult>(`${pathOf(name)}/documents/search?${params}`, signal),
    ),
  )
  const data = loaded.error ? undefined : loaded.data
  const [shown, setShown] = useState<Doc>()
  const toggle = (condition: string) => {
    const next = toggled(filter, condition)
    setFilterText(next)
    ask({ q: text, filter: next })
  }
  const facets = data?.facet_counts ?? []
  return (
    <>
      <search class="search-form line">
        <SearchBox label={`Search ${name}`} value={text} change={setText} />
        <label class="filter-box">
          <span class="hidden">Filter</span>
          <input
            class="input"
            placeholder="Filter, such as year:>2020"
            spellcheck={false}
            value={filterText}
            onInput={(event) => setFilterText(event.currentTarget.value)}
          />
        </label>
        {vectorField(collection) && (
          <SelectField
            label="Search by"
            bare
            value={by}
            options={Object.entries(BY)}
            change={(by) => ask({ q: text, by: by as By })}
          />
        )}
      </search>
      <Weights
        collection={collection}
        query={query}
        change={(to) => ask({ q: text, ...to(readQuery(place.peek().query)) })}
      />
      <div class={facets.length > 0 ? 'search-results with-facets' : 'search-results'}>
        <div>
          <List
            of={mapped({ ...loaded, data }, ({ hits }) => hits)}
            label="Searching"
            class="results apart"
            ordered
            empty={{
              icon: 'search',
              title: asksNothing ? 'Type what you look for' : 'Nothing was found',
              text:
                filter === ''
                  ? 'Try other words, or search by meaning.'
                  : 'Try other words, or take the filter away.',
            }}
            item={(hit) => <Result key={hit.document.id} hit={hit} best={data?.hits[0]} open={setShown} />}
            before={
              data && (
                <>
                  <p class="soft" role="status">
                    {loaded.loading
                      ? 'Searching …'
                      : `${many(data.found, 'hit')}${data.out_of === undefined ? '' : ` of ${count(data.out_of)}`} in ${duration(data.search_time_ms)}`}
                  </p>
                  {q !== '' && data.hits.length > 0 && <Explained />}
                </>
              )
            }
          />
        </div>
        {facets.length > 0 && <Facets of={facets} filter={filter} toggle={toggle} />}
      </div>
      {shown && (
        <DocumentDialog
          collection={name}
          document={shown}
          close={() => setShown(undefined)}
          changed={loaded.reload}
        />
      )}
    </>
  )
}

interface ResultProps {
  hit: Hit
  best: Hit | undefined
  open: (document: Doc) => void
  /** what stands below it */
  children?: ComponentChildren
}

/** A hit of a search, and why it stands where it stands. */
export function Result({ hit, best, open, children }: ResultProps) {
  const { document, highlights = [], text_match: text, vector_distance: distance } = hit
  const score = hit.hybrid_search_info?.rank_fusion_score
  const [highlight] = highlights.filter(({ field }) => !/^(title|heading|name)$/.test(field))
  const snippet = highlight?.snippet ?? highlight?.snippets?.[0]
  const words = text && best?.text_match ? text / best.text_match : 0
  const matched = hit.text_match_info?.tokens_matched
  const fields = [...new Set(highlights.map(({ field }) => field))].join(', ')
  return (
    <li class="result">
      <button type="button" class="result-title link" dir="auto" onClick={() => open(document)}>
        {titleOf(document)}
      </button>
      <p class="result-text" dir="auto">
        {snippet === undefined ? excerpt(document) : <Marked text={snippet} />}
      </p>
      <p class="scores line aside">
        {score !== undefined && (
          <span title="By which hits are ordered: words and meaning in one number">
            score <strong>{score.toFixed(3)}</strong>
          </span>
        )}
        {text !== undefined && text > 0 && (
          <span title={`Words in common, as a share of the best hit's: ${text}`}>
            keyword match <strong>{share(words)}</strong>
            {matched ? ` (${many(matched, 'word')} matched${fields && ` in ${fields}`})` : ''}
          </span>
        )}
        {distance !== undefined && (
          <span
            title={`How alike the query and the document are in meaning. Their distance: ${distance.toFixed(3)}`}
          >
            semantic match <strong>{share(likeness(distance))}</strong>
          </span>
        )}
      </p>
      {children}
    </li>
  )
}

/** What the numbers below the hits say. */
const Explained = () => (
  <details class="weights">
    <summary>About these scores</summary>
    <dl class="facts explained">
      <dt>score</dt>
      <dd>
        Hits are ordered by it. It joins words and meaning in one number, from 0 to 1. Where only one of them
        is searched there is none: the better match comes first.
      </dd>
      <dt>keyword match</dt>
      <dd>
        How well the words of the query match, as a share of the first hit's. Rare words, short fields and
        fields of a large weight count for more.
      </dd>
      <dt>semantic match</dt>
      <dd>
        How alike the document and the query are in meaning: 100% is the same, 0% has nothing to do with it.
      </dd>
    </dl>
  </details>
)

/** A snippet with what matched marked. The rest of it is text, whatever it looks like. */
function Marked({ text }: { text: string }) {
  const parts = plain(text).split(/<mark>(.*?)<\/mark>/s)
  return (
    <>
      {parts.map((part, index) =>
        // biome-ignore lint/suspicious/noArrayIndexKey: parts of a text keep their order
        index % 2 === 1 ? <mark key={index}>{part}</mark> : part,
      )}
    </>
  )
}

interface FacetsProps {
  of: NonNullable<SearchResult['facet_counts']>
  filter: string
  toggle: (condition: string) => void
}

const MOST = 8

/** The values of facet fields in the hits of a search, to narrow it by. */
const Facets = ({ of, filter, toggle }: FacetsProps) => (
  <aside class="facets pile" aria-label="Facets">
    {of
      .filter(({ counts }) => counts.length > 0)
      .map(({ field_name: field, counts }) => (
        <section key={field}>
          <h2 class="aside">{field === 'parley_source' ? 'imported from' : field}</h2>
          <ul>
            {counts.slice(0, MOST).map(({ value, count: times }) => {
              const condition = conditionOf(field, value)
              return (
                <li key={value}>
                  <button
                    type="button"
                    class="ends"
                    aria-pressed={filter.includes(condition)}
                    onClick={() => toggle(condition)}
                  >
                    <span dir="auto">{value}</span>
                    <span class="soft">{count(times)}</span>
                  </button>
                </li>
              )
            })}
          </ul>
        </section>
      ))}
  </aside>
)

// =============================================================================
// How much each field counts in a search, and how much meaning counts against words.

interface WeightsProps {
  collection: Collection
  query: Query
  /** @param to what changes of the query as it is then */
  change: (to: (query: Query) => Partial<Query>) => void
}

const SHARES = ['0', '0.2', '0.4', '0.6', '0.8', '1']

function Weights({ collection, query: { by, weights, alpha }, change }: WeightsProps) {
  const isHybrid = vectorField(collection) !== undefined && by === 'both'
  const fields = by === 'meaning' && vectorField(collection) ? [] : textFields(collection)
  if (fields.length === 0) return null
  const isSet = weights.size > 0 || alpha !== ''
  const weigh = (name: string, weight: number) =>
    change((query) => {
      const next = new Map(query.weights)
      if (weight === 1) next.delete(name)
      else next.set(name, weight)
      return { weights: next }
    })
  return (
    <details class="weights" open={isSet}>
      <summary>Weights</summary>
      <div class="weights-fields line">
        {fields.map((name) => (
          <Weight key={name} name={name} value={weights.get(name) ?? 1} weigh={weigh} />
        ))}
        {isHybrid && (
          <SelectField
            label="meaning"
            value={alpha}
            options={[
              ['', 'Default'],
              ...[...new Set([...SHARES, alpha])]
                .filter(Boolean)
                .map((each) => [each, share(Number(each))] as const),
            ]}
            change={(value) => change(() => ({ alpha: value }))}
          />
        )}
        {isSet && (
          <Button
            label="Reset the weights"
            onClick={() => change(() => ({ weights: new Map(), alpha: '' }))}
          />
        )}
      </div>
      <p class="hint">
        The larger a field's weight, the more its words count. A field of weight 0 is not searched for words.
        {isHybrid && ' The percentage is the share of meaning in the score; words have the rest.'}
      </p>
    </details>
  )
}

interface WeightProps {
  name: string
  value: number
  weigh: (name: string, weight: number) => void
}

/** What is typed stays as it is typed, even if it is no weight, while hits come and the page is drawn again. */
function Weight({ name, value, weigh }: WeightProps) {
  const [text, setText] = useState(String(value))
  useEffect(() => setText((typed) => (weightOf(typed) === value ? typed : String(value))), [value])
  return (
    <TextField
      label={name}
      type="number"
      min="0"
      max={String(MOST_WEIGHT)}
      value={text}
      change={(typed) => {
        setText(typed)
        weigh(name, weightOf(typed))
      }}
      onBlur={() => setText(String(value))}
    />
  )
}

/** The weight that a text stands for; 1 for none. */
function weightOf(text: string): number {
  const weight = text.trim() === '' ? 1 : Math.round(Number(text))
  return Number.isNaN(weight) ? 1 : Math.min(MOST_WEIGHT, Math.max(0, weight))
}
