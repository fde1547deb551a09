/** A hit of a search, and why it stands where it stands. */
import { plain } from '../../../widget/src/plain'
import { titleOf } from '../chat/insight'
import { likeness, many, share } from '../parts/format'
import { excerpt } from './excerpt'
import type { Doc, Hit } from './wire'

interface ResultProps {
  hit: Hit
  best: Hit | undefined
  open: (document: Doc) => void
}

export function Result({ hit, best, open }: ResultProps) {
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
      <p class="scores">
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
    </li>
  )
}

/** What the numbers below the hits say. */
export const Explained = () => (
  <details class="weights">
    <summary>About these scores</summary>
    <dl class="explained">
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
