/** What a turn needs of the world. The Conversation object provides it; tests provide their own. */
import type { Outcome } from '../errors'
import type { LanguageModel } from '../models/language-model'
import type { StoredMessage } from '../search/rpc'
import type { CollectionSchema, SearchParameters, SearchResult } from '../search/types'
import type { HistoryMessage, TurnEventBody } from './events'

export interface TurnPorts {
  model: LanguageModel
  search(objectId: string, params: SearchParameters): Promise<Outcome<SearchResult>>
  schema(objectId: string): Promise<Outcome<CollectionSchema>>
  /** everything said in this conversation, oldest first, expired or not */
  messages(): Promise<StoredMessage[]>
  /** ttls in seconds of models, deleted ones too; unknown models are left out */
  ttls(modelIds: string[]): Promise<Map<string, number>>
  /** Keeps a finished turn for good. A failure means that the history refuses it. */
  store(messages: HistoryMessage[]): Promise<Outcome<void>>
  emit(event: TurnEventBody): void
  /** milliseconds since 1970 */
  now(): number
}
