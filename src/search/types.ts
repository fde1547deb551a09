/** The shapes that `search` shares with its callers. Their names are Typesense's, since they are its wire format. */

import * as v from 'valibot'
import { once } from '../lib/once'
import type { Part } from '../lib/parts'
import type { Origin } from './fault-log'

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
  'geopolygon',
  'object',
  'object[]',
  'auto',
  'string*',
  'image',
] as const

/** `l2` is Parley's own: OpenSearch's default. Typesense has the other two. */
export const VECTOR_DISTANCES = ['cosine', 'ip', 'l2'] as const
export type VectorDistance = (typeof VECTOR_DISTANCES)[number]

export type FieldType = (typeof FIELD_TYPES)[number]

/** A credential as a schema stores it (schema/embedding-secrets.ts). */
export interface SealedSecret {
  /** sealed by db/sealing.ts */
  sealed: string
  /** safe to show */
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

/** A field of a collection, with every default filled in, as `meta` holds it. */
export const fieldShape = once(() =>
  v.looseObject({
    name: v.string(),
    type: v.picklist(FIELD_TYPES),
    facet: v.boolean(),
    optional: v.boolean(),
    index: v.boolean(),
    sort: v.boolean(),
    infix: v.boolean(),
    locale: v.string(),
    stem: v.boolean(),
    store: v.boolean(),
    stem_dictionary: v.string(),
    /** the words of `stem_dictionary` when the field was made (schema/tables.ts) */
    stem_words: v.optional(v.string()),
    /** of this field instead of its collection's */
    token_separators: v.optional(v.array(v.string())),
    symbols_to_index: v.optional(v.array(v.string())),
    /** characters that a word is cut to */
    truncate_len: v.optional(v.number()),
    /** vectors only */
    num_dim: v.optional(v.number()),
    vec_dist: v.optional(v.picklist(VECTOR_DISTANCES)),
    hnsw_params: v.optional(v.record(v.string(), v.unknown())),
    /** how an embedding field makes its vectors */
    embed: v.optional(
      v.looseObject({
        from: v.array(v.string()),
        // Passed on to models/embedding-model.ts, which checks the rest. It stays as its owner sent it.
        model_config: v.custom<EmbeddingModelConfig>(
          (config) => typeof (config as EmbeddingModelConfig | null)?.model_name === 'string',
        ),
        /**
         * The model that actually makes the vectors, where it is not `model_name`: Parley serves Typesense's own models by
         * models of its own. Parley writes this; a caller's value is dropped.
         */
        served_by: v.optional(v.string()),
      }),
    ),
    /** `collection.field`: each value must be a value of that field */
    reference: v.optional(v.string()),
    /** the document referred to may come later */
    async_reference: v.optional(v.boolean()),
    /** false: a document stays when the one that it refers to is deleted */
    cascade_delete: v.optional(v.boolean()),
    /** a nested field: an array above it in the document makes its values a list */
    nested: v.optional(v.boolean()),
  }),
)
export type Field = v.InferOutput<ReturnType<typeof fieldShape>>
export type EmbedConfig = NonNullable<Field['embed']>

export const collectionShape = once(() =>
  v.object({
    name: v.string(),
    fields: v.array(fieldShape()),
    default_sorting_field: v.string(),
    enable_nested_fields: v.boolean(),
    token_separators: v.array(v.string()),
    symbols_to_index: v.array(v.string()),
    /** names of the synonym sets and curation sets that searches use */
    synonym_sets: v.optional(v.array(v.string())),
    curation_sets: v.optional(v.array(v.string())),
    metadata: v.optional(v.record(v.string(), v.unknown())),
  }),
)
export type CollectionSchema = v.InferOutput<ReturnType<typeof collectionShape>>

/** A document as its owner sees it: JSON with a string `id`. */
export type Document = { id: string } & Record<string, unknown>

/** Search parameters by their Typesense names. Values are strings, as sent. */
export type SearchParameters = Record<string, string>

/** What the search's key may see, whatever the parameters say. */
export interface SearchScope extends Origin {
  /** may read messages of a history collection; default: no */
  history?: boolean
  /** a scoped key's filter: documents that it hides are treated as if they did not exist */
  filter?: string
  /** a scoped key's exclude_fields, and whether it fixes include_fields: both hold for joined documents too */
  excludes?: string
  includes?: boolean
  /** the objects of the collections that `excludes` names, by these names, whatever else the key may read */
  excluded?: Record<string, string>
  /** the collections that the search names in joins and that its key may read, by the names that it uses */
  joins?: Record<string, JoinPlace>
  /** the object of the collection that is searched. Joins that come back to it meet the whole `filter`. */
  home?: string
  /** how long its reply may be cached (`use_cache`); absent: it is not */
  cacheSeconds?: number
  /** what `/operations/cache/clear` wrote last: replies from before are not used */
  cacheMark?: string
}

/** A collection that a search may join. */
export interface JoinPlace {
  objectId: string
  /** its own name, also when an alias was given */
  name: string
  /** the key may read it even if it is a history collection */
  history: boolean
}

/** What one collection's object asks another one's, about documents that are related to its own. */
export interface JoinQuestion {
  /** the collection that asks */
  asker: { objectId: string; name: string }
  /** the field here that the asker refers to; undefined: this collection refers to the asker */
  target?: string | undefined
  /** a condition on the documents here */
  filter: string
  /** the condition is a scoped key's own, with its joins: the key's conditions on this collection do not narrow it */
  trusted?: boolean
  /** the restriction of this collection by a scoped key's joins */
  only?: string
  scope: SearchScope
  /** may read a history collection */
  history: boolean
  /** milliseconds */
  cutoffMs: number
  /** a name for `abandon`; none: nobody will */
  ticket?: string | undefined
  /** levels of joins that may follow */
  depth: number
  want:
    | 'relation'
    | 'keys'
    | RankQuestion
    | DocumentQuestion
    | { related: string[] }
    | { facets: FacetQuestion }
}

/** Facets of related documents. */
export interface FacetQuestion {
  /** the part of `facet_by` in the parentheses */
  facetBy: string
  /** the asker's name for this collection */
  calls: string
  /** fields that a scoped key hides */
  exclude: string
  /** a scoped key shows no field of this collection */
  hidden: boolean
  maxFacetValues: number
  /** the related documents, by sequence number here. The conditions on them hold again. */
  seqs: number[]
}

/** The ranks of related documents in an order, best first, from 0. A key gets that of its best document. */
export interface RankQuestion {
  sortBy: string
  /** lists of keys as JSON */
  keys: string[]
}

export interface DocumentQuestion {
  include: string
  exclude: string
  sortBy: string
  /** related documents for each key; 0: all */
  limit: number
  keys: string[]
}

/** Keys are JSON texts, which keep all digits of a number. */
export interface JoinAnswer {
  /** the asker's field whose values the keys are */
  on: string
  /** the reference field holds a list */
  array: boolean
  keys?: string[]
  ranks?: [key: string, rank: number][]
  /** for each key its documents' places in `documents`, and how many there are without the limit */
  related?: [key: string, places: number[], count: number][]
  documents?: Document[]
  /** related documents, by sequence number there */
  seqs?: number[]
  facets?: FacetCounts[]
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
  /** placed by pinned_hits */
  curated?: boolean
  /** score from the reranking model */
  rerank_score?: number
}

/** The outcome of rerank_model. */
export interface RerankInfo {
  model: string
  /** how many of the best hits the model has ordered */
  reranked: number
  time_ms: number
  /** why it has ordered none */
  error?: string
}

export interface FacetCounts {
  field_name: string
  sampled: boolean
  counts: {
    value: string
    highlighted: string
    count: number
    /** facet_return_parent: the object around the value, in one of the documents that have it */
    parent?: unknown
    /** of a joined collection: the filter that finds the documents with the value */
    facet_filter?: string
  }[]
  /** `min`, `max` and `sum` of an int64 field are exact */
  stats: {
    total_values: number
    min?: number | bigint
    max?: number | bigint
    sum?: number | bigint
    avg?: number
  }
}

/** The reply to one search, ready for JSON. */
export interface SearchResult {
  facet_counts: FacetCounts[]
  found: number
  found_docs?: number
  hits?: Hit[]
  grouped_hits?: { group_key: unknown[]; hits: Hit[]; found: number }[]
  out_of?: number
  /** only when rerank_model was given */
  rerank?: RerankInfo
  /** the outcome of a search in plain language */
  parsed_nl_query?: Record<string, unknown>
  page?: number
  offset?: number
  request_params: { collection_name: string; first_q: string; per_page: number; q: string }
  search_cutoff: boolean
  search_time_ms?: number
  /** of a curation that the search has met */
  metadata?: Record<string, unknown>
}

export type WriteAction = 'create' | 'update' | 'upsert' | 'emplace'

export type DirtyValues = 'coerce_or_reject' | 'coerce_or_drop' | 'drop' | 'reject'

export interface WriteOptions extends Origin {
  action: WriteAction
  /** default: the schema decides (reject, or coerce_or_reject with auto or wildcard fields) */
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
  /** with fields that are indexed but not stored: only a copy needs them */
  unstored?: boolean
  /** documents of a page */
  most?: number
}

/** GET /collections/:name. Fields are in Typesense's order; embedders' keys are masked. */
export type CollectionSummary = Record<string, unknown> & { name: string; num_documents: number }

/** How far a change of the schema is, in documents. */
export interface SchemaProgress {
  validated_docs: number
  altered_docs: number
}

export interface RemoveOptions {
  batchSize: number
  returnDocuments: boolean
  returnIds: boolean
  /** the last step's `cursor`; without it, a step looks at all documents again */
  after?: number
}

export interface Step {
  /** documents done in this step */
  count: number
  /** false: call again */
  done: boolean
  /** for return_doc and return_id of a delete by filter */
  documents?: Document[]
  ids?: string[]
}

/** A message of a history collection. */
export interface StoredMessage {
  documentId: string
  role: string
  content: Part[]
  /** unix seconds */
  timestamp: number
  modelId: string
  /** its turn's number; absent for a message that no turn added here, and among the last messages */
  turn?: number
}

/** The last messages of a conversation. */
export interface RecentMessages {
  /** oldest first */
  messages: StoredMessage[]
  /** whether these are all of them */
  complete: boolean
}

/** Where a collection is kept, as its row in the registry says. */
export interface CollectionPlace {
  /** what its documents are kept in: `object` is Parley's own Durable Object */
  engine: string
  /** what the engine knows it by: the id of a Durable Object */
  objectId: string
}
