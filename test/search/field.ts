import type { Field } from '../../src/search/types'

/** A field of a stored schema, with its defaults. */
export const field = (name: string, type: Field['type'], more: Partial<Field> = {}): Field => ({
  name,
  type,
  facet: false,
  optional: false,
  index: true,
  sort: false,
  infix: false,
  locale: '',
  stem: false,
  store: true,
  stem_dictionary: '',
  ...more,
})
