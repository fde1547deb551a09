/** How a history collection is known that keeps no model's history now: a clone, a backup, one whose model is yet to come. */
import type { CollectionSchema } from '../types'

/** Fields of a message, by Typesense's names and types (contract 1.3). */
const TYPES: Record<string, readonly string[]> = {
  conversation_id: ['string'],
  model_id: ['string'],
  role: ['string'],
  message: ['string'],
  timestamp: ['int32', 'int64'],
}

/** Whether the documents of a schema are messages of conversations, by their fields. */
export const isHistoryShaped = ({ fields }: Pick<CollectionSchema, 'fields'>): boolean =>
  Object.entries(TYPES).every(([name, types]) =>
    fields.some((field) => field.name === name && types.includes(field.type)),
  )
