/** A search box over one collection, with filters, facets, weights, and the scores of each hit explained. */
import { useEffect, useState } from 'preact/hooks'
import { go, place, to } from '../address'
import { mapped, read, useKept, useLoaded } from '../api'
import { count, duration, many } from '../parts/format'
import { Icon } from '../parts/icon'
import { List } from '../parts/list'
import { DocumentDialog } from './document-dialog'
import { Facets } from './facets'
import { type By, type Query, readQuery, searchParams, toggled, writtenQuery } from './query'
import { Explained, Result } from './result'
import { Weights } from './weights'
import { type Collection, type Doc, needsWords, pathOf, type SearchResult, vectorField } from './wire'

const WAIT_MS = 250

const NOTHING: SearchResult = { found: 0, search_time_ms: 0, hits: [] }

export function Search({ collection }: { collection: Collection }) {
  const { name } = collection
  const query = readQuery(place.value.query)
  const { q, filter, by } = query
  const [text, setText] = useState(q)
  const [filterText, setFilterText] = useState(filter)
  // "Back" and links change what is searched, too.
  useEffect(() => {
    setText((typed) => (typed.trim() === q ? typed : q))
    setFilterText((typed) => (typed.trim() === filter ? typed : filter))
  }, [q, filter])
  const ask = (part: Partial<Query>) => {
    const current = readQuery(place.peek().query)
    go(to(['collections', name], writtenQuery({ ...current, ...part })), { replace: true })
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is typed is searched a moment after
  useEffect(() => {
    if (text === q && filterText === filter) return
    const timer = setTimeout(() => ask({ q: text, filter: filterText }), WAIT_MS)
    return () => clearTimeout(timer)
  }, [text, filterText])
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
      <search class="search-form">
        <label class="search-box">
          <span class="hidden">Search {name}</span>
          <Icon name="search" />
          <input
            type="search"
            dir="auto"
            placeholder={`Search ${name}`}
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
        </label>
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
          <label>
            <span class="hidden">Search by</span>
            <select
              class="input"
              value={by}
              onChange={(event) => ask({ q: text, by: event.currentTarget.value as By })}
            >
              <option value="both">Words and meaning</option>
              <option value="words">Words</option>
              <option value="meaning">Meaning</option>
            </select>
          </label>
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
            lines={6}
            label="Searching"
            class="results"
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
