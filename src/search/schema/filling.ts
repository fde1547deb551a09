/**
 * Fields whose indexes are being filled again after a change of the schema (`StoredSchema.filling`). A search that read one of
 * them would take a part of the documents for all. So it reads the field as it was (former.ts), and gets an error if that cannot be.
 */
import { ApiError } from '../../errors'
import type { Field } from '../types'
import type { StoredSchema } from './layout'

/** Retry-After, in seconds. */
const RETRY_SECONDS = 5

/** Thrown where something reads the index of a field that is being filled. */
export class StillFilling extends Error {
  constructor(readonly field: string) {
    super('The index of a field is not complete.')
  }

  /** What the caller is told if it does not wait any longer. */
  get refusal(): ApiError {
    return new ApiError(
      503,
      `The field \`${this.field}\` is being indexed again after a change of the schema, so a part of the documents would be missing. Ask again in a moment: \`GET /operations/schema_changes\` shows how far it is.`,
      RETRY_SECONDS,
    )
  }
}

/** @throws StillFilling */
export function requireFilled({ filling }: StoredSchema, name: string): void {
  if (filling?.includes(name)) throw new StillFilling(name)
}

/** Notes fields whose indexes a job is about to fill. Changes `schema` in place. */
export function fillAgain(schema: StoredSchema, fields: readonly Field[]): void {
  schema.filling = [...new Set([...(schema.filling ?? []), ...fields.map(({ name }) => name)])]
}

/**
 * A schema as searches, joins and filters read it: whoever looks up where the values of a field are must not overlook that they
 * are incomplete, so the slot of a field that is being filled throws StillFilling.
 */
export function readable(schema: StoredSchema): StoredSchema {
  if (schema.filling === undefined) return schema
  const slots = { ...schema.slots }
  for (const name of schema.filling) {
    Object.defineProperty(slots, name, { get: () => requireFilled(schema, name), enumerable: false })
  }
  return { ...schema, slots }
}
