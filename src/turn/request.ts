/** What a protocol hands to the Conversation for one turn. */
import type { ConversationModelConfig } from '../models/language-model'
import type { SearchParameters, SearchScope } from '../search/types'
import type { Labelling } from './labels'
import type { TranscriptMessage } from './transcript'

/** A search to run for the question. `params.q` is filled in by the turn. */
export interface PlannedSearch {
  /** as the caller named it */
  collection: string
  /** id of the Collection object; absent when the name is unknown, which is that search's error */
  objectId?: string
  params: SearchParameters
  /** what the key of the search may see; absent: no history collection */
  scope?: SearchScope
  /** true for a key made for pages, which is told nothing that is the operator's */
  plain?: boolean
  /** documents that score less (retrieval.ts) stay out of the prompt */
  minimumScore?: number
  /** the same by `rerank_score`, of those that have one */
  minimumRerankScore?: number
  /** an error known before the search runs: it becomes the search's reply */
  error?: { status: number; message: string }
}

export interface Attachment {
  /** of the file */
  name: string
  text: string
}

/** Who asks. Which conversations are open to whom says ownership.ts. */
export interface Asker {
  /** `admin`, or the id of an API key (a scoped key's is its parent's) */
  owner: string
  /** the user on whose behalf the key asks; '' where none is named. Without a proof it is the caller's own word */
  userId: string
  /** what shows who it is: first the user that the key fixes, then the visitor whose secret came along; absent: nothing */
  proofs?: readonly string[]
  /** conversations that the key opens besides its holder's: all that were begun with it, or those of every key */
  reach?: 'key' | 'all'
}

/**
 * Which turns give way to a new one: they are history until it is, and go in the same moment. Where they are not
 * given by a number, it is the last turn of the same question, and whatever came after it.
 */
export interface Replacement {
  /** the last turn that stays; 0: none */
  after?: number
}

export interface AskRequest {
  conversationId: string
  /** true when the caller gave the id: an id without history is then an error */
  continues: boolean
  /** true when the id stands for a name that the caller chose: without history the conversation begins */
  named?: boolean
  /** present: earlier turns give way to this one */
  replaces?: Replacement
  question: string
  /** the model with its key in clear; crosses the RPC border only, is never logged or stored */
  model: ConversationModelConfig
  /** properties of the model that the request sets, such as `max_tokens`: they are for its answer alone */
  settings?: Record<string, unknown>
  /** id of the Collection object of the model's history collection */
  historyId: string
  searches: PlannedSearch[]
  /** what was said before, oldest first, when the conversation is new; passed over when it is not */
  transcript?: TranscriptMessage[]
  /** texts that came with the question: documents of the prompt for this turn, before those that are found */
  attachments?: Attachment[]
  /** what a visitor adds to the system prompt, which has it already: a guardrail judges it */
  instructions?: string[]
  /** present: the answer is to cite its documents as `[label]` */
  labels?: Labelling
  /**
   * How errors and budgets are worded and reckoned (contract 1.6 against 1.7): `single` fails with its
   * search's own error and drops documents from the end; `multi` goes on while one search succeeds and drops
   * from the longest list.
   */
  shape: 'single' | 'multi'
  /** false for a caller who reads the answer whole: the provider is then asked without streaming */
  stream: boolean
  /** whether `done` carries the conversation's history */
  withHistory: boolean
  /** whether the turn suggests what could be asked next, in one event `followups` before its `usage` */
  followups?: boolean
  asker: Asker
  /** true for a key made for pages: an error tells it nothing that is the operator's */
  plain?: boolean
  /** the wire it came in on: `typesense`, `parley`, ... */
  protocol: string
  /** names this one call of `ask`, so that it finds its turn when it is made again (object-calls.ts). At random */
  attempt?: string
  /** the caller's own name for this turn: a second request with it joins the turn, running or finished */
  idempotencyKey?: string
  /** digest of who asks, path, query and body: the same request again is told the same answer (joins.ts) */
  fingerprint?: string
  /** the turn that the question goes on from; where it is not the last one, the question begins another conversation */
  after?: number
  /** another conversation: where it has a turn of this request, its answer is copied and no model is asked */
  copies?: string
  /** until when, in milliseconds since 1970, the same request is led to this id; absent: the id is random */
  foundUntil?: number
}
