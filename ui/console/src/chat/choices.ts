/** What there is to ask: collections, conversation models and assistants, as far as the key may list them. */
import type { InferOutput } from 'valibot'
import type * as responses from '../../../../src/api/parley/response-schemas'
import { Refusal, read } from '../api'
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
  collections?: Collection[]
  models?: Model[]
  assistants?: Assistant[]
}

/** A list; undefined where the key may not have it. */
export const listed = <T>(path: string, signal?: AbortSignal): Promise<T | undefined> =>
  read<T>(path, signal).catch((error) => {
    if (error instanceof Refusal && [401, 403].includes(error.status)) return undefined
    throw error
  })

export async function loadChoices(signal?: AbortSignal): Promise<Choices> {
  const [collections, models, assistants] = await Promise.all([
    listed<Collection[]>('/collections', signal),
    listed<Model[]>('/conversations/models', signal),
    listed<{ assistants: Assistant[] }>('/assistants', signal),
  ])
  const histories = new Set(models?.map(({ history_collection }) => history_collection))
  return {
    ...(collections && { collections: collections.filter(({ name }) => !histories.has(name)) }),
    ...(models && { models }),
    ...(assistants && { assistants: assistants.assistants }),
  }
}

const pick = (wanted: string, names: string[] | undefined): string =>
  names === undefined || names.length === 0 || names.includes(wanted) ? wanted : names[0]!

/** Settings with a collection and a model that are there in the place of those that are not. */
export const possible = (asked: ChatSettings, { collections, models }: Choices): ChatSettings => ({
  ...asked,
  collection: pick(
    asked.collection,
    collections?.map(({ name }) => name),
  ),
  model: pick(
    asked.model,
    models?.map(({ id }) => id),
  ),
})
