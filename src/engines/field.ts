/** A field of a collection that lives elsewhere. */
import type { Field } from '../search/types'

/** @param given what is known of it; the rest is as Typesense describes a field by default */
export const plainField = (given: Partial<Field> & Pick<Field, 'name' | 'type'>): Field => ({
  facet: false,
  optional: false,
  index: true,
  sort: false,
  infix: false,
  locale: '',
  stem: false,
  store: true,
  stem_dictionary: '',
  ...given,
})
