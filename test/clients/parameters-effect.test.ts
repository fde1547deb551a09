/**
 * Each search parameter does something, or stands in docs/typesense.md as harmless: one search without it, one with it,
 * over HTTP.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import { PARAMETERS } from '../search/typesense-parameters'
import { client, request, unique } from './harness'

const name = unique('effects')

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'text', type: 'string' },
  { name: 'code', type: 'string', infix: true },
  { name: 'brand', type: 'string', facet: true, optional: true },
  { name: 'price', type: 'int32' },
  { name: 'seller', type: 'object' },
  { name: 'seller.name', type: 'string', facet: true },
  { name: 'vector', type: 'float[]', num_dim: 2 },
]

const product = (
  id: string,
  title: string,
  text: string,
  [code, brand, price]: [string, string | undefined, number],
) => ({
  id,
  title,
  text,
  code,
  ...(brand && { brand }),
  price,
  seller: { name: price > 20 ? 'North' : 'South', rank: price },
  vector: [price, 30 - price],
})

const LONG =
  'a long row of plain words which leads at last to the lantern that someone has lost in the deep snow'

const PRODUCTS = [
  product('0', 'lantern', 'stove and tent', ['XAB100', 'Omega', 10]),
  product('1', 'tent with lantern', LONG, ['XAB101', 'Omega', 20]),
  product('2', 'stove', 'lantern lantern', ['ABX102', 'Other', 30]),
  product('3', 'lanterns', 'nothing', ['ABC12', undefined, 25]),
  product('4', 'sunglasses 12345', 'a winter tent', ['QQQ999', undefined, 5]),
  product('5', 'rain tent stove', 'camping mat', ['ZZZ1', 'Other', 15]),
]

type Params = Record<string, string>

const LANTERN: Params = { q: 'lantern', query_by: 'title,text' }
const ALL: Params = { q: '*' }
const FACETS: Params = { ...ALL, facet_by: 'brand,seller.name' }
const TYPO: Params = { q: 'lantrn', query_by: 'title' }
const TWO: Params = { q: 'rain lantern', query_by: 'title' }
const CODE: Params = { q: 'ab10', query_by: 'code', infix: 'always', num_typos: '0' }
const NEAR: Params = { ...LANTERN, vector_query: 'vector:([1,1], k:2)' }
const TAGGED: Params = { ...ALL, curation_tags: 'mixed' }
const PINNED: Params = { ...LANTERN, filter_by: 'price:>20', pinned_hits: '5:1' }
const set = `${name}-set`

/** By name: a search, and the value that changes its reply. */
const EFFECTS: Readonly<Record<string, [search: Params, value: string]>> = {
  q: [LANTERN, 'stove'],
  query_by: [LANTERN, 'text'],
  query_by_weights: [{ ...LANTERN, sort_by: '_text_match:desc' }, '1,9'],
  prefix: [{ ...LANTERN, q: 'lant', num_typos: '0' }, 'false'],
  infix: [{ ...CODE, infix: 'off' }, 'always'],
  max_extra_prefix: [CODE, '0'],
  max_extra_suffix: [{ ...CODE, q: 'xab', prefix: 'false' }, '0'],
  stopwords: [{ q: 'tent rain', query_by: 'title', drop_tokens_threshold: '0' }, set],
  preset: [ALL, set],
  validate_field_names: [{ ...LANTERN, query_by: 'title,nothing' }, 'false'],
  filter_by: [ALL, 'price:>20'],
  sort_by: [ALL, 'price:asc'],
  facet_by: [ALL, 'brand'],
  facet_query: [{ ...FACETS, per_page: '10' }, 'brand:om'],
  facet_query_num_typos: [{ ...FACETS, facet_query: 'brand:omgea' }, '0'],
  facet_return_parent: [FACETS, 'seller.name'],
  max_facet_values: [FACETS, '1'],
  page: [{ ...ALL, per_page: '2' }, '2'],
  per_page: [ALL, '1'],
  offset: [ALL, '1'],
  limit: [ALL, '1'],
  limit_hits: [ALL, '1'],
  group_by: [ALL, 'brand'],
  group_limit: [{ ...ALL, group_by: 'brand' }, '1'],
  group_missing_values: [{ ...ALL, group_by: 'brand' }, 'false'],
  include_fields: [ALL, 'title'],
  exclude_fields: [ALL, 'title'],
  highlight_fields: [LANTERN, 'title'],
  highlight_full_fields: [LANTERN, 'text'],
  highlight_affix_num_tokens: [{ ...LANTERN, snippet_threshold: '5' }, '1'],
  highlight_start_tag: [LANTERN, '['],
  highlight_end_tag: [LANTERN, ']'],
  enable_highlight_v1: [LANTERN, 'false'],
  snippet_threshold: [LANTERN, '5'],
  num_typos: [TYPO, '0'],
  min_len_1typo: [TYPO, '9'],
  min_len_2typo: [{ ...TYPO, q: 'lantrnn', prefix: 'false' }, '9'],
  typo_tokens_threshold: [TYPO, '0'],
  split_join_tokens: [
    { q: 'lan tern', query_by: 'title', drop_tokens_threshold: '0', num_typos: '0' },
    'off',
  ],
  enable_typos_for_numerical_tokens: [{ q: '12354', query_by: 'title' }, 'false'],
  enable_typos_for_alpha_numerical_tokens: [{ q: 'xba100', query_by: 'code' }, 'false'],
  exhaustive_search: [{ ...LANTERN, q: 'tent stove' }, 'true'],
  drop_tokens_threshold: [TWO, '0'],
  drop_tokens_mode: [{ ...TWO, q: 'rain sunglasses' }, 'left_to_right'],
  text_match_type: [{ ...LANTERN, q: 'lantern tent' }, 'max_weight'],
  prioritize_exact_match: [LANTERN, 'false'],
  prioritize_token_position: [{ ...LANTERN, query_by: 'title' }, 'true'],
  prioritize_num_matching_fields: [LANTERN, 'false'],
  pinned_hits: [ALL, '0:1'],
  hidden_hits: [ALL, '0'],
  filter_curated_hits: [PINNED, 'true'],
  enable_curations: [TAGGED, 'false'],
  enable_overrides: [TAGGED, 'false'],
  curation_tags: [ALL, 'mixed'],
  override_tags: [ALL, 'mixed'],
  diversity_lambda: [TAGGED, '1'],
  curation_sets: [LANTERN, `${set}-more`],
  synonym_sets: [{ ...LANTERN, q: 'lamp' }, set],
  enable_synonyms: [{ ...LANTERN, q: 'lamp', synonym_sets: set }, 'false'],
  synonym_prefix: [{ ...LANTERN, q: 'lam', synonym_sets: set, num_typos: '0' }, 'true'],
  synonym_num_typos: [{ ...LANTERN, q: 'lamq', synonym_sets: set, num_typos: '0' }, '1'],
  demote_synonym_match: [{ ...LANTERN, q: 'stove', query_by: 'title', synonym_sets: set }, 'true'],
  vector_query: [ALL, 'vector:([1,1], k:2)'],
  rerank_hybrid_matches: [NEAR, 'true'],
  search_cutoff_ms: [ALL, 'soon'],
}

/** What takes a model, several searches or a log to show. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  remote_embedding_timeout_ms: 'embedding.test.ts',
  remote_embedding_num_tries: 'embedding.test.ts',
  conversation: 'search.test.ts',
  conversation_id: 'search.test.ts',
  conversation_model_id: 'search.test.ts',
  conversation_stream: 'stream.test.ts',
  nl_query: 'nl-search.test.ts',
  nl_model_id: 'nl-search.test.ts',
  nl_query_debug: 'nl-search.test.ts',
  nl_query_prompt_cache_ttl: 'nl-search.test.ts',
  enable_analytics: 'analytics.test.ts',
  analytics_tag: 'analytics.test.ts',
  use_cache: 'use-cache.test.ts',
  cache_ttl: 'use-cache.test.ts',
  limit_multi_searches: 'multi-search.test.ts',
}

beforeAll(async () => {
  await request('PUT', `/curation_sets/${set}`, {
    items: [
      {
        id: 'mix',
        rule: { tags: ['mixed'] },
        diversity: { similarity_metric: [{ field: 'seller.name', method: 'equality' }] },
      },
    ],
  })
  await request('PUT', `/curation_sets/${set}-more`, {
    items: [{ id: 'hide', rule: { query: 'lantern', match: 'exact' }, excludes: [{ id: '0' }] }],
  })
  await request('PUT', `/synonym_sets/${set}`, {
    items: [
      { id: 'light', root: 'lamp', synonyms: ['lantern'] },
      { id: 'heat', root: 'stove', synonyms: ['lantern'] },
    ],
  })
  await request('PUT', `/stopwords/${set}`, { stopwords: ['rain'] })
  await request('PUT', `/presets/${set}`, { value: { per_page: 1 } })
  const made = await request('POST', '/collections', {
    name,
    fields: FIELDS,
    enable_nested_fields: true,
    curation_sets: [set],
  })
  expect(made.status, JSON.stringify(made.body)).toBe(201)
  await client().collections(name).documents().import(PRODUCTS)
})

/** The reply without what differs each time. */
async function replyTo(params: Params): Promise<string> {
  const { body } = await request(
    'GET',
    `/collections/${name}/documents/search?${new URLSearchParams(params)}`,
  )
  const { search_time_ms: _, request_params: __, ...rest } = body as Record<string, unknown>
  return JSON.stringify(rest)
}

describe('with an effect', () => {
  test.each(Object.entries(EFFECTS))('%s', async (parameter, [search, value]) => {
    expect(await replyTo({ ...search, [parameter]: value })).not.toBe(await replyTo(search))
  })

  test('are all parameters that the table does not call harmless', () => {
    const listed = Object.entries(PARAMETERS).filter(([, { is }]) => is !== 'harmless')
    const shown = [...Object.keys(EFFECTS), ...Object.keys(ELSEWHERE)]
    expect(shown.toSorted()).toEqual(listed.map(([parameter]) => parameter).toSorted())
  })
})

describe('without an effect', () => {
  const harmless = Object.entries(PARAMETERS).flatMap(([parameter, { is }]) =>
    is === 'harmless' ? [parameter] : [],
  )

  test.each(harmless)('%s', async (parameter) => {
    for (const search of [LANTERN, FACETS, TYPO, TWO]) {
      expect(await replyTo({ ...search, [parameter]: '3' })).toBe(await replyTo(search))
    }
  })
})
