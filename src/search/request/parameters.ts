/**
 * Typesense's search parameters, those of release 30, one by one: what Parley does with each. A parameter that would
 * change the results and is not implemented is refused by name. A test writes the table in docs/typesense.md from this.
 */
import { ApiError } from '../../errors'
import { differs, harmless, insteadOf, passes, refused, type Standing, WORKS } from '../standing'
import type { SearchParameters } from '../types'

const EXACT_COUNTS = harmless('Facets are always counted exactly.')
const ALL_MATCHES = harmless('A search always looks at every match.')
const PERSONAL = refused('Parley does not personalize searches.')
const NL_QUERY = harmless('It belongs to `nl_query`, which is refused.')

export const SEARCH_PARAMETERS: Readonly<Record<string, Standing>> = {
  q: WORKS,
  query_by: WORKS,
  query_by_weights: WORKS,
  prefix: WORKS,
  infix: refused('Fields have no infix index.', 'off'),
  max_extra_prefix: harmless('It belongs to `infix`, which is refused.'),
  max_extra_suffix: harmless('It belongs to `infix`, which is refused.'),
  pre_segmented_query: refused('Parley segments queries as it segments documents.', 'false'),
  stopwords: differs('A query of stopwords alone is searched as it is.'),
  preset: differs('An unknown preset is a 404. Typesense ignores it.'),
  filter_by: WORKS,
  max_filter_by_candidates: ALL_MATCHES,
  enable_lazy_filter: harmless('SQLite decides how a filter is run.'),
  validate_field_names: refused('A field name that the schema lacks is always an error.', 'true'),
  sort_by: differs('`_eval`, `_text_match`, `_group_found`, places and fields. Other functions are refused.'),
  rank_tokens_by: harmless('No candidate word is left out.'),
  facet_by: WORKS,
  facet_query: differs('It is matched without typos.'),
  facet_query_num_typos: refused('A facet query is matched without typos.', '0', '2'),
  facet_return_parent: refused('Facets return values of the field alone.'),
  facet_strategy: EXACT_COUNTS,
  facet_sample_percent: EXACT_COUNTS,
  facet_sample_slope: EXACT_COUNTS,
  facet_sample_threshold: EXACT_COUNTS,
  max_facet_values: differs('At most 10,000.'),
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
  num_typos: differs('The largest number counts for all fields.'),
  min_len_1typo: WORKS,
  min_len_2typo: WORKS,
  typo_tokens_threshold: WORKS,
  enable_typos_for_numerical_tokens: harmless('Numbers are never corrected.'),
  enable_typos_for_alpha_numerical_tokens: WORKS,
  max_candidates: ALL_MATCHES,
  exhaustive_search: ALL_MATCHES,
  split_join_tokens: refused('Words are neither split nor joined.', 'off', 'false', 'fallback', 'true'),
  drop_tokens_threshold: WORKS,
  drop_tokens_mode: refused(
    'Below `drop_tokens_threshold` any informative word of the query is enough.',
    'right_to_left',
  ),
  text_match_type: refused('BM25 scores text matches.', 'max_score'),
  prioritize_exact_match: refused('BM25 scores text matches.', 'true'),
  prioritize_token_position: refused('BM25 scores text matches.', 'false'),
  prioritize_num_matching_fields: refused('BM25 scores text matches.', 'true'),
  pinned_hits: WORKS,
  hidden_hits: WORKS,
  filter_curated_hits: WORKS,
  enable_curations: harmless('There are no curation sets.'),
  enable_overrides: harmless('There are no curation sets.'),
  curation_tags: harmless('There are no curation sets.'),
  override_tags: harmless('There are no curation sets.'),
  diversity_lambda: harmless('There are no curation sets.'),
  enable_synonyms: harmless('There are no synonym sets.'),
  synonym_sets: refused('There are no synonym sets.'),
  synonym_prefix: harmless('There are no synonym sets.'),
  synonym_num_typos: harmless('There are no synonym sets.'),
  demote_synonym_match: harmless('There are no synonym sets.'),
  vector_query: WORKS,
  rerank_hybrid_matches: WORKS,
  remote_embedding_timeout_ms: harmless(
    'A question that no model has embedded in time is searched by its words.',
  ),
  remote_embedding_num_tries: harmless(
    'A question that no model has embedded in time is searched by its words.',
  ),
  search_cutoff_ms: differs('It lowers the 30 seconds of a search and does not raise them.'),
  use_cache: harmless('Every search is run.'),
  cache_ttl: harmless('Every search is run.'),
  conversation: WORKS,
  conversation_id: WORKS,
  conversation_model_id: WORKS,
  conversation_stream: WORKS,
  voice_query: refused('Parley does not transcribe speech.'),
  nl_query: refused('Parley does not translate queries into filters.', 'false'),
  nl_model_id: NL_QUERY,
  nl_query_debug: NL_QUERY,
  nl_query_prompt_cache_ttl: NL_QUERY,
  enable_analytics: harmless('Searches are not recorded.'),
  analytics_tag: harmless('Searches are not recorded.'),
  personalization_user_id: PERSONAL,
  personalization_model_id: PERSONAL,
  personalization_type: PERSONAL,
  personalization_user_field: PERSONAL,
  personalization_item_field: PERSONAL,
  personalization_event_name: PERSONAL,
  personalization_n_events: PERSONAL,
  limit_multi_searches: differs('It lowers the number for any key and raises it for the admin key alone.'),
}

const REFUSED = Object.entries(SEARCH_PARAMETERS).filter(([, { is }]) => is === 'refused')

/**
 * Refuses what would change the results and is not implemented. A value that asks for what Parley does anyway passes,
 * and so does a list of such values. Names that are not Typesense's are ignored, as they are there.
 * @throws ApiError 400
 */
export function requireSupported(params: SearchParameters): void {
  for (const [name, standing] of REFUSED) {
    const given = params[name]
    if (!given || given.split(',').every((value) => passes(standing, value.trim()))) continue
    throw new ApiError(400, `Parameter \`${name}\` is not supported. ${insteadOf(standing)}`)
  }
}
