/** What a turn needs from outside. The Conversation object provides these ports; tests provide their own. */
import type { Outcome } from '../errors'
import type { LanguageModel } from '../models/language-model'
import type {
  CollectionPlace,
  CollectionSchema,
  RecentMessages,
  SearchParameters,
  SearchResult,
  SearchScope,
} from '../search/types'
import type { DoneEvent, LogEventBody } from './events'
import type { Spending } from './generate'

export interface TurnPorts {
  model: LanguageModel
  /**
   * the same model with the request's own settings, which apply to its answer only; absent if there are none
   */
  answerer?: LanguageModel | undefined
  /** the model that writes standalone questions and suggestions; undefined: `model` writes them */
  rewriter(): Promise<LanguageModel | undefined>
  /** @param scope what the search's key may see */
  search(
    place: CollectionPlace,
    params: SearchParameters,
    scope?: SearchScope,
  ): Promise<Outcome<SearchResult>>
  schema(place: CollectionPlace): Promise<Outcome<CollectionSchema>>
  /** Where a collection of this name is now, in case the turn was given a place that is gone. */
  placeOf?(collection: string): Promise<CollectionPlace | undefined>
  /** The result of `messages` for the model's `max_bytes`, if it was read before the turn began. */
  known?: RecentMessages | undefined
  /**
   * The messages of this conversation, oldest first, including expired ones.
   * @param bytes of text after which older messages are left out; undefined: everything
   */
  messages(bytes?: number): Promise<RecentMessages>
  /** ttls of models in seconds, deleted models included; unknown models are left out */
  ttls(modelIds: string[]): Promise<Map<string, number>>
  /**
   * Stores a finished turn: the fold of its events so far and its last one (fold.ts). A failure means that the
   * history refuses it.
   * @param done its last event, emitted once the turn is stored
   * @param now when it ended, in milliseconds since 1970
   */
  store(done: DoneEvent, now: number): Promise<Outcome<void>>
  emit(event: LogEventBody): void
  /**
   * Called once, when the turn begins. `spent` returns what the turn has spent so far, including calls still
   * running.
   */
  spends?(spent: () => Spending[]): void
  /** milliseconds since 1970 */
  now(): number
}
