/** What a collection must look like to keep a history (contract 1.3). */
import { ApiError } from '../errors'
import type { CollectionSchema, Field } from '../search/types'

/** @throws ApiError 400 with the contract's message, in the contract's order */
export function checkHistorySchema(schema: CollectionSchema): void {
  const fields = new Map(schema.fields.map((field) => [field.name, field]))
  const require = (name: string): Field => {
    const field = fields.get(name)
    if (!field) throw new ApiError(400, `Schema is missing \`${name}\` field`)
    return field
  }
  const requireString = (name: string) => {
    if (require(name).type !== 'string') throw new ApiError(400, `\`${name}\` field must be a string`)
  }
  for (const name of ['conversation_id', 'role', 'message', 'timestamp']) require(name)
  for (const name of ['conversation_id', 'role', 'message']) requireString(name)
  const timestamp = require('timestamp')
  if (timestamp.type !== 'int32') throw new ApiError(400, '`timestamp` field must be an integer')
  if (!timestamp.sort) throw new ApiError(400, '`timestamp` field must be a sort field')
  requireString('model_id')
}
