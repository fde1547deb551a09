/** Typesense's options of fields and collections, those of release 30: what Parley does with each. */
import { ApiError } from '../../errors'
import { differs, harmless, insteadOf, passes, refused, type Standing, WORKS } from '../standing'

export const FIELD_OPTIONS: Readonly<Record<string, Standing>> = {
  name: WORKS,
  type: WORKS,
  facet: WORKS,
  optional: WORKS,
  index: WORKS,
  store: WORKS,
  sort: WORKS,
  drop: WORKS,
  embed: differs('Models that have to be called make vectors in the background.'),
  num_dim: WORKS,
  vec_dist: WORKS,
  hnsw_params: harmless('Vectors are compared exactly.'),
  range_index: harmless('SQLite compares numbers.'),
  locale: differs('Words are found by their script. The value is stored and shown.'),
  stem: differs('English words match by their stems in every field.'),
  stem_dictionary: refused('There are no stemming dictionaries.', ''),
  infix: refused('Fields have no infix index.', 'false'),
  reference: refused('Collections cannot be joined.', ''),
  async_reference: refused('Collections cannot be joined.', 'false'),
  cascade_delete: refused('Collections cannot be joined.', 'true'),
  symbols_to_index: refused('Set `symbols_to_index` for the whole collection.', ''),
  token_separators: refused('Set `token_separators` for the whole collection.', ''),
  truncate_len: differs('Long words are never cut.'),
}

export const COLLECTION_OPTIONS: Readonly<Record<string, Standing>> = {
  name: WORKS,
  fields: WORKS,
  default_sorting_field: WORKS,
  enable_nested_fields: WORKS,
  token_separators: WORKS,
  symbols_to_index: WORKS,
  metadata: WORKS,
  num_memory_shards: harmless('A collection is one object.'),
  synonym_sets: refused('There are no synonym sets.', ''),
  curation_sets: refused('There are no curation sets.', ''),
  voice_query_model: refused('Parley does not transcribe speech.', ''),
}

/**
 * Refuses options that would change results and are not implemented.
 * @param what names the owner: "of the field `x`"
 * @throws ApiError 400
 */
export function requireOptions(
  options: Readonly<Record<string, Standing>>,
  given: Readonly<Record<string, unknown>>,
  what: string,
): void {
  for (const [name, standing] of Object.entries(options)) {
    const value = given[name]
    if (value === undefined || value === null || passes(standing, asText(value))) continue
    throw new ApiError(400, `The option \`${name}\`${what} is not supported. ${insteadOf(standing)}`)
  }
}

/** Empty lists and objects ask for nothing, like an empty text. */
const asText = (value: unknown): string =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0 ? '' : String(value)
