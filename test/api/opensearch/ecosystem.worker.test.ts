/** What LangChain, LlamaIndex, Haystack and OpenSearch's own clients send by default. */
import { beforeAll, describe, expect, it } from 'vitest'
import { call } from '../typesense/api'
import { fill, idsOf, indexName, request } from './api'

/** What a hit is in these tests: its id and its score. */
const scored = async (index: string, body: Record<string, unknown>): Promise<[string, number][]> => {
  const [status, answer] = await request('POST', `/${index}/_search`, body)
  if (status !== 200) throw new Error(JSON.stringify(answer))
  return answer.hits.hits.map(({ _id, _score }: { _id: string; _score: number }) => [_id, _score])
}

const POINTS = {
  near: { vector_field: [3, 4], text: 'near', metadata: { who: 'a' } },
  // The same direction as the question, and far away.
  far: { vector_field: [30, 0], text: 'far', metadata: { who: 'b' } },
  middle: { vector_field: [6, 0], text: 'middle', metadata: { who: 'b' } },
}
const ASKED = [3, 0]

describe("LangChain's index", () => {
  const index = indexName('langchain')

  beforeAll(async () => {
    const body = {
      settings: { index: { knn: true, 'knn.algo_param.ef_search': 512 } },
      mappings: {
        properties: {
          vector_field: {
            type: 'knn_vector',
            dimension: 2,
            method: {
              name: 'hnsw',
              space_type: 'l2',
              engine: 'nmslib',
              parameters: { ef_construction: 512, m: 16 },
            },
          },
        },
      },
    }
    expect((await request('PUT', `/${index}`, body))[0]).toBe(200)
    await fill(index, POINTS)
  })

  it('shows what it was made with', async () => {
    const [, settings] = await request('GET', `/${index}/_settings`)
    expect(settings[index].settings.index).toMatchObject({ knn: 'true', 'knn.algo_param.ef_search': '512' })
    const [, mapping] = await request('GET', `/${index}/_mapping`)
    expect(mapping[index].mappings.properties.vector_field.method.space_type).toBe('l2')
  })

  it('ranks by Euclidean distance, with the scores of OpenSearch', async () => {
    const query = { knn: { vector_field: { vector: ASKED, k: 3 } } }
    expect(await scored(index, { size: 3, min_score: 0, query })).toEqual([
      ['middle', 1 / (1 + 9)],
      ['near', 1 / (1 + 16)],
      ['far', 1 / (1 + 27 ** 2)],
    ])
  })

  it('leaves out what scores less than `min_score`, and counts the rest', async () => {
    const query = { knn: { vector_field: { vector: ASKED, k: 3 } } }
    const body = { size: 1, from: 1, min_score: 0.05, query }
    const [, { hits }] = await request('POST', `/${index}/_search`, body)
    expect(hits.total).toEqual({ value: 2, relation: 'eq' })
    expect(hits.hits.map(({ _id }: { _id: string }) => _id)).toEqual(['near'])
    const [status, { error }] = await request('POST', `/${index}/_search`, {
      min_score: 0.5,
      query: { match: { text: 'near' } },
    })
    expect([status, error.reason]).toEqual([400, expect.stringContaining('[min_score]')])
  })

  it.each([
    [
      'the plugin',
      {
        lang: 'knn',
        source: 'knn_score',
        params: { field: 'vector_field', query_value: ASKED, space_type: 'l2' },
      },
    ],
    [
      'painless',
      {
        source: "1/(1.0 + l2Squared(params.query_value, doc['vector_field']))",
        params: { query_value: ASKED },
      },
    ],
  ])('measures exactly by a script of %s, among what passes a query', async (_, script) => {
    const query = { term: { 'metadata.who.keyword': 'b' } }
    expect(await scored(index, { size: 4, query: { script_score: { query, script } } })).toEqual([
      ['middle', 1 / 10],
      ['far', 1 / (1 + 27 ** 2)],
    ])
  })

  it.each([
    [{ source: "doc['metadata.n'].value * 2" }, 'A [script] other than'],
    [
      { source: "1.0 + cosineSimilarity(params.v, doc['vector_field'])", params: { v: ASKED } },
      '[space_type] of its mapping',
    ],
    [{ source: "1.0 + cosineSimilarity(params.v, doc['vector_field'])" }, 'a list of numbers'],
    [
      {
        source:
          "1.0 + cosineSimilarity(params.v, doc['vector_field']) + cosineSimilarity(params.v, doc['other'])",
        params: { v: ASKED },
      },
      'A [script] other than',
    ],
    [
      { source: "1/1 + l2Squared(params.v, doc['vector_field'])", params: { v: ASKED } },
      'A [script] other than',
    ],
    [
      { source: "1/(1 + l2Squared(params.v, doc['vector_feild']))", params: { v: ASKED } },
      'No field found for [vector_feild] in mapping',
    ],
  ])('refuses the script %j', async (script, reason) => {
    const found = await idsOf(index, { script_score: { query: { match_all: {} }, script } })
    expect(found).toEqual(expect.stringContaining(reason))
  })
})

describe('what is asked beside a script', () => {
  const index = indexName('counted')
  const source = "1/(1.0 + l2Squared(params.query_value, doc['v']))"
  const query = {
    script_score: { query: { match_all: {} }, script: { source, params: { query_value: [0] } } },
  }
  const ids = Array.from({ length: 12 }, (_, n) => `d${n}`)

  beforeAll(async () => {
    await request('PUT', `/${index}`, {
      mappings: { properties: { v: { type: 'knn_vector', dimension: 1 } } },
    })
    await fill(index, Object.fromEntries(ids.map((id, n) => [id, { v: [n], n }])))
  })

  it('counts all that it scores, on the pages of a scroll too', async () => {
    const [, { hits }] = await request('POST', `/${index}/_search`, { size: 5, query })
    expect(hits.total).toEqual({ value: 12, relation: 'eq' })
    const seen: string[] = []
    let [, page] = await request('POST', `/${index}/_search?scroll=1m`, { size: 5, query })
    for (; page.hits.hits.length > 0; ) {
      expect(page.hits.total.value).toBe(12)
      seen.push(...page.hits.hits.map(({ _id }: { _id: string }) => _id))
      page = (await request('POST', '/_search/scroll', { scroll_id: page._scroll_id }))[1]
    }
    expect(seen).toEqual(ids)
  })

  it.each([{ aggs: { all: { sum: { field: 'n' } } } }, { sort: [{ n: 'desc' }] }])(
    'refuses %j, which would be of one page',
    async (more) => {
      expect(await idsOf(index, query, more)).toEqual(expect.stringContaining('beside [script_score]'))
    },
  )
})

describe('a script that measures angles', () => {
  it('scores as OpenSearch does', async () => {
    const index = indexName('angles')
    const mappings = { properties: { v: { type: 'knn_vector', dimension: 2, space_type: 'cosinesimil' } } }
    await request('PUT', `/${index}`, { mappings })
    await fill(index, { east: { v: [2, 0] }, north: { v: [0, 5] }, west: { v: [-1, 0] } })
    const script = {
      source: "(1.0 + cosineSimilarity(params.query_value, doc['v']))",
      params: { query_value: [1, 0] },
    }
    const query = { script_score: { query: { match_all: {} }, script } }
    expect(await scored(index, { size: 2, query })).toEqual([
      ['east', 2],
      ['north', 1],
    ])
  })
})

describe("Haystack's index", () => {
  const index = indexName('haystack')

  beforeAll(async () => {
    const mappings = {
      properties: {
        embedding: { type: 'knn_vector', index: true, dimension: 2 },
        content: { type: 'text' },
      },
      dynamic_templates: [
        { strings: { path_match: '*', match_mapping_type: 'string', mapping: { type: 'keyword' } } },
      ],
    }
    expect((await request('PUT', `/${index}`, { settings: { 'index.knn': true }, mappings }))[0]).toBe(200)
    await fill(index, {
      a: { content: 'Backups of laptops', embedding: [1, 0], topic: 'Remote Backup', year: 2020 },
      b: { content: 'Backup for servers', embedding: [0, 1], topic: 'Backup', year: 2022 },
    })
  })

  it('takes the strings of documents as whole values', async () => {
    expect(await idsOf(index, { term: { topic: 'Backup' } })).toEqual(['b'])
    expect(await idsOf(index, { terms: { topic: ['Remote Backup'] } })).toEqual(['a'])
    const [, mapping] = await request('GET', `/${index}/_mapping`)
    const { properties, dynamic_templates: templates } = mapping[index].mappings
    expect(properties).toMatchObject({ topic: { type: 'keyword' }, content: { type: 'text' } })
    expect(templates).toHaveLength(1)
  })

  it('finds neighbours beside a filter of the same `bool`', async () => {
    const knn = { knn: { embedding: { vector: [1, 0.1], k: 10 } } }
    const filter = { bool: { must: [{ range: { year: { gt: 2021 } } }] } }
    expect(await idsOf(index, { bool: { must: [knn] } })).toEqual(['a', 'b'])
    expect(await idsOf(index, { bool: { must: [knn], filter } })).toEqual(['b'])
    expect(await idsOf(index, { bool: { must: [knn], must_not: { term: { topic: 'Backup' } } } })).toEqual([
      'a',
    ])
  })

  it('takes `fuzziness` of the query that ranks', async () => {
    const fuzzy = (query: string, fuzziness: unknown) => ({
      bool: {
        must: [
          { multi_match: { query, fuzziness, type: 'most_fields', operator: 'OR', fields: ['content'] } },
        ],
      },
    })
    expect(await idsOf(index, fuzzy('servesr', 0))).toEqual([])
    expect(await idsOf(index, fuzzy('servesr', 'AUTO'))).toEqual(['b'])
    expect(await idsOf(index, fuzzy('servres', 1))).toEqual(['b'])
    expect(await idsOf(index, fuzzy('servres', 9))).toEqual(expect.stringContaining('[fuzziness: 9]'))
  })

  it.each([
    { match: { topic: { query: 'Backp', fuzziness: 1 } } },
    { multi_match: { query: 'Backp', fields: ['topic', 'content'], fuzziness: 'AUTO' } },
    { multi_match: { query: 'Backp laptops', fields: ['content'], fuzziness: 1, type: 'phrase' } },
  ])('refuses `fuzziness` where it would do nothing: %j', async (query) => {
    expect(await idsOf(index, query)).toEqual(expect.stringContaining('[fuzziness]'))
  })

  it('keeps its templates once they have said what a field is', async () => {
    const templates = (type: string) => [{ s: { match_mapping_type: 'string', mapping: { type } } }]
    const put = (type: string) =>
      request('PUT', `/${index}/_mapping`, { dynamic_templates: templates(type) }).then(([status]) => status)
    expect(await put('text')).toBe(400)
    expect(await put('keyword')).toBe(200)
    expect(await idsOf(index, { term: { topic: 'Backup' } })).toEqual(['b'])
    const empty = indexName('haystack')
    await request('PUT', `/${empty}`, {})
    const [status] = await request('PUT', `/${empty}/_mapping`, { dynamic_templates: templates('keyword') })
    expect(status).toBe(200)
  })

  it('refuses other templates by their names', async () => {
    const mappings = { dynamic_templates: [{ dates: { match: '*_at', mapping: { type: 'date' } } }] }
    const [status, { error }] = await request('PUT', `/${indexName()}`, { mappings })
    expect([status, error.reason]).toEqual([400, expect.stringContaining('[dates]')])
  })
})

describe('_delete_by_query', () => {
  it('removes what a query finds, and nothing else', async () => {
    const index = indexName('deleted')
    await fill(index, { a: { doc_id: 'x', n: 1 }, b: { doc_id: 'x', n: 2 }, c: { doc_id: 'y', n: 3 } })
    const by = (query: unknown) => request('POST', `/${index}/_delete_by_query?refresh=true`, { query })
    const [status, answer] = await by({ term: { 'doc_id.keyword': { value: 'x' } } })
    expect([status, answer]).toEqual([200, expect.objectContaining({ deleted: 2, total: 2, failures: [] })])
    expect(await idsOf(index, { match_all: {} })).toEqual(['c'])
    expect((await by({ term: { nowhere: 'x' } }))[1].deleted).toBe(0)
    expect((await by({ match_all: {} }))[1].deleted).toBe(1)
    expect(await idsOf(index, { match_all: {} })).toEqual([])
  })

  it('takes its parameters as OpenSearch does, and a key that may delete', async () => {
    const index = indexName('deleted')
    await fill(index, { a: { n: 1 } })
    const path = `/${index}/_delete_by_query`
    const reasonOf = async (query: string, body: unknown) =>
      (await request('POST', path + query, body))[1].error.reason
    expect(await reasonOf('', {})).toContain('query is missing')
    expect(await reasonOf('?conflicts=never', { query: { match_all: {} } })).toContain('was [never]')
    expect(await reasonOf('?wait_for_completion=false', { query: { match_all: {} } })).toContain(
      'not supported',
    )
    const statusWith = async (actions: string[], collections: string[]): Promise<number> => {
      const body = { description: 'deletes', actions, collections }
      const [, { value }] = await call('POST', '/keys', { body })
      return (await request('POST', path, { query: { term: { n: 2 } } }, value))[0]
    }
    expect(await statusWith(['documents:search'], [index])).toBe(401)
    expect(await statusWith(['documents:delete'], [`another-${index}`])).toBe(401)
    expect(await statusWith(['documents:delete'], [index])).toBe(200)
    const [status] = await request('POST', `/${indexName()}/_delete_by_query`, { query: { match_all: {} } })
    expect(status).toBe(404)
  })
})

describe('parameters of clients', () => {
  const index = indexName('books')

  beforeAll(() => fill(index, { a: { pages: 120 }, b: { pages: 80 }, c: { pages: 80 } }))

  it('takes what clients send unasked and what changes no answer', async () => {
    const common = 'ignore_unavailable=true&allow_no_indices=true&expand_wildcards=open'
    const own = 'preference=_local&request_cache=true&batched_reduce_size=5&ccs_minimize_roundtrips=true'
    const path = `/${index}/_search?${common}&${own}&search_type=query_then_fetch`
    const [, plain] = await request('POST', `/${index}/_search`, {})
    expect((await request('POST', path, { timeout: '10s' }))[1].hits).toEqual(plain.hits)
    expect((await request('GET', `/${index}/_count?${common}`))[0]).toBe(200)
    const health = '/_cluster/health?wait_for_status=yellow&timeout=5s&master_timeout=5s'
    expect(await request('GET', health)).toMatchObject([200, { status: 'green' }])
  })

  // As the Java clients fill in what their callers leave out.
  const JAVA = 'ignore_throttled=true&ignore_unavailable=false&allow_no_indices=true&expand_wildcards=open'
  const SHARDS = 'max_concurrent_shard_requests=5&pre_filter_shard_size=128&ccs_minimize_roundtrips=true'
  it.each([
    ['GET', `/_search?${JAVA}&${SHARDS}&cancel_after_time_interval=30s&phase_took=false`, undefined],
    ['GET', '/_search?explain=false&version=false&seq_no_primary_term=false&track_scores=false', undefined],
    [
      'POST',
      '/_search',
      { suggest: {}, collapse: null, post_filter: null, search_after: null, profile: false },
    ],
    ['GET', `/_count?${JAVA}&terminate_after=0`, undefined],
    ['PUT', '/_doc/d?timeout=1m&require_alias=false&version_type=internal', { pages: 1 }],
    ['DELETE', '/_doc/d?timeout=1m&version_type=internal', undefined],
    [
      'POST',
      `/_delete_by_query?${JAVA}&slices=1&scroll_size=1000&requests_per_second=-1`,
      { query: { term: { pages: 7 } } },
    ],
    ['GET', '?local=false&flat_settings=false&include_defaults=false', undefined],
    ['GET', '/_mapping?local=true', undefined],
  ])('takes %s %s', async (method, path, body) => {
    const [status, answer] = await request(method, `/${index}${path}`, body)
    expect([status < 300, answer.error]).toEqual([true, undefined])
  })

  it('takes the same in the lines of `_msearch` and `_bulk`, and nothing that it would have to serve', async () => {
    const options = { ignore_unavailable: true, ignore_throttled: true, expand_wildcards: ['open'] }
    const header = { index, ...options, search_type: 'query_then_fetch', ccs_minimize_roundtrips: true }
    const found = await request('POST', `/_msearch?${SHARDS}`, [header, { size: 0 }])
    expect(found[1].responses[0].hits.total.value).toBe(3)
    const action = { _index: index, _id: 'e', require_alias: false, version_type: 'internal' }
    const path = '/_bulk?require_alias=false&routing=x'
    expect((await request('POST', path, [{ index: action }, { pages: 1 }]))[1].errors).toBe(false)
    for (const unserved of ['version_type=external', 'require_alias=true', 'slices=4', 'explain=true']) {
      expect((await request('PUT', `/${index}/_doc/d?${unserved}`, { pages: 1 }))[0]).toBe(400)
    }
    await request('DELETE', `/${index}/_doc/e`)
  })

  it.each<[string, (found: Record<string, unknown>) => unknown]>([
    ['hits.hits._id', ({ ids }) => ({ hits: { hits: ids } })],
    ['hits.hits._id,took,-took', ({ ids }) => ({ hits: { hits: ids } })],
    ['**._id', ({ ids }) => ({ hits: { hits: ids } })],
    ['timed_out,hits.to*', ({ total }) => ({ timed_out: false, hits: { total } })],
    ['-hits.hits,-took,-_shards,-hits.max_score', ({ total }) => ({ timed_out: false, hits: { total } })],
    ['nothing', () => ({})],
  ])('shows what `filter_path=%s` asks for', async (shown, expected) => {
    const [, { hits }] = await request('POST', `/${index}/_search`, {})
    const ids = hits.hits.map(({ _id }: { _id: string }) => ({ _id }))
    const found = await request('POST', `/${index}/_search?filter_path=${shown}`, {})
    expect(found).toEqual([200, expected({ ids, total: hits.total })])
    const [, listed] = await request('GET', `/_cat/indices/${index}?format=json&filter_path=index`)
    expect(listed).toEqual([{ index }])
    expect((await request('GET', `/_cat/indices?filter_path=index`))[0]).toBe(400)
  })

  it('names the types of aggregations for `typed_keys`', async () => {
    const aggs = { pages: { terms: { field: 'pages' }, aggs: { most: { max: { field: 'pages' } } } } }
    const body = { size: 0, aggs: { ...aggs, none: { terms: { field: 'nowhere' } } } }
    const [, plain] = await request('POST', `/${index}/_search`, body)
    const [, typed] = await request('POST', `/${index}/_search?typed_keys=true`, body)
    expect(Object.keys(typed.aggregations)).toEqual(['lterms#pages', 'umterms#none'])
    const names = (text: string) => text.replace(/"(?:lterms|umterms|max)#/g, '"')
    expect(JSON.parse(names(JSON.stringify(typed.aggregations)))).toEqual(plain.aggregations)
    expect(typed.aggregations['lterms#pages'].buckets[0]).toHaveProperty('max#most')
    const lines = [{ index }, body]
    const [, many] = await request('POST', '/_msearch?typed_keys=true', lines)
    expect(many.responses[0].aggregations).toEqual(typed.aggregations)
  })
})
