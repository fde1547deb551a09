/** A search of a turn with its hits and their scores, and what of them the prompt had no room for. */
import { engineName } from '../parts/engine-name'
import { duration, many } from '../parts/format'
import type { Cut, Hit, PromptSource } from './wire'

interface SearchProps {
  collection: string
  found: number
  hits: (Hit & { title: string })[]
  params?: Record<string, unknown>
  took?: number
  /** what was asked, if not Parley's own engine */
  engine?: string
  error?: string
  cut: Cut[]
}

export function SearchBlock({ collection, found, hits, params, took, engine, error, cut }: SearchProps) {
  const best = Math.max(0, ...hits.map(({ score = 0 }) => score))
  const mostWords = Math.max(1, ...hits.map(({ text_match = 0 }) => text_match))
  return (
    <div class="block">
      <div class="block-head">
        <strong>{collection || 'Search'}</strong>
        <span class="badge">{many(found, 'hit')}</span>
        <span class="grow" />
        {took !== undefined && <span class="soft">{duration(took)}</span>}
      </div>
      {engine && (
        <p class="soft">
          {engineName(engine)} {error ? 'failed' : 'answered'}
          {took !== undefined && ` ${error ? 'after' : 'in'} ${duration(took)}`}
        </p>
      )}
      {error && <p class="bad">{error}</p>}
      {hits.length > 0 && (
        <ol class="hits">
          {hits.map((hit, index) => {
            const left = cut.find((each) => each.document_id === hit.id && each.collection === collection)
            return (
              // biome-ignore lint/suspicious/noArrayIndexKey: an id can be missing, and ranks are unique
              <li key={index}>
                <span class="hit-rank">{index + 1}</span>
                <span class="hit-name">
                  <span class="hit-title" title={hit.title} dir="auto">
                    {hit.title}
                  </span>
                  <span class="hit-scores">
                    {hit.text_match ? (
                      <span title={`Words in common, against the best hit: ${hit.text_match}`}>
                        words {Math.round((hit.text_match / mostWords) * 100)}%
                      </span>
                    ) : null}
                    {hit.vector_distance !== undefined && (
                      <span title="Distance in meaning: 0 is the same">
                        distance {hit.vector_distance.toFixed(3)}
                      </span>
                    )}
                    {left && (
                      <span class="cut">
                        {left.passages === 0 ? 'left out' : `cut to ${left.passages} of ${left.of} passages`}
                      </span>
                    )}
                  </span>
                </span>
                {hit.score !== undefined && (
                  <span class="hit-score" title="Score of the fused ranks">
                    <span class="meter" aria-hidden="true">
                      <span style={{ width: `${best > 0 ? (hit.score / best) * 100 : 0}%` }} />
                    </span>
                    {hit.score.toFixed(3)}
                  </span>
                )}
              </li>
            )
          })}
        </ol>
      )}
      {params && (
        <details>
          <summary>Parameters</summary>
          <dl class="facts">
            {Object.entries(params).map(([name, value]) => (
              <div key={name} class="fact">
                <dt>{name}</dt>
                <dd>{typeof value === 'string' ? value : JSON.stringify(value)}</dd>
              </div>
            ))}
          </dl>
        </details>
      )}
    </div>
  )
}

export function Cuts({ cut, sources }: { cut: Cut[]; sources: PromptSource[] | undefined }) {
  return (
    <section>
      <h3>What went into the prompt</h3>
      {sources && <p class="hint">{many(sources.length, 'document')}, the best first.</p>}
      {cut.length === 0 ? (
        <p class="hint">Nothing was cut: everything that was found went in.</p>
      ) : (
        <ul class="cuts">
          {cut.map(({ collection, document_id: id, passages, of }) => (
            <li key={`${collection}/${id}`}>
              <span class="hit-title">{id}</span>
              <span class="cut">{passages === 0 ? 'left out' : `${passages} of ${of} passages`}</span>
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}
