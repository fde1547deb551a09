/** The shapes that the search room shares with its callers. Names are Typesense's: they are its wire. */

export const FIELD_TYPES = [
  'string',
  'string[]',
  'int32',
  'int32[]',
  'int64',
  'int64[]',
  'float',
  'float[]',
  'bool',
  'bool[]',
  'geopoint',
  'geopoint[]',
  'object',
  'object[]',
  'auto',
  'string*',
  'image',
] as const

export type FieldType = (typeof FIELD_TYPES)[number]

/** How an auto-embedding field makes its vectors. `model_config` goes to models/embedding-model.ts as it is. */
export interface EmbedConfig {
  from: string[]
  model_config: EmbeddingModelConfig
  /**
   * The model that makes the vectors, where `model_name` is another's name: Typesense's own models are served by one
   * of ours. Parley writes it; what a caller sends is dropped.
   */
  served_by?: string
}

/** A credential as a schema keeps it (schema/embedding-secrets.ts). */
export interface SealedSecret {
  /** as db/sealing.ts seals */
  sealed: string
  /** as it may be shown */
  masked: string
}

export interface EmbeddingModelConfig {
  model_name: string
  api_key?: string | SealedSecret
  url?: string
  path?: string
  indexing_prefix?: string
  query_prefix?: string
  [extra: string]: unknown
}

/** A field of a collection, with every default filled in. */
export interface Field {
  name: string
  type: FieldType
  facet: boolean
  optional: boolean
  index: boolean
  sort: boolean
  infix: boolean
  locale: string
  stem: boolean
  store: boolean
  stem_dictionary: string
  /** vectors only */
  num_dim?: number
  vec_dist?: 'cosine' | 'ip'
  hnsw_params?: Record<string, unknown>
  embed?: EmbedConfig
  /** nested object fields: their parent chain makes values arrays */
  nested?: boolean
  [extra: string]: unknown
}

export interface CollectionSchema {
  name: string
  fields: Field[]
  default_sorting_field: string
  enable_nested_fields: boolean
  token_separators: string[]
  symbols_to_index: string[]
  /** names of synonym and curation sets, kept and echoed */
  synonym_sets?: string[]
  curation_sets?: string[]
  metadata?: Record<string, unknown>
}

/** A document as its owner sees it: plain JSON with a string `id`. */
export type Document = { id: string } & Record<string, unknown>

/** Search parameters by their Typesense names, every value still the string that was sent. */
export type SearchParameters = Record<string, string>

/** What the key of a search may see, whatever the search's parameters say. */
export interface SearchScope {
  /** whether it may read what was said in a history collection; absent: it may not */
  history?: boolean
  /** the filter that a scoped key fixes: a document that it hides is answered like one that does not exist */
  filter?: string
}

export interface Highlight {
  field: string
  snippet?: string
  value?: string
  matched_tokens: string[] | string[][]
  indices?: number[]
  snippets?: string[]
  values?: string[]
}

export interface Hit {
  document: Document
  highlight: Record<string, unknown>
  highlights: Highlight[]
  text_match?: number
  text_match_info?: Record<string, unknown>
  vector_distance?: number
  hybrid_search_info?: { rank_fusion_score: number }
  geo_distance_meters?: Record<string, number>
  /** it was put where it is by pinned_hits */
  curated?: boolean
  /** what the reranking model thinks of it */
  rerank_score?: number
}

/** What came of rerank_model. */
export interface RerankInfo {
  model: string
  /** how many of the best hits were put in the model's order */
  reranked: number
  time_ms: number
  /** why there were none */
  error?: string
}

export interface FacetCounts {
  field_name: string
  sampled: boolean
  counts: { value: string; highlighted: string; count: number }[]
  /** of an int64 field `min`, `max` and `sum` are exact */
  stats: {
    total_values: number
    min?: number | bigint
    max?: number | bigint
    sum?: number | bigint
    avg?: number
  }
}

/** One search's reply, ready to be written as JSON. */
export interface SearchResult {
  facet_counts: FacetCounts[]
  found: number
  found_docs?: number
  hits?: Hit[]
  grouped_hits?: { group_key: unknown[]; hits: Hit[]; found: number }[]
  out_of?: number
  /** only where it was asked for */
  rerank?: RerankInfo
  page?: number
  offset?: number
  request_params: { collection_name: string; first_q: string; per_page: number; q: string }
  search_cutoff: boolean
  search_time_ms?: number
}

export type WriteAction = 'create' | 'update' | 'upsert' | 'emplace'

export type DirtyValues = 'coerce_or_reject' | 'coerce_or_drop' | 'drop' | 'reject'

export interface WriteOptions {
  action: WriteAction
  /** undefined: by the schema (reject, or coerce_or_reject where it has auto or wildcard fields) */
  dirtyValues?: DirtyValues
}

export interface ImportOptions extends WriteOptions {
  returnDocument: boolean
  returnId: boolean
}

export interface ExportOptions {
  filterBy: string
  /** comma-separated field lists, '' for none */
  include: string
  exclude: string
  /** with what is indexed and not stored, which no reader sees but a copy needs */
  unstored?: boolean
}

/** GET /collections/:name, every field in the order that Typesense writes them. Keys of embedders are masked. */
export type CollectionSummary = Record<string, unknown> & { name: string; num_documents: number }

export interface Step {
  /** documents done in this step */
  count: number
  /** false: call again */
  done: boolean
  /** return_doc, return_id of a delete by filter */
  documents?: Document[]
  ids?: string[]
}

/** A message of a history collection. */
export interface StoredMessage {
  documentId: string
  role: string
  message: string
  /** unix seconds */
  timestamp: number
  modelId: string
}

/** The end of a conversation. */
export interface RecentMessages {
  /** oldest first */
  messages: StoredMessage[]
  /** whether that is all that was said */
  complete: boolean
}
