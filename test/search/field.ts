import { plainField } from '../../src/engines/cluster'
import type { Field } from '../../src/search/types'

/** A field of a stored schema, with its defaults. */
export const field = (name: string, type: Field['type'], more: Partial<Field> = {}): Field =>
  plainField({ name, type, ...more })
