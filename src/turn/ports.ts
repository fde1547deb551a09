/** What a turn needs of the world. The Conversation object provides it; tests provide their own. */
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
import type { Spending } from './spending'

export interface TurnPorts {
  model: LanguageModel
  /** the same with the request's own settings, which are for its answer alone; absent where it has none */
  answerer?: LanguageModel | undefined
  /** who writes standalone questions and suggestions; undefined: `model` does */
  rewriter(): Promise<LanguageModel | undefined>
  /** @param scope what the search's key may see */
  search(
    place: CollectionPlace,
    params: SearchParameters,
    scope?: SearchScope,
  ): Promise<Outcome<SearchResult>>
  schema(place: CollectionPlace): Promise<Outcome<CollectionSchema>>
  /** What `messages` will answer for the model's `max_bytes`, where it was read before the turn began. */
  known?: RecentMessages | undefined
  /**
   * What was said in this conversation, oldest first, expired or not.
   * @param bytes of text after which older messages are left out; undefined: everything
   */
  messages(bytes?: number): Promise<RecentMessages>
  /** ttls in seconds of models, deleted ones too; unknown models are left out */
  ttls(modelIds: string[]): Promise<Map<string, number>>
  /**
   * Keeps a finished turn for good: what its events so far and its last one add up to (fold.ts). A failure means that the
   * history refuses it.
   * @param done its last event, which is emitted when it is kept @param now when it ended, in milliseconds since 1970
   */
  store(done: DoneEvent, now: number): Promise<Outcome<void>>
  emit(event: LogEventBody): void
  /** Told once, when the turn begins: what tells what it has spent so far, the calls under way included. */
  spends?(spent: () => Spending[]): void
  /** milliseconds since 1970 */
  now(): number
}
