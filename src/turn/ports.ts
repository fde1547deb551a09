/** What a turn needs of the world. The Conversation object provides it; tests provide their own. */
import type { Outcome } from '../errors'
import type { LanguageModel } from '../models/language-model'
import type { RecentMessages } from '../search/collection/rpc'
import type { CollectionSchema, SearchParameters, SearchResult, SearchScope } from '../search/types'
import type { Citation, HistoryMessage, Timings, TurnEventBody, Usage } from './events'
import type { Spending, TurnTrace } from './trace'

/** A turn that came to its end, as it is written down beside its messages. */
export interface FinishedTurn {
  question: string
  standalone?: string
  answer: string
  finish_reason: string
  citations: Citation[]
  usage: Usage
  timings: Timings
  trace: TurnTrace
  /** milliseconds since 1970, in the second that its messages carry */
  created_at: number
}

export interface TurnPorts {
  model: LanguageModel
  /** the same with the request's own settings, which are for its answer alone; absent where it has none */
  answerer?: LanguageModel | undefined
  /** who writes standalone questions and suggestions; undefined: `model` does */
  rewriter(): Promise<LanguageModel | undefined>
  /** @param scope what the search's key may see */
  search(objectId: string, params: SearchParameters, scope?: SearchScope): Promise<Outcome<SearchResult>>
  schema(objectId: string): Promise<Outcome<CollectionSchema>>
  /**
   * What was said in this conversation, oldest first, expired or not.
   * @param bytes of text after which older messages are left out; undefined: everything
   */
  messages(bytes?: number): Promise<RecentMessages>
  /** ttls in seconds of models, deleted ones too; unknown models are left out */
  ttls(modelIds: string[]): Promise<Map<string, number>>
  /**
   * Keeps a finished turn for good, and what a transcript told of the time before it. A failure means that the history
   * refuses it.
   * @param messages oldest first; the last two are the turn's own
   */
  store(messages: HistoryMessage[], finished: FinishedTurn): Promise<Outcome<void>>
  emit(event: TurnEventBody): void
  /** Told once, when the turn begins: what tells what it has spent so far, the calls under way included. */
  spends?(spent: () => Spending[]): void
  /** milliseconds since 1970 */
  now(): number
}
