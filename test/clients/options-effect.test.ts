/**
 * Each option of a schema and each parameter of documents does something, is refused by name, or stands in
 * docs/typesense.md as harmless: once without it, once with it, over HTTP.
 */
import { beforeAll, describe, expect, test } from 'vitest'
import {
  COLLECTION_OPTIONS,
  DOCUMENT_PARAMETERS,
  EMBEDDING_OPTIONS,
  FIELD_OPTIONS,
  type Taken,
} from '../search/typesense-parameters'
import { request, unique } from './harness'

type Json = Record<string, unknown>
/** What is asked of a collection: the path after its name, with the method if it is not GET. */
type Probe = readonly [path: string, method?: string, body?: unknown]

interface Case {
  /** the field in question; the option is added to it, or to the collection */
  field?: Json
  /** fields beside it */
  others?: Json[]
  documents?: Json[]
  value: unknown
  probe: Probe
  /** of the collection, in both cases */
  schema?: Json
}

const WORD = { name: 'f', type: 'string' }
const WORDS = [
  { id: '1', f: 'Running shoes' },
  { id: '2', f: 'half-time' },
]

const search = (parameters: Record<string, string>): Probe => [
  `/documents/search?${new URLSearchParams({ q: '*', ...parameters })}`,
]
const word = (q: string, more = {}): Probe =>
  search({ q, query_by: 'f', prefix: 'false', num_typos: '0', ...more })

/** The reply to a probe of a new collection, or what refused it, without what differs each time. */
async function outcome(
  schema: Json,
  documents: Json[],
  [path, method = 'GET', body]: Probe,
): Promise<string> {
  const name = (schema.name as string | undefined) ?? unique('option')
  const made = await request('POST', '/collections', { ...schema, name })
  if (made.status !== 201) return `${made.status} ${made.text}`
  const lines = documents.map((document) => JSON.stringify(document)).join('\n')
  const imported = await request('POST', `/collections/${name}/documents/import`, lines)
  const probed = await request(method, `/collections/${name}${path}`, body)
  const text = `${imported.text}\n${probed.status} ${probed.text}`
  return text.replaceAll(name, 'NAME').replace(/"(search_time_ms|created_at)":\d+/g, '')
}

const target = unique('target')
const otherTarget = unique('target')
const dictionary = unique('dictionary')
const set = unique('set')
const vector = { name: 'f', type: 'float[]', num_dim: 2 }
const VECTORS = [
  { id: '1', f: [1, 0] },
  { id: '2', f: [3, 4] },
]
const near = search({ vector_query: 'f:([0.5, 0.5])' })
const referring = { name: 'f', type: 'string', optional: true }

const FIELDS: Record<string, Case> = {
  name: { field: WORD, value: 'other', probe: word('shoes') },
  type: { field: WORD, value: 'int32', probe: search({ filter_by: 'f:>1' }) },
  facet: { field: WORD, value: true, probe: search({ facet_by: 'f' }) },
  optional: { field: WORD, documents: [{ id: '1' }], value: true, probe: search({}) },
  infix: { field: WORD, value: true, probe: word('unnin', { infix: 'always' }) },
  index: { field: WORD, value: false, probe: word('shoes') },
  store: { field: WORD, value: false, probe: ['/documents/1'] },
  sort: { field: WORD, value: true, probe: search({ sort_by: 'f:asc' }) },
  embed: {
    field: { name: 'f', type: 'float[]', optional: true },
    others: [{ name: 'text', type: 'string' }],
    documents: [{ id: '1', text: 'a lantern' }],
    value: { from: ['text'], model_config: { model_name: 'ts/all-MiniLM-L12-v2' } },
    probe: search({ q: 'lantern', query_by: 'f' }),
  },
  num_dim: {
    field: { name: 'f', type: 'float[]' },
    documents: VECTORS,
    value: 2,
    probe: near,
  },
  vec_dist: { field: vector, documents: VECTORS, value: 'ip', probe: near },
  locale: {
    field: { ...WORD, stem: true },
    documents: [{ id: '1', f: 'Die Häuser' }],
    value: 'de',
    probe: word('Haus'),
  },
  stem: { field: WORD, value: true, probe: word('run') },
  stem_dictionary: { field: WORD, value: dictionary, probe: word('walk') },
  reference: {
    field: referring,
    documents: [{ id: '1', f: 'nobody' }],
    value: `${target}.id`,
    probe: search({}),
  },
  async_reference: {
    field: { ...referring, reference: `${target}.id` },
    documents: [{ id: '1', f: 'nobody' }],
    value: true,
    probe: search({}),
  },
  truncate_len: { field: WORD, value: 3, probe: word('run') },
  token_separators: { field: WORD, value: ['-'], probe: word('time') },
  symbols_to_index: { field: WORD, value: ['-'], probe: word('halftime') },
}

const COLLECTIONS: Record<string, Case> = {
  name: { value: unique('named'), probe: [''] },
  fields: { value: [WORD, { name: 'n', type: 'int32', optional: true }], probe: [''] },
  default_sorting_field: {
    others: [{ name: 'n', type: 'int32' }],
    documents: [
      { id: '1', f: 'a', n: 9 },
      { id: '2', f: 'a', n: 1 },
    ],
    value: 'n',
    probe: search({}),
  },
  enable_nested_fields: {
    others: [{ name: 'o.n', type: 'int32', optional: true }],
    documents: [{ id: '1', f: 'a', o: { n: 1 } }],
    value: true,
    probe: search({ filter_by: 'o.n:1' }),
  },
  token_separators: { value: ['-'], probe: word('time') },
  symbols_to_index: { value: ['-'], probe: word('halftime') },
  metadata: { value: { made: 'here' }, probe: [''] },
  synonym_sets: { value: [set], probe: word('sneakers') },
  curation_sets: { value: [set], probe: word('shoes') },
  voice_query_model: { value: { model_name: 'ts/whisper/base.en' }, probe: [''] },
}

const EMBEDDINGS: Record<string, { model?: Json; option?: Json; says: RegExp }> = {
  from: { option: { from: ['nothing'] }, says: /embed\.from/ },
  model_config: { option: { model_config: 5 }, says: /model_config/ },
  model_name: { model: { model_name: 'nobody/nothing' }, says: /nobody/ },
  indexing_prefix: { model: { indexing_prefix: 5 }, says: /indexing_prefix/ },
  query_prefix: { model: { query_prefix: 5 }, says: /query_prefix/ },
  mapping: { option: { mapping: ['user'] }, says: /`mapping`/ },
  personalization_type: { model: { personalization_type: 'recommendation' }, says: /`personalization_type`/ },
}

/** What takes a provider, a second collection or an existing one to show. */
const ELSEWHERE = {
  drop: 'alter.worker.test.ts',
  cascade_delete: 'joins-cascades.worker.test.ts',
  api_key: 'embedding.test.ts',
  url: 'embedding.test.ts',
  path: 'embedding.test.ts',
}

/** What models of Google Cloud read (test/models/gcp-embedder.unit.test.ts). */
const OF_GCP = [
  ...['project_id', 'region', 'access_token', 'refresh_token', 'client_id', 'client_secret'],
  ...['service_account', 'document_task', 'query_task'],
]

const schemaOf = ({ field = WORD, others = [], schema = {} }: Case, more: Json): Json => ({
  ...schema,
  fields: [{ ...field, ...more }, ...others],
})

const shown = (taking: Readonly<Record<string, Taken>>): string[] =>
  Object.entries(taking).flatMap(([name, { is }]) => (is === 'harmless' ? [] : [name]))
const harmless = (taking: Readonly<Record<string, Taken>>): string[] =>
  Object.entries(taking).flatMap(([name, { is }]) => (is === 'harmless' ? [name] : []))

beforeAll(async () => {
  const fields = [{ name: 'f', type: 'string' }]
  for (const name of [target, otherTarget]) {
    expect((await request('POST', '/collections', { name, fields })).status).toBe(201)
  }
  await request('POST', `/stemming/dictionaries/import?id=${dictionary}`, '{"word":"running","root":"walk"}')
  await request('PUT', `/synonym_sets/${set}`, {
    items: [{ id: 'shoe', synonyms: ['shoes', 'sneakers'] }],
  })
  await request('PUT', `/curation_sets/${set}`, {
    items: [{ id: 'hide', rule: { query: 'shoes', match: 'exact' }, excludes: [{ id: '1' }] }],
  })
})

describe('an option of a field has an effect', () => {
  test.each(Object.entries(FIELDS))('%s', async (option, each) => {
    const { documents = WORDS, value, probe } = each
    const without = await outcome(schemaOf(each, {}), documents, probe)
    expect(await outcome(schemaOf(each, { [option]: value }), documents, probe)).not.toBe(without)
  })

  test('or is harmless', () => {
    const all = [...Object.keys(FIELDS), 'drop', 'cascade_delete']
    expect(all.toSorted()).toEqual(shown(FIELD_OPTIONS).toSorted())
  })

  const HARMLESS: Record<string, Case> = {
    hnsw_params: { field: vector, documents: VECTORS, value: { M: 2, ef_construction: 4 }, probe: near },
    range_index: {
      field: { name: 'f', type: 'int32' },
      documents: [{ id: '1', f: 3 }],
      value: true,
      probe: search({ filter_by: 'f:>1' }),
    },
  }
  test.each(Object.entries(HARMLESS))('without one: %s', async (option, each) => {
    const { documents = [], value, probe } = each
    const without = await outcome(schemaOf(each, {}), documents, probe)
    expect(without).toContain('\n200 ')
    expect(await outcome(schemaOf(each, { [option]: value }), documents, probe)).toBe(without)
  })

  test('and these are all that have none', () => {
    expect(Object.keys(HARMLESS).toSorted()).toEqual(harmless(FIELD_OPTIONS).toSorted())
  })
})

describe('an option of a collection has an effect', () => {
  test.each(Object.entries(COLLECTIONS))('%s', async (option, each) => {
    const { documents = WORDS, value, probe } = each
    const schema = schemaOf(each, {})
    const without = await outcome(schema, documents, probe)
    const changed = await outcome({ ...schema, [option]: value }, documents, probe)
    if (option === 'name') expect((await request('GET', `/collections/${value as string}`)).status).toBe(200)
    else expect(changed).not.toBe(without)
  })

  test('or is harmless', async () => {
    const all = Object.keys(COLLECTIONS).filter((name) => name !== 'voice_query_model')
    expect(all.toSorted()).toEqual(shown(COLLECTION_OPTIONS).toSorted())
    const without = await outcome(schemaOf({} as Case, {}), WORDS, word('shoes'))
    for (const option of harmless(COLLECTION_OPTIONS)) {
      const schema = { ...schemaOf({} as Case, {}), [option]: 4 }
      expect(await outcome(schema, WORDS, word('shoes'))).toBe(without)
    }
  })
})

describe('an option of an embedding has an effect', () => {
  const schema = ({ model, option }: { model?: Json; option?: Json }): Json => ({
    fields: [
      WORD,
      {
        name: 'v',
        type: 'float[]',
        embed: { from: ['f'], model_config: { model_name: 'ts/e5-small', ...model }, ...option },
      },
    ],
  })

  test.each(Object.entries(EMBEDDINGS))('%s', async (_, { says, ...each }) => {
    const refused = await outcome(schema(each), WORDS, search({}))
    expect(refused).toMatch(/^400 /)
    expect(refused).toMatch(says)
  })

  test('or is harmless', () => {
    const all = [...Object.keys(EMBEDDINGS), 'api_key', 'url', 'path', ...OF_GCP]
    const listed = [...shown(EMBEDDING_OPTIONS), 'mapping', 'personalization_type']
    expect(all.toSorted()).toEqual(listed.toSorted())
    expect(Object.keys(ELSEWHERE)).toEqual(expect.arrayContaining(['api_key', 'url', 'path']))
  })
})

const NUMBERS = {
  fields: [
    { name: 'f', type: 'string' },
    { name: 'n', type: 'int32', optional: true },
  ],
}
const BOTH = [
  { id: '1', f: 'one', n: 1 },
  { id: '2', f: 'two', n: 2 },
]
const ONE = JSON.stringify({ id: '1', f: 'again' })
const BAD = JSON.stringify({ id: '3', f: 'three', n: 'x' })

/** By name: requests, and the value that changes their replies. */
const DOCUMENTS: Record<string, [requests: Probe[], value: string]> = {
  action: [
    [
      ['/documents', 'POST', ONE],
      ['/documents/import', 'POST', ONE],
    ],
    'upsert',
  ],
  dirty_values: [
    [
      ['/documents', 'POST', BAD],
      ['/documents/import', 'POST', BAD],
      ['/documents/1', 'PATCH', { n: 'x' }],
      ['/documents?filter_by=n:1', 'PATCH', { n: 'x' }],
    ],
    'drop',
  ],
  filter_by: [
    [
      ['/documents', 'PATCH', { f: 'all' }],
      ['/documents', 'DELETE'],
      ['/documents/export', 'GET'],
    ],
    'n:2',
  ],
  include_fields: [
    [
      ['/documents/export', 'GET'],
      ['/documents/1', 'GET'],
    ],
    'f',
  ],
  exclude_fields: [
    [
      ['/documents/export', 'GET'],
      ['/documents/1', 'GET'],
    ],
    'f',
  ],
  return_doc: [
    [
      ['/documents/import', 'POST', ONE],
      ['/documents?filter_by=n:1', 'DELETE'],
    ],
    'true',
  ],
  return_id: [
    [
      ['/documents/import', 'POST', ONE],
      ['/documents?filter_by=n:1', 'DELETE'],
    ],
    'true',
  ],
  ignore_not_found: [[['/documents/9', 'DELETE']], 'true'],
  truncate: [[['/documents', 'DELETE']], 'true'],
}

const NOT_OF_DOCUMENTS: Record<string, Probe[]> = {
  batch_size: [
    ['/documents/import', 'POST', ONE],
    ['/documents/export', 'GET'],
    ['/documents?filter_by=n:>0', 'DELETE'],
  ],
  remote_embedding_batch_size: [['/documents/import', 'POST', ONE]],
  remote_embedding_timeout_ms: [['/documents/import', 'POST', ONE]],
  remote_embedding_num_tries: [['/documents/import', 'POST', ONE]],
}

const withParameter = ([path, ...rest]: Probe, name: string, value: string): Probe => [
  `${path}${path.includes('?') ? '&' : '?'}${name}=${value}`,
  ...rest,
]

describe('a parameter of documents has an effect', () => {
  const cases = Object.entries(DOCUMENTS).flatMap(([name, [requests, value]]) =>
    requests.map((each) => [name, each, value] as const),
  )
  test.each(cases)('%s: %j', async (name, probe, value) => {
    const without = await outcome(NUMBERS, BOTH, probe)
    expect(await outcome(NUMBERS, BOTH, withParameter(probe, name, value))).not.toBe(without)
  })

  const harmlessCases = Object.entries(NOT_OF_DOCUMENTS).flatMap(([name, requests]) =>
    requests.map((each) => [name, each] as const),
  )
  test.each(harmlessCases)('or is harmless: %s: %j', async (name, probe) => {
    const without = await outcome(NUMBERS, BOTH, probe)
    expect(await outcome(NUMBERS, BOTH, withParameter(probe, name, '1'))).toBe(without)
  })

  test('these are all of the table', () => {
    expect(Object.keys(DOCUMENTS).toSorted()).toEqual(shown(DOCUMENT_PARAMETERS).toSorted())
    expect(Object.keys(NOT_OF_DOCUMENTS).toSorted()).toEqual(harmless(DOCUMENT_PARAMETERS).toSorted())
  })

  const byFilter: Probe[] = [
    ['/documents?filter_by=nothing:1', 'PATCH', { f: 'all' }],
    ['/documents?filter_by=nothing:1', 'DELETE'],
    ['/documents/export?filter_by=nothing:1', 'GET'],
  ]
  test.each(byFilter.map((probe) => ({ probe })))(
    '$probe refuses to pass over unknown fields',
    async ({ probe }) => {
      const refused = await outcome(NUMBERS, BOTH, withParameter(probe, 'validate_field_names', 'false'))
      expect(refused).toContain('400 {"message":"Parameter `validate_field_names` is not supported here.')
      const checked = await outcome(NUMBERS, BOTH, withParameter(probe, 'validate_field_names', 'true'))
      expect(checked).toContain('Could not find a filter field named `nothing` in the schema.')
    },
  )
})
