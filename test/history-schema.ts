/** The fields of a history collection, as Typesense's documentation has them. */
export const HISTORY_FIELDS = [
  { name: 'conversation_id', type: 'string' },
  { name: 'model_id', type: 'string' },
  { name: 'timestamp', type: 'int32' },
  { name: 'role', type: 'string', index: false },
  { name: 'message', type: 'string', index: false },
] as const

/** @param name of the collection */
export const historySchema = (name: string) => ({ name, fields: [...HISTORY_FIELDS] })
