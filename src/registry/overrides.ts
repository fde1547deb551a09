/**
 * What a request may change of its assistant for one turn, by the names of the AI Chat Protocol's overrides. Other
 * protocols use the names too. This file imports nothing: scripts/openapi.mjs reads it as it is.
 */

/** Those that can only ask for less, or for another tone: every visitor may use them. */
export const SAFE_OVERRIDES = [
  'top',
  'retrieval_mode',
  'vector_fields',
  'include_category',
  'exclude_category',
  'minimum_search_score',
  'suggest_followup_questions',
  'language',
  'temperature',
  'top_p',
  'seed',
  'frequency_penalty',
  'presence_penalty',
] as const

/** All that an assistant can allow. The others look further into documents, cost more, or rewrite the prompt. */
export const OVERRIDES = [
  ...SAFE_OVERRIDES,
  'filter_by',
  'semantic_ranker',
  'max_response_tokens',
  'reasoning_effort',
  'prompt_template',
  'tools',
] as const

export type Override = (typeof OVERRIDES)[number]
