/** Turns and traces as the server tells of them (openapi.json). */
import type { CallTrace, SearchTrace } from '../../../../src/turn/events'
import type { CutDocument as Cut, HitTrace as Hit, Timings, Usage } from '../../../../src/turn/facts'
import type { TracedTurn, TurnTrace } from '../../../../src/turn/fold'

export type { CallTrace, Cut, Hit, SearchTrace, Timings, TracedTurn, TurnTrace, Usage }

/** A document of a prompt. */
export interface PromptSource {
  collection: string
  document_id: string
}

export interface Summary {
  id: string
  title: string
  model_id: string
  user_id: string
  protocol: string
  turn_count: number
  created_at: number
  updated_at: number
  expires_at: number
}

interface SearchHit {
  document: Record<string, unknown> & { id: string }
  text_match?: number
  vector_distance?: number
  hybrid_search_info?: { rank_fusion_score?: number }
}

/** The result of a search as the event `retrieval` has it. */
export interface SearchReply {
  error?: string
  code?: number
  result?: {
    found?: number
    hits?: SearchHit[]
    grouped_hits?: { hits: SearchHit[] }[]
    request_params?: { collection_name?: string; q?: string }
    search_time_ms?: number
  }
}
