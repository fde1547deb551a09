/**
 * The names of all search parameters: those of Typesense 30 and Parley's own. On Typesense's wire an unknown name is
 * ignored, as there. Parley's own routes refuse it, because a search whose filter is mistyped would find everything.
 */
import { once } from '../../once.ts'

/** The tests compare it with what becomes of each parameter (test/search/typesense-parameters.ts). */
export const PARAMETER_NAMES = once(
  () =>
    new Set(
      `
    analytics_tag cache_ttl context_q conversation conversation_id conversation_model_id
    conversation_stream curation_sets curation_tags demote_synonym_match diversity_lambda
    drop_tokens_mode drop_tokens_threshold enable_analytics enable_curations enable_highlight_v1
    enable_lazy_filter enable_overrides enable_synonyms enable_typos_for_alpha_numerical_tokens
    enable_typos_for_numerical_tokens exclude_fields exhaustive_search facet_by facet_query
    facet_query_num_typos facet_return_parent facet_sample_percent facet_sample_slope
    facet_sample_threshold facet_strategy filter_by filter_curated_hits fusion group_by group_limit
    group_missing_values hidden_hits highlight_affix_num_tokens highlight_end_tag highlight_fields
    highlight_full_fields highlight_start_tag include_fields infix limit limit_hits limit_multi_searches
    match_stems max_candidates max_extra_prefix max_extra_suffix max_facet_values
    max_filter_by_candidates min_len_1typo min_len_2typo nl_model_id nl_query nl_query nl_query_debug
    nl_query_prompt_cache_ttl num_typos offset override_tags page per_page personalization_event_name
    personalization_item_field personalization_model_id personalization_n_events personalization_type
    personalization_user_field personalization_user_id pinned_hits pre_segmented_query prefix preset
    prioritize_exact_match prioritize_num_matching_fields prioritize_token_position q query_by
    query_by_weights rank_tokens_by remote_embedding_num_tries remote_embedding_timeout_ms
    rerank_hybrid_matches rerank_model rerank_timeout_ms rerank_top search_cutoff_ms snippet_threshold
    sort_by split_join_tokens stopwords synonym_num_typos synonym_prefix synonym_sets text_match_type
    typo_tokens_threshold use_cache validate_field_names vector_query voice_query
  `
        .trim()
        .split(/\s+/),
    ),
)
