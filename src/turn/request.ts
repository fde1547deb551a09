/** What a protocol hands to the Conversation object for one turn. */
import type { Failure } from '../errors'
import type { Part } from '../lib/parts'
import type { AnswerForm, ConversationModelConfig } from '../models/language-model'
import type { CollectionPlace, SearchParameters, SearchScope } from '../search/types'
import type { Tool } from '../tools/tool'
import type { Reading, Wording } from './events'
import type { Given, TranscriptMessage } from './look-back'
import type { Labelling } from './passage'

/** A search to run for the question. The turn fills in `params.q`. */
export interface PlannedSearch {
  /** the name that the caller gave */
  collection: string
  /** where the collection is stored; absent if the name is unknown, which becomes the search's error */
  place?: CollectionPlace
  params: SearchParameters
  /** what the search's key may see; absent: no history collection */
  scope?: SearchScope
  /** whether a model has to be called for the question's vector, in Parley's own engine */
  isEmbedded?: boolean
  /** true for a page key: replies to it hide what only the operator may see */
  plain?: boolean
  /** documents with a lower score (retrieve.ts) stay out of the prompt */
  minimumScore?: number
  /** the same for `rerank_score`, among documents that have one */
  minimumRerankScore?: number
  /** when the time of its request is over, in milliseconds since 1970; absent in a turn, which has its own time */
  until?: number
  /** an error known before the search runs; it becomes the search's reply */
  error?: Pick<Failure, 'status' | 'message' | 'detail' | 'code'>
}

/** Who asks. conversation/stored.ts decides which conversations are open to whom. */
export interface Asker {
  /** `admin`, or the id of an API key (for a scoped key, its parent's) */
  owner: string
  /** the user for whom the key asks; '' if none is named. Without a proof it is only the caller's claim */
  userId: string
  /**
   * proofs of who asks: first the user fixed in the key, then the visitor whose secret was sent; absent: no
   * proof
   */
  proofs?: readonly string[]
  /** conversations that the key opens besides its holder's: all begun with this key, or those of every key */
  reach?: 'key' | 'all'
}

/**
 * Which turns a new one replaces. They stay in the history until the new turn is stored, and are versions from the
 * same moment on: readers see them where they ask for them. Without a number, the new turn replaces the last turn with the same question and all turns after
 * it.
 */
export interface Replacement {
  /** the last turn that stays; 0: none */
  after?: number
  /** replace the last turn only if it has the same question. `only`: and only if it is the only turn */
  last?: 'any' | 'only'
}

export type OnSearchError = 'fail' | 'go_on'

/** Whose a conversation is and how it began, as its row in D1 has it. */
export interface Begun {
  owner: { owner: string; userId: string; proof?: string }
  title: string
  /** milliseconds since 1970 */
  createdAt: number
}

/** What an assistant does where too little of an answer is supported. */
export interface SupportRule {
  /** the share of its sentences that has to be supported; one that is in part counts as half */
  minimum: number
  /** `warn`: the answer says so; `withhold`: it is not given at all */
  below: 'warn' | 'withhold'
}

/** What a visitor decided about a call, or what their page made of it. */
export type Decision = { allow: boolean } | { result: string; failed?: true }

/** What a turn goes on from. */
export interface Resumption {
  /** the turn that waits; absent: the caller sent what was done so far, as clients of OpenAI's wire do */
  turn?: number
  /** its answer so far: texts, calls, and results of those that ran */
  content: Part[]
  /** by the ids of calls that wait. One without a decision counts as refused */
  decided: Record<string, Decision>
  /** the turn was interrupted before, so it is not known whether what was allowed has been done */
  again?: true
}

/** A question, without its place. */
export interface TurnQuestion {
  /** present: this turn replaces earlier ones */
  replaces?: Replacement
  /** files in it come first among the documents of this turn's prompt */
  question: Part[]
  /** the model with its key in clear text. It crosses RPC only, and is never logged or stored */
  model: ConversationModelConfig
  /** model properties that the request sets, such as `max_tokens`; they apply to its answer only */
  settings?: Record<string, unknown>
  /** id of the Collection object of the model's history collection */
  historyId: string
  searches: PlannedSearch[]
  /** passages that the caller found; the turn runs no search for them */
  given?: Given
  /** the form that the answer has to have */
  form?: AnswerForm
  /** deadline for the answer, in milliseconds since 1970; after it the turn is given up */
  until?: number
  /** what was said before, oldest first; used if the conversation is new, else ignored */
  transcript?: TranscriptMessage[]
  /** a visitor's additions to the system prompt, which already includes them; the guardrail judges them */
  instructions?: string[]
  /** present: the answer cites its documents as `[label]` */
  labels?: Labelling
  /** What a failed search does: end the turn, or let it answer from the other searches if one succeeds. */
  onSearchError: OnSearchError
  /** what the reader gets besides the turn's own events */
  read?: Reading
  /** how its protocol writes pieces of the answer; present: the reader takes `words` besides events (conversation-object.ts) */
  words?: Wording
  /** what becomes of an answer that the documents support too little; absent: it is given as it is */
  support?: SupportRule
  /** tools that the model may call; absent: none */
  tools?: readonly Tool[]
  /** whether its protocol can ask the visitor for leave to call one */
  asks?: true
  /** the turn goes on from one that waited for its visitor, and takes its place */
  resumes?: Resumption
  /** whether the turn suggests next questions, in one `followups` event before `usage` */
  suggests?: boolean
  asker: Asker
  /** the budget of the key, if it has one */
  turnsPerDay?: number
  /** true for a page key: errors hide what only the operator may see */
  plain?: boolean
  /** the wire it came in on: `typesense`, `parley`, ... Only a label for records; nothing depends on it */
  protocol: string
  /** the name of the assistant that is asked, if one is; only a label for records, too */
  assistant?: string
  /** id of the HTTP request that asks, for the log; absent: from a Worker of the version before */
  requestId?: string
  /** the caller's own name for this turn; a second request with it joins the turn, running or finished */
  idempotencyKey?: string
  /** digest of asker, path, query and body; the same request again gets the same answer (conversation/turn-queue.ts) */
  fingerprint?: string
}

/** A question with its place: the conversation that its turn is for, and what is known of that. */
export interface AskRequest extends TurnQuestion {
  conversationId: string
  /** true if the caller gave the id; an id without history is then an error */
  continues: boolean
  /** true if the id stands for a name that the caller chose; without history the conversation begins */
  named?: boolean
  /** the reading of this conversation's history that began for this question (conversation/prefetch.ts) */
  prefetched?: string
  /** true: whether messages are left is not known yet; without any, the question is refused before its turn begins */
  seen?: boolean
  /** random id of this one `ask` call; if the call is repeated (durable/objects.ts) it finds its turn by it */
  attempt?: string
  /**
   * true: the stream of this question broke off before anything of it was read. Its turn is joined, or begins if its object was
   * reset before it had
   */
  again?: true
  /**
   * the turn that the question continues from; if it is not the last one, the question begins another
   * conversation
   */
  after?: number
  /** another conversation: if it has a turn of this request, its answer is copied and no model is asked */
  copies?: string
  /** until when the same request leads to this id, in milliseconds since 1970; absent: the id is random */
  foundUntil?: number
  /** whose the conversation is and how it began, where its object may have forgotten it */
  begun?: Begun
}

/** A question outside any conversation. */
export type Single = Omit<TurnQuestion, 'replaces' | 'searches'> & Partial<Pick<TurnQuestion, 'searches'>>
