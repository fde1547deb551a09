/** Which fields of a collection can be searched, for requests that do not name any. */
import { namespaceOf } from '../../models/providers'
import { isVector } from '../schema/layout'
import type { CollectionSchema, Field } from '../types'

/** Names of a collection's fields. Unlike the schema, it contains no credentials. */
export interface Outline {
  name: string
  /** indexed fields of text */
  texts: string[]
  /** indexed fields with an embedder */
  embeddings: string[]
  /** all vector fields, with or without an embedder */
  vectors: string[]
  indexed: string[]
  /** of `embeddings`, those whose model has to be called; absent: none */
  called?: string[]
}

export function outlineOf({ name, fields }: Pick<CollectionSchema, 'name' | 'fields'>): Outline {
  const indexed = fields.filter((field) => field.index)
  const called = indexed.filter(isCalled).map((field) => field.name)
  const namesOf = (some: typeof fields) => some.map((field) => field.name)
  return {
    name,
    texts: namesOf(indexed.filter(({ type }) => type === 'string' || type === 'string[]')),
    embeddings: namesOf(indexed.filter(({ embed }) => embed)),
    vectors: namesOf(fields.filter(isVector)),
    indexed: namesOf(indexed),
    ...(called.length > 0 && { called }),
  }
}

/** Models without a namespace, and those of `local/` and `ts/`, run in the Worker unless the schema names another server. */
const BUILT_IN = ['', 'local', 'ts']

function isCalled({ embed }: Field): boolean {
  if (embed === undefined) return false
  const { served_by: server = embed.model_config.model_name } = embed
  return !BUILT_IN.includes(namespaceOf(server))
}

/** What `parley import` notes in each document for itself (scripts/parley/import/schema.mjs). */
const SOURCE = 'parley_source'
const NOTES = [SOURCE, 'parley_hash', 'parley_page', 'parley_part']

/** Fields that no answer is made of, and that nobody reads unless a search names them. */
export const hiddenFields = ({ vectors, indexed }: Outline): string[] =>
  indexed.includes(SOURCE) ? [...vectors, ...NOTES] : vectors

/**
 * The default query_by: one embedding field, if there is any, and all text. A search takes only one embedding field.
 */
export const searchableFields = ({ embeddings, texts }: Outline): string[] => [
  ...embeddings.slice(0, 1),
  ...texts.filter((name) => !NOTES.includes(name)),
]
