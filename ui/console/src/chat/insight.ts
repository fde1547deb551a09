/** What is known of how a turn comes about while it is written: pure. */
import type { TurnEvent } from '../../../widget/src/wire'
import type { Cut, Hit, PromptSource, SearchReply, Timings, TurnTrace, Usage } from './wire'

interface FoundSearch {
  collection: string
  found: number
  hits: (Hit & { title: string })[]
  error?: string
}

/** Times are in milliseconds since the question was sent. */
export interface Insight {
  standalone?: string
  searches?: FoundSearch[]
  sources?: PromptSource[]
  cut?: Cut[]
  usage?: Usage
  timings?: Timings
  retrieved?: number
  firstWords?: number
  ended?: number
}

/** The fields that a document is called by, the first that it has. */
export const TITLES = ['heading', 'title', 'name', 'question']

export function titleOf(document: Record<string, unknown> & { id: string }): string {
  for (const field of TITLES) {
    const value = document[field]
    if (typeof value === 'string' && value.trim() !== '') return value
  }
  return document.id
}

function searchOf({ result, error }: SearchReply): FoundSearch {
  const hits = result?.hits ?? result?.grouped_hits?.flatMap((group) => group.hits) ?? []
  return {
    collection: result?.request_params?.collection_name ?? '',
    found: result?.found ?? 0,
    hits: hits.map(({ document, text_match, vector_distance, hybrid_search_info }) => ({
      id: document.id,
      title: titleOf(document),
      text_match,
      vector_distance,
      score: hybrid_search_info?.rank_fusion_score,
    })),
    error,
  }
}

/** What an event adds. @param at milliseconds since the question was sent */
export function learn(before: Insight, { type, data }: TurnEvent, at: number): Insight {
  if (type === 'question') return data.standalone ? { ...before, standalone: data.standalone } : before
  if (type === 'retrieval') {
    return {
      ...before,
      searches: data.replies.map(searchOf),
      sources: data.sources,
      retrieved: at,
      ...(data.cut && { cut: data.cut }),
    }
  }
  if (type === 'delta') return before.firstWords === undefined ? { ...before, firstWords: at } : before
  if (type === 'usage') return { ...before, usage: data.usage, timings: data.timings }
  if (type === 'done' || type === 'error') return { ...before, ended: at }
  return before
}

// =============================================================================
// What of a turn took which time, as bars on one line of time: pure.

export interface Span {
  name: string
  kind: 'search' | 'model' | 'words'
  /** milliseconds since the turn began */
  from: number
  to: number
  running?: boolean
}

const WAITING = 'Waiting for model'
const WRITING = 'Generating'

/** Calls besides the one that writes the answer. */
const PURPOSES: Record<string, string> = {
  standalone: 'Rewriting',
  followups: 'Suggesting',
  guardrail: 'Checking',
}

/** The spans of a turn that has ended, in the order in which they began. */
export function traceSpans({ searches, calls }: TurnTrace): Span[] {
  const spans: Span[] = [
    ...searches.map(
      ({ collection, started, took }): Span => ({
        name: `Search ${collection ?? ''}`.trim(),
        kind: 'search',
        from: started,
        to: started + took,
      }),
    ),
    ...calls.flatMap(({ purpose, started, first_token: first, took }): Span[] => {
      const end = started + took
      const other = PURPOSES[purpose]
      if (other !== undefined) return [{ name: other, kind: 'model', from: started, to: end }]
      const firstAt = Math.min(end, Math.max(started, first ?? started))
      return [
        ...(firstAt > started ? [{ name: WAITING, kind: 'model', from: started, to: firstAt } as const] : []),
        { name: WRITING, kind: 'words', from: firstAt, to: end },
      ]
    }),
  ]
  return spans.sort((a, b) => a.from - b.from)
}

/** The spans of a turn as they are seen while it runs. @param now milliseconds since the question was sent */
export function liveSpans({ retrieved, firstWords, ended }: Insight, now: number): Span[] {
  const end = ended ?? now
  const spans: Span[] = [{ name: 'Search', kind: 'search', from: 0, to: retrieved ?? end }]
  if (retrieved !== undefined) {
    spans.push({ name: WAITING, kind: 'model', from: retrieved, to: firstWords ?? end })
  }
  if (firstWords !== undefined) spans.push({ name: WRITING, kind: 'words', from: firstWords, to: end })
  const last = spans.at(-1)
  if (last && ended === undefined) last.running = true
  return spans
}
