/**
 * Typesense's search parameters and schema options that Parley takes, those of release 30, and how. What it refuses
 * stands beside the code that does so. docs/typesense.md has tables of all.
 */

export type Taken =
  | { is: 'works' }
  /** it has an effect, but not quite Typesense's */
  | { is: 'differs'; why: string }
  /** accepted without an effect, because it changes no result */
  | { is: 'harmless'; why: string }

const WORKS: Taken = { is: 'works' }
const differs = (why: string): Taken => ({ is: 'differs', why })
const harmless = (why: string): Taken => ({ is: 'harmless', why })

const EXACT_COUNTS = harmless('Facets are always counted exactly.')
const ALL_MATCHES = harmless('A search always looks at every match.')

export const PARAMETERS: Readonly<Record<string, Taken>> = {
  q: WORKS,
  validate_field_names: WORKS,
  query_by: WORKS,
  query_by_weights: WORKS,
  prefix: WORKS,
  infix: differs('A word that is found by a part of it counts in all fields of `query_by`.'),
  max_extra_prefix: WORKS,
  max_extra_suffix: WORKS,
  stopwords: WORKS,
  preset: differs('An unknown preset is a 404. Typesense ignores it.'),
  filter_by: WORKS,
  max_filter_by_candidates: ALL_MATCHES,
  enable_lazy_filter: harmless('Filters test only what words found.'),
  sort_by: WORKS,
  rank_tokens_by: harmless('No candidate word is left out.'),
  facet_by: differs('`facet_query` and `group_by` do not apply to fields of joined collections.'),
  facet_query: WORKS,
  facet_query_num_typos: WORKS,
  facet_return_parent: WORKS,
  facet_strategy: EXACT_COUNTS,
  facet_sample_percent: EXACT_COUNTS,
  facet_sample_slope: EXACT_COUNTS,
  facet_sample_threshold: EXACT_COUNTS,
  max_facet_values: differs('At most 100,000.'),
  page: WORKS,
  per_page: WORKS,
  offset: WORKS,
  limit: WORKS,
  limit_hits: WORKS,
  group_by: WORKS,
  group_limit: WORKS,
  group_missing_values: WORKS,
  include_fields: WORKS,
  exclude_fields: WORKS,
  highlight_fields: WORKS,
  highlight_full_fields: WORKS,
  highlight_affix_num_tokens: WORKS,
  highlight_start_tag: WORKS,
  highlight_end_tag: WORKS,
  enable_highlight_v1: WORKS,
  snippet_threshold: WORKS,
  num_typos: WORKS,
  split_join_tokens: WORKS,
  min_len_1typo: WORKS,
  min_len_2typo: WORKS,
  typo_tokens_threshold: WORKS,
  enable_typos_for_numerical_tokens: WORKS,
  enable_typos_for_alpha_numerical_tokens: WORKS,
  max_candidates: ALL_MATCHES,
  exhaustive_search: WORKS,
  drop_tokens_threshold: WORKS,
  drop_tokens_mode: WORKS,
  text_match_type: WORKS,
  prioritize_exact_match: WORKS,
  prioritize_token_position: WORKS,
  prioritize_num_matching_fields: WORKS,
  pinned_hits: WORKS,
  hidden_hits: WORKS,
  filter_curated_hits: WORKS,
  enable_curations: WORKS,
  enable_overrides: WORKS,
  curation_tags: WORKS,
  override_tags: WORKS,
  diversity_lambda: differs('A text match counts as a share of the best one. Typesense leaves it out.'),
  curation_sets: differs('Sets beside those of the collection. Typesense has no such parameter.'),
  synonym_sets: WORKS,
  enable_synonyms: WORKS,
  synonym_prefix: WORKS,
  synonym_num_typos: WORKS,
  demote_synonym_match: WORKS,
  vector_query: WORKS,
  rerank_hybrid_matches: WORKS,
  remote_embedding_timeout_ms: differs('It is the time for all attempts together.'),
  remote_embedding_num_tries: differs('A model is asked three times at most.'),
  search_cutoff_ms: differs('It lowers the 30 seconds of a search and does not raise them.'),
  use_cache: differs('Not with joins, `_rand` or another engine. A write empties the cache.'),
  cache_ttl: differs('A request may name it too. No search gets a reply that is older.'),
  conversation: WORKS,
  conversation_id: WORKS,
  conversation_model_id: WORKS,
  conversation_stream: WORKS,
  nl_query: differs('A key for pages needs a scoped key that fixes `nl_model_id`.'),
  nl_model_id: WORKS,
  nl_query_debug: differs('Keys for pages get no `llm_response`.'),
  nl_query_prompt_cache_ttl: WORKS,
  enable_analytics: WORKS,
  analytics_tag: WORKS,
  limit_multi_searches: differs('It lowers the number for any key and raises it for the admin key alone.'),
}

/** Search parameters that Typesense does not have. */
export const OWN_PARAMETERS = [
  'fusion',
  'match_stems',
  'context_q',
  'rerank_model',
  'rerank_top',
  'rerank_timeout_ms',
]

export const FIELD_OPTIONS: Readonly<Record<string, Taken>> = {
  name: WORKS,
  type: WORKS,
  facet: WORKS,
  optional: WORKS,
  infix: WORKS,
  index: WORKS,
  store: WORKS,
  sort: WORKS,
  drop: WORKS,
  embed: differs('Models that have to be called make vectors in the background.'),
  num_dim: WORKS,
  vec_dist: WORKS,
  hnsw_params: harmless('Vectors are compared exactly.'),
  range_index: harmless('Numbers are compared in blocks.'),
  locale: differs('It chooses the stemmer. Words are found by their script, whatever the locale.'),
  stem: differs(
    'English by Porter; `da`, `de`, `es`, `fr`, `it`, `nl`, `no`, `pt`, `ru` and `sv` by Snowball. Any other `locale` is refused with it.',
  ),
  stem_dictionary: differs('A field keeps the words that the dictionary has when the field is made.'),
  reference: differs('Values are compared exactly, with case and accents.'),
  async_reference: WORKS,
  cascade_delete: WORKS,
  truncate_len: WORKS,
  token_separators: WORKS,
  symbols_to_index: WORKS,
}

/** Of `embed` and of its `model_config`. */
export const EMBEDDING_OPTIONS: Readonly<Record<string, Taken>> = {
  from: WORKS,
  model_config: WORKS,
  model_name: differs("`ts/...` models are served by one of Parley's own."),
  api_key: WORKS,
  url: WORKS,
  path: WORKS,
  indexing_prefix: WORKS,
  query_prefix: WORKS,
  project_id: WORKS,
  access_token: WORKS,
  client_id: WORKS,
  client_secret: WORKS,
  refresh_token: WORKS,
  service_account: WORKS,
  region: WORKS,
  document_task: WORKS,
  query_task: WORKS,
}

const IN_BACKGROUND = harmless('Vectors are made after the reply, in batches that the provider takes.')

/** Parameters of the routes of documents, import and export. */
export const DOCUMENT_PARAMETERS: Readonly<Record<string, Taken>> = {
  action: WORKS,
  dirty_values: WORKS,
  filter_by: WORKS,
  include_fields: WORKS,
  exclude_fields: WORKS,
  return_doc: WORKS,
  return_id: WORKS,
  ignore_not_found: WORKS,
  truncate: WORKS,
  batch_size: harmless('Parley chooses the size by bytes and by who is waiting.'),
  remote_embedding_batch_size: IN_BACKGROUND,
  remote_embedding_timeout_ms: IN_BACKGROUND,
  remote_embedding_num_tries: IN_BACKGROUND,
}

export const COLLECTION_OPTIONS: Readonly<Record<string, Taken>> = {
  name: WORKS,
  fields: WORKS,
  default_sorting_field: WORKS,
  enable_nested_fields: WORKS,
  token_separators: WORKS,
  symbols_to_index: WORKS,
  metadata: WORKS,
  synonym_sets: differs(
    'A set that is deleted leaves its collections without it. In Typesense their searches fail.',
  ),
  curation_sets: WORKS,
  num_memory_shards: harmless('A collection is one object.'),
}
