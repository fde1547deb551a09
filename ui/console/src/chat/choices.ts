/** What there is to ask: collections, conversation models and assistants, as far as the key may list them. */
import { Refusal, read } from '../api'

export interface Collection {
  name: string
  num_documents: number
  fields: { name: string; type: string }[]
  metadata?: Record<string, unknown>
}

export interface Model {
  id: string
  model_name: string
  history_collection: string
}

export interface Assistant {
  name: string
  model: string
  collections?: string[]
  searches?: { collection: string; filter_by?: string }[]
  questions: string[]
  title_field?: string
  url_field?: string
}

export interface Choices {
  /** undefined where the key may not list them */
  collections?: Collection[]
  models?: Model[]
  assistants?: Assistant[]
}

export async function loadChoices(signal?: AbortSignal): Promise<Choices> {
  const listed = <T>(path: string) =>
    read<T>(path, signal).catch((error) => {
      if (error instanceof Refusal && [401, 403].includes(error.status)) return undefined
      throw error
    })
  const [collections, models, assistants] = await Promise.all([
    listed<Collection[]>('/collections'),
    listed<Model[]>('/conversations/models'),
    listed<{ assistants: Assistant[] }>('/assistants'),
  ])
  const histories = new Set(models?.map(({ history_collection }) => history_collection))
  return {
    ...(collections && { collections: collections.filter(({ name }) => !histories.has(name)) }),
    ...(models && { models }),
    ...(assistants && { assistants: assistants.assistants }),
  }
}
