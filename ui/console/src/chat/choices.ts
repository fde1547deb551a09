/** What there is to ask: collections, conversation models and assistants, as far as the key may list them. */
import type { InferOutput } from 'valibot'
import type * as responses from '../../../../src/api/parley/response-schemas'
import { orElse, read } from '../api'
import type { Collection } from '../collections/wire'
import type { ChatSettings } from './settings'

export interface Model {
  id: string
  model_name: string
  history_collection: string
  turns_per_day?: number
  tokens_per_day?: number
}

export type Assistant = InferOutput<typeof responses.Assistant>

export interface Choices {
  /** undefined where the key may not list them */
  collections?: Collection[] | undefined
  models?: Model[] | undefined
  assistants?: Assistant[] | undefined
}

/** A list; undefined where the key may not have it. */
export const listed = <T>(path: string, signal?: AbortSignal): Promise<T | undefined> =>
  orElse(read<T>(path, signal), undefined, [401, 403])

export async function loadChoices(signal?: AbortSignal): Promise<Choices> {
  const [collections, models, assistants] = await Promise.all([
    listed<Collection[]>('/collections', signal),
    listed<Model[]>('/conversations/models', signal),
    listed<{ assistants: Assistant[] }>('/assistants', signal),
  ])
  const histories = new Set(models?.map(({ history_collection }) => history_collection))
  return {
    collections: collections?.filter(({ name }) => !histories.has(name)),
    models,
    assistants: assistants?.assistants,
  }
}

/** Settings with a collection and a model that are there in the place of those that are not. */
export function possible(asked: ChatSettings, { collections = [], models = [] }: Choices): ChatSettings {
  const { name } = collections.find((each) => each.name === asked.collection) ?? collections[0] ?? {}
  const { id } = models.find((each) => each.id === asked.model) ?? models[0] ?? {}
  return { ...asked, collection: name ?? asked.collection, model: id ?? asked.model }
}
