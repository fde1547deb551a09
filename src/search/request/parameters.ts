/**
 * Typesense's search parameters that are one plain value or a list of such: how each is read, its default and its bounds. All
 * come as text. Those with a grammar of their own have a file each: filter_by (filter/parse.ts), sort_by (sort.ts), facet_by and
 * facet_query (facet-request.ts), vector_query (vector-query.ts), pinned_hits (request.ts). Names that are neither here nor there
 * are ignored, as in Typesense.
 */
import { ApiError, detailed } from '../../errors'
import { splitOutside } from '../fragment'
import { CUTOFF_MS, DEFAULT_GROUP_LIMIT, MAX_FACET_VALUES } from '../limits'
import { insteadOf, passes, type Refused, refused } from '../refused'
import type { SearchParameters } from '../types'

/** Reads the value of a parameter. `text`: '' if the request does not have it. @throws ApiError 400 */
type Kind<Value> = (name: string, text: string) => Value

const wrong = (name: string, what: string): ApiError => new ApiError(400, `Parameter \`${name}\` ${what}`)

/** The parts of a list between commas; commas in brackets and backticks do not split. */
export const list = (text: string | undefined): string[] =>
  splitOutside(text ?? '', ',').filter((part) => part !== '')

/** @throws ApiError 400 */
export function unsigned(name: string, text: string): number {
  if (!/^\d{1,10}$/.test(text.trim())) throw wrong(name, 'must be an unsigned integer.')
  return Number(text)
}

/** A whole number from 0 on. Above `most` it counts as `most`. */
const whole =
  <Default>(otherwise: Default, most = Number.POSITIVE_INFINITY): Kind<number | Default> =>
  (name, text) =>
    text === '' ? otherwise : Math.min(most, unsigned(name, text))

/** A whole number from 1 on, refused above `most`. */
const positive =
  <Default>(otherwise: Default, most?: number): Kind<number | Default> =>
  (name, text) => {
    if (text === '') return otherwise
    if (most === undefined) {
      const value = unsigned(name, text)
      if (value === 0) throw wrong(name, 'must be greater than 0.')
      return value
    }
    const value = /^\d{1,10}$/.test(text.trim()) ? Number(text) : 0
    if (value < 1 || value > most) throw wrong(name, `must be an integer between 1 and ${most}.`)
    return value
  }

const wholes =
  (otherwise: string, most = Number.POSITIVE_INFINITY): Kind<number[]> =>
  (name, text) =>
    list(text || otherwise).map((part) => Math.min(most, unsigned(name, part)))

/** As in Typesense, whatever is neither `true` nor `false` is the default. */
const flag =
  (otherwise: boolean): Kind<boolean> =>
  (_name, text) =>
    otherwise ? text !== 'false' : text === 'true'

const flags: Kind<boolean[]> = (_name, text) => list(text || 'true').map((part) => part === 'true')

/** One of some words, by default the first. `also`: other spellings. */
const oneOf =
  <Word extends string>(words: readonly Word[], also: Record<string, Word> = {}): Kind<Word> =>
  (name, text) => {
    const found = text === '' ? words[0] : (words.find((word) => word === text) ?? also[text])
    if (found !== undefined) return found
    const quoted = words.map((word) => `\`${word}\``)
    throw wrong(name, `must be ${quoted.slice(0, -1).join(', ')} or ${quoted.at(-1)}.`)
  }

const eachOneOf = <Word extends string>(words: readonly Word[]): Kind<Word[]> => {
  const one = oneOf(words)
  return (name, text) => splitOutside(text || words[0]!, ',').map((part) => one(name, part))
}

const names: Kind<string[]> = (_name, text) => list(text)

const fraction =
  (otherwise: number): Kind<number> =>
  (name, text) => {
    const value = text.trim() === '' ? otherwise : Number(text)
    if (value >= 0 && value <= 1) return value
    throw wrong(name, 'must be a number between 0 and 1.')
  }

/** From which end words are dropped while too little is found. */
export interface DropTokensMode {
  direction: 'right_to_left' | 'left_to_right'
  /** queries of at most this many words drop words from both ends, however much is found; 0: none do */
  bothSides: number
  /** whether the caller chose it */
  given: boolean
}

const dropTokensMode: Kind<DropTokensMode> = (name, text) => {
  const match = /^(right_to_left|left_to_right|both_sides:(\d{1,3}))?$/.exec(text.trim())
  if (!match) {
    throw detailed(
      400,
      'Invalid format for drop tokens mode.',
      `Parameter \`${name}\` must be \`right_to_left\`, \`left_to_right\` or \`both_sides:N\`.`,
    )
  }
  return {
    direction: match[1] === 'left_to_right' ? 'left_to_right' : 'right_to_left',
    bothSides: Number(match[2] ?? 0),
    given: text !== '',
  }
}

/** Typesense's bound of `num_typos`. */
const MOST_TYPOS = 2
/** Typesense's default of max_extra_prefix and max_extra_suffix. */
const MOST_EXTRA = 32_767

const PARAMETERS = {
  // Which documents match.
  query_by_weights: wholes(''),
  prefix: flags,
  infix: eachOneOf(['off', 'always', 'fallback']),
  max_extra_prefix: whole(MOST_EXTRA),
  max_extra_suffix: whole(MOST_EXTRA),
  num_typos: wholes('2', MOST_TYPOS),
  min_len_1typo: whole(4),
  min_len_2typo: whole(7),
  enable_typos_for_alpha_numerical_tokens: flag(true),
  enable_typos_for_numerical_tokens: flag(true),
  typo_tokens_threshold: whole(1),
  drop_tokens_threshold: whole(1),
  drop_tokens_mode: dropTokensMode,
  exhaustive_search: flag(false),
  split_join_tokens: oneOf(['fallback', 'always', 'off'], { true: 'fallback', false: 'off' }),
  search_cutoff_ms: whole(CUTOFF_MS, CUTOFF_MS),
  validate_field_names: flag(true),
  // Their order.
  text_match_type: oneOf(['max_score', 'max_weight', 'sum_score']),
  prioritize_exact_match: flag(true),
  prioritize_token_position: flag(false),
  prioritize_num_matching_fields: flag(true),
  rerank_hybrid_matches: flag(false),
  rerank_top: positive(30, 100),
  rerank_timeout_ms: positive(500, 5_000),
  diversity_lambda: fraction(0.5),
  hidden_hits: names,
  filter_curated_hits: flag(false),
  // Vectors.
  remote_embedding_timeout_ms: positive(undefined),
  remote_embedding_num_tries: positive(undefined),
  // Named sets.
  enable_synonyms: flag(true),
  synonym_prefix: flag(false),
  demote_synonym_match: flag(false),
  enable_curations: flag(true),
  enable_overrides: flag(true),
  // The page.
  page: whole(1),
  per_page: whole(undefined),
  limit: whole(undefined),
  offset: whole(0),
  limit_hits: whole(Number.MAX_SAFE_INTEGER),
  group_by: names,
  group_limit: whole(DEFAULT_GROUP_LIMIT),
  group_missing_values: flag(true),
  max_facet_values: ((name, text) => {
    const value = whole(10)(name, text)
    if (value <= MAX_FACET_VALUES) return value
    throw wrong(
      name,
      `must be at most ${MAX_FACET_VALUES}. Ask for fewer values, those of a \`facet_query\`.`,
    )
  }) satisfies Kind<number>,
  facet_query_num_typos: whole(2),
  // Highlights.
  highlight_fields: names,
  highlight_full_fields: names,
  highlight_affix_num_tokens: whole(4),
  snippet_threshold: whole(30),
  enable_highlight_v1: flag(true),
  // Parley's own (docs/search.md).
  match_stems: flag(false),
  fusion: oneOf(['rank', 'score']),
}

/** The names of the parameters in the table. */
export type ParameterName = keyof typeof PARAMETERS
/** The value of a parameter. */
export type ValueOf<Name extends ParameterName> = ReturnType<(typeof PARAMETERS)[Name]>

/** @returns the value of a parameter, its default if the request does not have it @throws ApiError 400 */
export const parameter = <Name extends ParameterName>(params: SearchParameters, name: Name): ValueOf<Name> =>
  PARAMETERS[name](name, params[name] ?? '') as ValueOf<Name>

/**
 * @param alone how many values may stand for all fields
 * @throws ApiError 400 unless there is one value for each field of query_by
 */
export function requireOneForEach(
  what: string,
  name: string,
  values: readonly unknown[],
  queryBy: readonly string[],
  alone?: number,
): void {
  if (queryBy.length === 0 || values.length === alone || values.length === queryBy.length) return
  throw new ApiError(400, `Number of ${what} in \`${name}\` does not match number of \`query_by\` fields.`)
}

const PERSONAL = refused('Parley does not personalize searches.')

/**
 * Parameters that would change the results and that Parley does not have. The tests list what becomes of all others
 * (test/search/typesense-parameters.ts).
 */
export const REFUSED_PARAMETERS: Readonly<Record<string, Refused>> = {
  pre_segmented_query: refused('Parley segments queries as it segments documents.', 'false'),
  voice_query: refused('Parley does not transcribe speech.'),
  nl_query: refused('Unions, conversations and assistants take no queries in plain language.', 'false'),
  personalization_user_id: PERSONAL,
  personalization_model_id: PERSONAL,
  personalization_type: PERSONAL,
  personalization_user_field: PERSONAL,
  personalization_item_field: PERSONAL,
  personalization_event_name: PERSONAL,
  personalization_n_events: PERSONAL,
}

const REFUSED = Object.entries(REFUSED_PARAMETERS)

/**
 * Refuses parameters by name. A value that asks for what Parley does anyway passes, and so does a list of such values.
 * @throws ApiError 400
 */
export function requireSupported(params: SearchParameters): void {
  for (const [name, refusal] of REFUSED) {
    const given = params[name]
    if (!given || given.split(',').every((value) => passes(refusal, value.trim()))) continue
    throw new ApiError(400, `Parameter \`${name}\` is not supported. ${insteadOf(refusal)}`)
  }
}
