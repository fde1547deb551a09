/** Turns and traces as the server tells of them (openapi.json). */

import type { CutDocument as Cut, HitTrace as Hit, Timings, Usage } from '../../../../src/turn/facts'

export type { Cut, Hit, Timings, Usage }

export interface SearchTrace {
  collection?: string
  params: Record<string, unknown>
  found?: number
  hits?: Hit[]
  error?: { status: number; message: string }
  /** milliseconds since the turn began to run */
  started: number
  took: number
}

export interface CallTrace {
  purpose: string
  model: string
  failed?: { model: string; error: string }[]
  prompt: { role: string; content: string }[]
  text?: string
  finish_reason?: string
  input_tokens: number
  output_tokens: number
  estimated?: boolean
  error?: string
  started: number
  first_token?: number
  took: number
}

export interface TurnTrace {
  question: string
  standalone?: string
  searches: SearchTrace[]
  cut?: Cut[]
  calls: CallTrace[]
  followups?: string[]
  copy_of?: string
  shortened?: boolean
}

export interface TracedTurn {
  turn: number
  finish_reason: string
  usage: Usage
  timings: Timings
  created_at: number
  trace: TurnTrace
}

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
