/** The values of facet fields in the hits of a search, to narrow it by. */
import { count } from '../parts/format'
import { conditionOf } from './query'
import type { SearchResult } from './wire'

interface FacetsProps {
  of: NonNullable<SearchResult['facet_counts']>
  filter: string
  toggle: (condition: string) => void
}

const MOST = 8

export const Facets = ({ of, filter, toggle }: FacetsProps) => (
  <aside class="facets" aria-label="Facets">
    {of
      .filter(({ counts }) => counts.length > 0)
      .map(({ field_name: field, counts }) => (
        <section key={field}>
          <h2>{field === 'parley_source' ? 'imported from' : field}</h2>
          <ul>
            {counts.slice(0, MOST).map(({ value, count: times }) => {
              const condition = conditionOf(field, value)
              return (
                <li key={value}>
                  <button
                    type="button"
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
