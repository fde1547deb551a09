/**
 * What Parley answers on the routes of Typesense that the console calls. openapi.json leaves them out, since Typesense's own
 * description is theirs; `shapes.worker.test.ts` holds these against the Worker.
 */
import type { Schema } from '@cfworker/json-schema'

const TEXT: Schema = { type: 'string' }
const NUMBER: Schema = { type: 'number' }
const YES: Schema = { type: 'boolean' }
const ANY: Schema = {}
const listOf = (items: Schema): Schema => ({ type: 'array', items })

/** An object. Properties whose names end with `?` can be absent. */
function object(properties: Record<string, Schema>): Schema {
  const names = Object.keys(properties)
  return {
    type: 'object',
    properties: Object.fromEntries(names.map((name) => [name.replace('?', ''), properties[name]!])),
    required: names.filter((name) => !name.endsWith('?')),
  }
}

const FIELD = object({
  name: TEXT,
  type: TEXT,
  facet: YES,
  optional: YES,
  index: YES,
  sort: YES,
  infix: YES,
  locale: TEXT,
  stem: YES,
  store: YES,
  stem_dictionary: TEXT,
  truncate_len: NUMBER,
  'num_dim?': NUMBER,
  'vec_dist?': TEXT,
  'hnsw_params?': object({ M: NUMBER, ef_construction: NUMBER }),
  'embed?': object({
    from: listOf(TEXT),
    model_config: { type: 'object', required: ['model_name'], additionalProperties: true },
    'served_by?': TEXT,
  }),
})

const COLLECTION = object({
  name: TEXT,
  num_documents: NUMBER,
  created_at: NUMBER,
  enable_nested_fields: YES,
  default_sorting_field: TEXT,
  token_separators: listOf(TEXT),
  symbols_to_index: listOf(TEXT),
  synonym_sets: listOf(TEXT),
  curation_sets: listOf(TEXT),
  fields: listOf(FIELD),
  'metadata?': ANY,
  'engine?': object({
    type: TEXT,
    'nodes?': listOf(TEXT),
    'collection?': TEXT,
    'index?': TEXT,
    'instance?': TEXT,
    'account_id?': TEXT,
    'timeout_ms?': NUMBER,
    // Masked.
    'credentials?': ANY,
    'error?': TEXT,
  }),
  'pending_embeddings?': NUMBER,
  'refused_embeddings?': NUMBER,
  'embedding_error?': TEXT,
  'replacing_embeddings?': listOf(object({ name: TEXT, 'model_name?': TEXT, pending: NUMBER })),
})

const MODEL = object({
  id: TEXT,
  model_name: TEXT,
  history_collection: TEXT,
  max_bytes: NUMBER,
  'max_tokens?': NUMBER,
  ttl: NUMBER,
  'api_key?': TEXT,
  'openai_url?': TEXT,
  'turns_per_day?': NUMBER,
  'tokens_per_day?': NUMBER,
  'temperature?': NUMBER,
  'system_prompt?': TEXT,
  'fallbacks?': listOf(TEXT),
})

const KEY = {
  id: NUMBER,
  description: TEXT,
  actions: listOf(TEXT),
  collections: listOf(TEXT),
  expires_at: NUMBER,
  autodelete: YES,
  'limits?': object({
    'assistant?': TEXT,
    'allowed_origins?': listOf(TEXT),
    'turns_per_day?': NUMBER,
    'tokens_per_day?': NUMBER,
  }),
}

const DOCUMENT: Schema = { type: 'object', required: ['id'], additionalProperties: true }

const RESULT = object({
  facet_counts: listOf(
    object({
      field_name: TEXT,
      sampled: YES,
      counts: listOf(object({ count: NUMBER, highlighted: TEXT, value: TEXT })),
      stats: ANY,
    }),
  ),
  found: NUMBER,
  hits: listOf(
    object({
      document: DOCUMENT,
      highlight: ANY,
      highlights: listOf(
        object({ field: TEXT, matched_tokens: listOf(TEXT), 'snippet?': TEXT, 'snippets?': listOf(TEXT) }),
      ),
      'hybrid_search_info?': object({ rank_fusion_score: NUMBER }),
      'text_match?': NUMBER,
      'text_match_info?': ANY,
      'vector_distance?': NUMBER,
    }),
  ),
  out_of: NUMBER,
  page: NUMBER,
  request_params: ANY,
  search_cutoff: YES,
  search_time_ms: NUMBER,
})

interface Shape {
  /** of a reply that succeeds; 200 */
  status?: number
  /** undefined where it is no JSON */
  reply: Schema | undefined
}

/** By method and path. */
export const SHAPES: Record<string, Shape> = {
  'GET /aliases': { reply: object({ aliases: listOf(object({ name: TEXT, collection_name: TEXT })) }) },
  'GET /collections': { reply: listOf(COLLECTION) },
  'POST /collections': { status: 201, reply: COLLECTION },
  'GET /collections/{name}': { reply: COLLECTION },
  'DELETE /collections/{name}': { reply: COLLECTION },
  'GET /collections/{name}/nodes': {
    reply: object({
      nodes: listOf(object({ url: TEXT, answers: YES, took_ms: NUMBER, 'error?': TEXT })),
    }),
  },
  'GET /collections/{name}/documents/search': { reply: RESULT },
  'GET /collections/{name}/documents/export': { reply: undefined },
  'POST /collections/{name}/documents/import': { reply: undefined },
  'PATCH /collections/{name}': { reply: ANY },
  'PUT /collections/{name}/synonyms/{id}': { reply: object({ id: TEXT, synonyms: listOf(TEXT) }) },
  'DELETE /collections/{name}/synonyms/{id}': { reply: object({ id: TEXT }) },
  'PUT /collections/{name}/overrides/{id}': { reply: object({ id: TEXT, rule: ANY, includes: listOf(ANY) }) },
  'DELETE /collections/{name}/overrides/{id}': { reply: object({ id: TEXT }) },
  'POST /collections/{name}/documents': { status: 201, reply: DOCUMENT },
  'PATCH /collections/{name}/documents/{id}': { reply: DOCUMENT },
  'DELETE /collections/{name}/documents/{id}': { reply: DOCUMENT },
  'POST /v1/embeddings': {
    reply: object({
      object: TEXT,
      data: listOf(object({ object: TEXT, index: NUMBER, embedding: listOf(NUMBER) })),
      model: TEXT,
      usage: object({ prompt_tokens: NUMBER, total_tokens: NUMBER }),
    }),
  },
  'POST /multi_search': { reply: object({ results: listOf(RESULT) }) },
  'GET /conversations/models': { reply: listOf(MODEL) },
  'POST /conversations/models': { status: 201, reply: MODEL },
  'PUT /conversations/models/{id}': { reply: MODEL },
  'DELETE /conversations/models/{id}': { reply: MODEL },
  'GET /synonym_sets': { reply: listOf(object({ name: TEXT, items: listOf(ANY) })) },
  'PUT /synonym_sets/{name}': { reply: object({ name: TEXT, items: listOf(ANY) }) },
  'DELETE /synonym_sets/{name}': { reply: object({ name: TEXT }) },
  'GET /curation_sets': { reply: listOf(object({ name: TEXT, items: listOf(ANY) })) },
  'GET /presets': { reply: object({ presets: listOf(object({ name: TEXT, value: ANY })) }) },
  'GET /stopwords': { reply: object({ stopwords: listOf(object({ id: TEXT, stopwords: listOf(TEXT) })) }) },
  'GET /keys': { reply: object({ keys: listOf(object({ ...KEY, value_prefix: TEXT })) }) },
  'POST /keys': { status: 201, reply: object({ ...KEY, value: TEXT }) },
  'PATCH /keys/{id}': { reply: object({ ...KEY, value_prefix: TEXT }) },
  'DELETE /keys/{id}': { reply: object({ id: NUMBER }) },
}
