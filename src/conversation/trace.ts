/** How an answer came about, for whoever debugs it: written beside the turn, never holding a key. */
import type { ChatMessage, GenerationRequest } from '../models/language-model'

/** A search as it was run. */
export interface SearchTrace {
  collection: string
  /** `q` included: the question that this search was given */
  params: Record<string, unknown>
  found?: number
  /** in the order in which they were found */
  hits?: HitTrace[]
  error?: { status: number; message: string }
  /** milliseconds since the turn began, and how long it took */
  started: number
  took: number
}

export interface HitTrace {
  id?: string
  text_match?: number
  vector_distance?: number
  hybrid_score?: number
}

/** A call to a language model. */
export interface CallTrace {
  purpose: GenerationRequest['purpose']
  model: string
  /** the prompt exactly as it was sent */
  prompt: ChatMessage[]
  answer: string
  finish_reason?: string
  input_tokens?: number
  output_tokens?: number
  error?: string
  started: number
  first_token?: number
  took: number
}

export interface TurnTrace {
  question: string
  standalone?: string
  searches: SearchTrace[]
  calls: CallTrace[]
  /** true where the whole was too long to be kept, and texts in it end early */
  shortened?: true
}
