/** Turns and traces as the server tells of them (openapi.json). */
import type { InferOutput } from 'valibot'
import type { ConversationSummary } from '../../../../src/api/parley/response-schemas'
import type { CallTrace, SearchTrace } from '../../../../src/turn/events'
import type {
  CutDocument as Cut,
  HitTrace as Hit,
  SourceReference as PromptSource,
  Timings,
  Usage,
} from '../../../../src/turn/facts'
import type { TracedTurn, TurnTrace } from '../../../../src/turn/fold'
import type { Hit as SearchHit } from '../collections/wire'

export type { CallTrace, Cut, Hit, PromptSource, SearchTrace, Timings, TracedTurn, TurnTrace, Usage }

export type Summary = InferOutput<typeof ConversationSummary>

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
