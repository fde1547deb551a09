/** What Parley does with each of Typesense's parameters and options, and the tables of docs/typesense.md that tell it. */
import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { COMMON_PARAMETERS } from '../../src/api/http/body'
import { REFUSED_OF_DOCUMENTS } from '../../src/api/typesense/documents'
import { nearest } from '../../src/lib/nearest'
import type { Refused } from '../../src/search/refused'
import { REFUSED_PARAMETERS, requireSupported } from '../../src/search/request/parameters'
import { REFUSED_OF_COLLECTIONS, REFUSED_OF_EMBEDDINGS } from '../../src/search/schema/field'
import { parseSchema } from '../../src/search/schema/schema'
import {
  COLLECTION_OPTIONS,
  DOCUMENT_PARAMETERS,
  EMBEDDING_OPTIONS,
  FIELD_OPTIONS,
  OWN_PARAMETERS,
  PARAMETERS,
  type Taken,
} from './typesense-parameters'

/** What Typesense 30 reads from a search request. */
const RELEASE_30 =
  `num_typos min_len_1typo min_len_2typo prefix drop_tokens_threshold typo_tokens_threshold filter_by q
query_by query_by_weights sort_by analytics_tag facet_by facet_query facet_query_num_typos max_facet_values
facet_strategy facet_return_parent vector_query remote_embedding_timeout_ms remote_embedding_num_tries group_by
group_limit group_missing_values limit_hits per_page page offset limit rank_tokens_by include_fields exclude_fields
pinned_hits hidden_hits enable_curations filter_curated_hits enable_synonyms demote_synonym_match max_candidates infix
max_extra_prefix max_extra_suffix snippet_threshold highlight_affix_num_tokens highlight_full_fields highlight_fields
highlight_start_tag highlight_end_tag prioritize_exact_match prioritize_token_position pre_segmented_query
search_cutoff_ms exhaustive_search split_join_tokens text_match_type enable_highlight_v1 facet_sample_percent
facet_sample_threshold facet_sample_slope conversation conversation_id conversation_model_id drop_tokens_mode
prioritize_num_matching_fields curation_tags voice_query enable_typos_for_numerical_tokens
enable_typos_for_alpha_numerical_tokens enable_lazy_filter max_filter_by_candidates synonym_prefix synonym_num_typos
synonym_sets enable_analytics rerank_hybrid_matches validate_field_names personalization_user_id
personalization_model_id personalization_type personalization_user_field personalization_item_field
personalization_event_name personalization_n_events diversity_lambda preset stopwords use_cache cache_ttl nl_query
nl_model_id`.split(/\s+/)

/** What the official client's types name, less what it does not send as a parameter. */
const ofClient = (): string[] => {
  const types = readFileSync('node_modules/typesense/lib/Typesense/Types.d.ts', 'utf8')
  const [, body = ''] = /interface SearchParams<[\s\S]*?> \{\n([\s\S]*?)\n\}/.exec(types) ?? []
  const names = [...body.matchAll(/^ {4}"?([\w-]+)"?\?:/gm)].map(([, name]) => name!)
  return names.filter((name) => !name.startsWith('x-typesense-') && name !== 'streamConfig')
}

test('every parameter of Typesense has its place', () => {
  expect(ofClient().length).toBeGreaterThan(60)
  const missing = [...RELEASE_30, ...ofClient()].filter(
    (name) => !Object.hasOwn(PARAMETERS, name) && !Object.hasOwn(REFUSED_PARAMETERS, name),
  )
  expect(missing).toEqual([])
})

test('no parameter looks like a mistyped one', () => {
  const own = ['question', 'model', 'collections', 'searches', 'replaces', 'files', 'followups', 'stream']
  const names = [...Object.keys(PARAMETERS), ...Object.keys(REFUSED_PARAMETERS), ...OWN_PARAMETERS]
  const known = [...COMMON_PARAMETERS, ...own]
  const mistaken = names.filter((name) => !known.includes(name) && nearest(name, known) !== undefined)
  expect(mistaken).toEqual([])
})

describe('what is not implemented', () => {
  const refusals = Object.entries(REFUSED_PARAMETERS).map(([name, { unless }]) => ({ name, unless }))

  test.each(refusals)('$name is refused by name', ({ name, unless }) => {
    expect(() => requireSupported({ q: 'a', [name]: 'something' })).toThrow(
      `Parameter \`${name}\` is not supported.`,
    )
    for (const value of unless) requireSupported({ q: 'a', [name]: value })
  })

  test('a list passes if each of its values does', () => {
    requireSupported({ pre_segmented_query: 'false,false' })
    expect(() => requireSupported({ pre_segmented_query: 'false,true' })).toThrow('Parley segments')
  })

  test('an option of a schema is refused by name', () => {
    const schema = (field: object, more: object = {}) => ({
      name: 'books',
      fields: [{ name: 'title', type: 'string', ...field }],
      ...more,
    })
    expect(() => parseSchema(schema({}, { voice_query_model: { model_name: 'a' } }))).toThrow(
      'The option `voice_query_model`',
    )
    parseSchema(
      schema({ truncate_len: 100, infix: false, stem_dictionary: '', symbols_to_index: [], locale: 'de' }),
    )
    parseSchema(schema({}, { synonym_sets: [], curation_sets: [], metadata: {} }))
    const embedding = (embed: object, config: object) =>
      schema(
        {
          name: 'vector',
          type: 'float[]',
          embed: { from: ['title'], model_config: { model_name: 'ts/e5-small', ...config }, ...embed },
        },
        {},
      )
    expect(() => parseSchema(embedding({ mapping: ['a'] }, {}))).toThrow(
      'The option `mapping` of the field `vector`',
    )
    expect(() => parseSchema(embedding({}, { personalization_type: 'recommendation' }))).toThrow(
      'The option `personalization_type` of the field `vector`',
    )
  })
})

const DOCUMENT = 'docs/typesense.md'
const MARKS = ['<!-- made by test/search/parameters.unit.test.ts -->\n', '<!-- end -->'] as const

type Taking = Readonly<Record<string, Taken>>
type Row = readonly [name: string, note: string]

const those = (taking: Taking, is: Taken['is']): Row[] =>
  Object.entries(taking).flatMap(([name, taken]): Row[] =>
    taken.is === is ? [[name, taken.is === 'works' ? '' : taken.why]] : [],
  )

const refusedOf = (refusals: Readonly<Record<string, Refused>>): Row[] =>
  Object.entries(refusals).map(([name, { why, unless }]) => {
    const values = unless.filter(Boolean).map((value) => `\`${value}\``)
    return [name, values.length > 0 ? `${why} Accepted: ${values.join(', ')}.` : why]
  })

/** A table as the formatter sets it: columns as wide as their longest cell. */
function table(given: Row[]): string[] {
  const cells = given.map(([name, note]): Row => [`\`${name}\``, note])
  const widths = [0, 1].map((column) => Math.max(4, ...cells.map((row) => row[column]!.length)))
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column]!)).join(' | ')} |`
  return ['', ...[['Name', 'Note'], widths.map((width) => '-'.repeat(width)), ...cells].map(line)]
}

const titled = (title: string, given: Row[]): string[] =>
  given.length === 0 ? [] : ['', title, ...table(given)]

const works = (taking: Taking): string =>
  `These work as in Typesense: ${those(taking, 'works')
    .map(([name]) => `\`${name}\``)
    .join(', ')}.`

const options = (what: string, taking: Taking, refusals: Readonly<Record<string, Refused>>): string[] => [
  `## Which ${what} are supported?`,
  '',
  works(taking),
  ...titled('Different:', those(taking, 'differs')),
  ...titled('Accepted, without an effect on results:', those(taking, 'harmless')),
  ...titled('Refused with a 400:', refusedOf(refusals)),
]

const sections = (): string =>
  [
    '## Which search parameters are supported?',
    '',
    works(PARAMETERS),
    ...titled('These differ:', those(PARAMETERS, 'differs')),
    '',
    '## Which search parameters change nothing?',
    '',
    'They are accepted, because without them the results would be the same.',
    ...table(those(PARAMETERS, 'harmless')),
    '',
    '## Which search parameters are refused?',
    '',
    "They get a 400 that names them. Names that are not Typesense's are ignored, as they are there.",
    ...table(refusedOf(REFUSED_PARAMETERS)),
    '',
    ...options('options of fields', FIELD_OPTIONS, {}),
    '',
    ...options('options of embeddings', EMBEDDING_OPTIONS, REFUSED_OF_EMBEDDINGS),
    '',
    ...options('options of collections', COLLECTION_OPTIONS, REFUSED_OF_COLLECTIONS),
    '',
    ...options('parameters of documents', DOCUMENT_PARAMETERS, REFUSED_OF_DOCUMENTS),
  ].join('\n')

test('docs/typesense.md has these tables', () => {
  const [begin, end] = MARKS
  const text = readFileSync(DOCUMENT, 'utf8')
  const [before, rest = ''] = text.split(begin)
  const after = rest.slice(rest.indexOf(end))
  const wanted = `${before}${begin}\n${sections()}\n\n${after}`
  if (process.env.PARAMETERS === 'write') writeFileSync(DOCUMENT, wanted)
  expect(readFileSync(DOCUMENT, 'utf8'), 'run PARAMETERS=write vitest run test/search/parameters').toBe(
    wanted,
  )
})
