/** What is known of how a turn comes about while it is written: pure. */
import type { TurnEvent } from '../../../widget/src/wire'
import type { Cut, Hit, PromptSource, SearchReply, Timings, Usage } from './wire'

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
      ...(text_match !== undefined && { text_match }),
      ...(vector_distance !== undefined && { vector_distance }),
      ...(hybrid_search_info?.rank_fusion_score !== undefined && {
        score: hybrid_search_info.rank_fusion_score,
      }),
    })),
    ...(error !== undefined && { error }),
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
