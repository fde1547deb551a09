/** A search box over one collection, with filters, facets, and the scores of each hit explained. */
import { useEffect, useState } from 'preact/hooks'
import { go, place, to } from '../address'
import { read, useLoaded } from '../api'
import { titleOf } from '../chat/insight'
import { count, duration, many } from '../parts/format'
import { Icon } from '../parts/icon'
import { Empty, Loading, Problem } from '../parts/states'
import { DocumentDialog } from './document-dialog'
import { excerpt, plain } from './excerpt'
import {
  type Collection,
  type Doc,
  type Hit,
  pathOf,
  type SearchResult,
  textFields,
  vectorField,
} from './wire'

const WAIT_MS = 250

export function Search({ collection }: { collection: Collection }) {
  const { name } = collection
  const { query } = place.value
  const q = query.get('q') ?? ''
  const filter = query.get('filter') ?? ''
  const by = query.get('by') ?? 'both'
  const [text, setText] = useState(q)
  const [filterText, setFilterText] = useState(filter)
  // "Back" and links change what is searched, too.
  useEffect(() => {
    setText((typed) => (typed.trim() === q ? typed : q))
    setFilterText((typed) => (typed.trim() === filter ? typed : filter))
  }, [q, filter])
  const vector = vectorField(collection)
  const words = textFields(collection)
  const facets = collection.fields.filter(({ facet }) => facet).map((field) => field.name)
  const ask = (next: Record<string, string>) =>
    go(to(['collections', name], { q, filter, by: by === 'both' ? '' : by, ...next }), { replace: true })
  // biome-ignore lint/correctness/useExhaustiveDependencies: what is typed is searched a moment after
  useEffect(() => {
    if (text === q && filterText === filter) return
    const timer = setTimeout(() => ask({ q: text, filter: filterText }), WAIT_MS)
    return () => clearTimeout(timer)
  }, [text, filterText])
  const fields =
    by === 'words' || !vector ? words : by === 'meaning' ? [vector.name] : [vector.name, ...words]
  const params = new URLSearchParams({
    q: q === '' ? '*' : q,
    query_by: fields.join(','),
    per_page: '20',
    facet_by: facets.join(','),
    exclude_fields: collection.fields
      .filter(({ type }) => type === 'float[]')
      .map((field) => field.name)
      .join(','),
    ...(filter !== '' && { filter_by: filter }),
  })
  const found = useLoaded(`search ${name} ${params}`, (signal) =>
    read<SearchResult>(`${pathOf(name)}/documents/search?${params}`, signal),
  )
  const { data } = found
  const [shown, setShown] = useState<Doc>()
  const toggle = (field: string, value: string) => {
    const condition = `${field}:=\`${value.replaceAll('`', '')}\``
    const parts = filter === '' ? [] : filter.split(' && ')
    const next = parts.includes(condition)
      ? parts.filter((part) => part !== condition)
      : [...parts, condition]
    setFilterText(next.join(' && '))
    ask({ q: text, filter: next.join(' && ') })
  }
  return (
    <>
      <search class="search-form">
        <label class="search-box">
          <span class="hidden">Search {name}</span>
          <Icon name="search" />
          <input
            type="search"
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
        {vector && (
          <label>
            <span class="hidden">Search by</span>
            <select
              class="input"
              value={by}
              onChange={(event) => {
                const { value } = event.currentTarget
                ask({ by: value === 'both' ? '' : value })
              }}
            >
              <option value="both">Words and meaning</option>
              <option value="words">Words</option>
              <option value="meaning">Meaning</option>
            </select>
          </label>
        )}
      </search>
      {found.error && <Problem error={found.error} retry={found.reload} />}
      {found.loading && <Loading lines={6} label="Searching" />}
      {data && (
        <div class={facets.length > 0 ? 'search-results with-facets' : 'search-results'}>
          <div>
            <p class="soft" role="status">
              {many(data.found, 'hit')} of {count(data.out_of)} in {duration(data.search_time_ms)}
            </p>
            {data.hits.length === 0 ? (
              <Empty icon="search" title="Nothing was found">
                <p>
                  {filter === ''
                    ? 'Try other words, or search by meaning.'
                    : 'Try other words, or take the filter away.'}
                </p>
              </Empty>
            ) : (
              <ol class="results">
                {data.hits.map((hit) => (
                  <Result key={hit.document.id} hit={hit} best={data.hits[0]} open={setShown} />
                ))}
              </ol>
            )}
          </div>
          {facets.length > 0 && (
            <aside class="facets" aria-label="Facets">
              {data.facet_counts
                ?.filter(({ counts }) => counts.length > 0)
                .map(({ field_name: field, counts }) => (
                  <section key={field}>
                    <h2>{field === 'parley_source' ? 'imported from' : field}</h2>
                    <ul>
                      {counts.slice(0, 8).map(({ value, count: times }) => {
                        const isOn = filter.includes(`${field}:=\`${value}\``)
                        return (
                          <li key={value}>
                            <button type="button" aria-pressed={isOn} onClick={() => toggle(field, value)}>
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
          )}
        </div>
      )}
      {shown && <DocumentDialog collection={name} document={shown} close={() => setShown(undefined)} />}
    </>
  )
}

interface ResultProps {
  hit: Hit
  best: Hit | undefined
  open: (document: Doc) => void
}

function Result({ hit, best, open }: ResultProps) {
  const { document, highlights = [], text_match: text, vector_distance: distance } = hit
  const score = hit.hybrid_search_info?.rank_fusion_score
  const [highlight] = highlights.filter(({ field }) => !/^(title|heading|name)$/.test(field))
  const snippet = highlight?.snippet ?? highlight?.snippets?.[0]
  const share = text && best?.text_match ? Math.round((text / best.text_match) * 100) : 0
  const matched = hit.text_match_info?.tokens_matched
  return (
    <li class="result">
      <button type="button" class="result-title link" dir="auto" onClick={() => open(document)}>
        {titleOf(document)}
      </button>
      <p class="result-text" dir="auto">
        {snippet === undefined ? excerpt(document) : <Marked text={snippet} />}
      </p>
      <p class="scores">
        {score !== undefined && (
          <span title="By which hits are ordered: the ranks by words and by meaning in one number">
            score <strong>{score.toFixed(3)}</strong>
          </span>
        )}
        {text !== undefined && text > 0 && (
          <span title={`Words in common, against the best hit: ${text}`}>
            words <strong>{share}%</strong>
            {matched ? ` (${many(matched, 'word')} matched)` : ''}
          </span>
        )}
        {distance !== undefined && (
          <span title="Distance in meaning between the query and the document: 0 is the same, 2 the opposite">
            distance <strong>{distance.toFixed(3)}</strong>
          </span>
        )}
      </p>
    </li>
  )
}

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
