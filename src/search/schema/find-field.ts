import type { Field } from '../types'
import { isDynamic } from './field'
import type { StoredSchema } from './layout'

/** The field of this name; patterns and fields whose type is not known yet have none. */
export const findField = (schema: StoredSchema, name: string): Field | undefined =>
  schema.fields.find((field) => field.name === name && !isDynamic(field))
