/** Recognises a history collection that no model uses now: a clone, a backup, or one whose model is created later. */
import type { CollectionSchema } from '../search/types'

/** Fields of a message: Typesense's names and types. */
const TYPES: Record<string, readonly string[]> = {
  conversation_id: ['string'],
  model_id: ['string'],
  role: ['string'],
  message: ['string'],
  timestamp: ['int32', 'int64'],
}

/** Whether a schema has all fields of a message. */
export const isHistoryShaped = ({ fields }: Pick<CollectionSchema, 'fields'>): boolean =>
  Object.entries(TYPES).every(([name, types]) =>
    fields.some((field) => field.name === name && types.includes(field.type)),
  )
