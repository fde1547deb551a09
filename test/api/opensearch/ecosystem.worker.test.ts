/** What LangChain, LlamaIndex and Haystack send to OpenSearch by default. */
import { beforeAll, describe, expect, it } from 'vitest'
import { call } from '../typesense/api'
import { ask, fill, idsOf, indexName } from './api'

/** What a hit is in these tests: its id and its score. */
const scored = async (index: string, body: Record<string, unknown>): Promise<[string, number][]> => {
  const [status, answer] = await ask('POST', `/${index}/_search`, body)
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
    expect((await ask('PUT', `/${index}`, body))[0]).toBe(200)
    await fill(index, POINTS)
  })

  it('shows what it was made with', async () => {
    const [, settings] = await ask('GET', `/${index}/_settings`)
    expect(settings[index].settings.index).toMatchObject({ knn: 'true', 'knn.algo_param.ef_search': '512' })
    const [, mapping] = await ask('GET', `/${index}/_mapping`)
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
    const [, { hits }] = await ask('POST', `/${index}/_search`, body)
    expect(hits.total).toEqual({ value: 2, relation: 'eq' })
    expect(hits.hits.map(({ _id }: { _id: string }) => _id)).toEqual(['near'])
    const [status, { error }] = await ask('POST', `/${index}/_search`, {
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
  ])('refuses the script %j', async (script, reason) => {
    const found = await idsOf(index, { script_score: { query: { match_all: {} }, script } })
    expect(found).toEqual(expect.stringContaining(reason))
  })
})

describe('a script that measures angles', () => {
  it('scores as OpenSearch does', async () => {
    const index = indexName('angles')
    const mappings = { properties: { v: { type: 'knn_vector', dimension: 2, space_type: 'cosinesimil' } } }
    await ask('PUT', `/${index}`, { mappings })
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
    expect((await ask('PUT', `/${index}`, { settings: { 'index.knn': true }, mappings }))[0]).toBe(200)
    await fill(index, {
      a: { content: 'Backups of laptops', embedding: [1, 0], topic: 'Remote Backup', year: 2020 },
      b: { content: 'Backup for servers', embedding: [0, 1], topic: 'Backup', year: 2022 },
    })
  })

  it('takes the strings of documents as whole values', async () => {
    expect(await idsOf(index, { term: { topic: 'Backup' } })).toEqual(['b'])
    expect(await idsOf(index, { terms: { topic: ['Remote Backup'] } })).toEqual(['a'])
    const [, mapping] = await ask('GET', `/${index}/_mapping`)
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

  it('refuses other templates by their names', async () => {
    const mappings = { dynamic_templates: [{ dates: { match: '*_at', mapping: { type: 'date' } } }] }
    const [status, { error }] = await ask('PUT', `/${indexName()}`, { mappings })
    expect([status, error.reason]).toEqual([400, expect.stringContaining('[dates]')])
  })
})

describe('_delete_by_query', () => {
  it('removes what a query finds, and nothing else', async () => {
    const index = indexName('deleted')
    await fill(index, { a: { doc_id: 'x', n: 1 }, b: { doc_id: 'x', n: 2 }, c: { doc_id: 'y', n: 3 } })
    const by = (query: unknown) => ask('POST', `/${index}/_delete_by_query?refresh=true`, { query })
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
      (await ask('POST', path + query, body))[1].error.reason
    expect(await reasonOf('', {})).toContain('query is missing')
    expect(await reasonOf('?conflicts=never', { query: { match_all: {} } })).toContain('was [never]')
    expect(await reasonOf('?wait_for_completion=false', { query: { match_all: {} } })).toContain(
      'not supported',
    )
    expect((await ask('POST', path, { query: { match_all: {} } }, 'no-such-key'))[0]).toBe(401)
    const [status] = await ask('POST', `/${indexName()}/_delete_by_query`, { query: { match_all: {} } })
    expect(status).toBe(404)
  })
})

describe('scrolling', () => {
  const index = indexName('scrolled')
  const IDS = Array.from({ length: 25 }, (_, n) => `d${n}`)
  type Page = {
    _scroll_id: string
    hits: { total: { value: number }; hits: { _id: string; _source: unknown }[] }
  }

  beforeAll(async () => {
    await fill(
      index,
      Object.fromEntries(IDS.map((id, n) => [id, { n, text: n % 2 ? 'odd stone' : 'even stone' }])),
    )
  })

  const begin = async (body: unknown): Promise<Page> => {
    const [status, page] = await ask('POST', `/${index}/_search?scroll=10m`, body)
    expect([status, page.error]).toEqual([200, undefined])
    return page
  }

  /** The ids of all pages. @param between runs after each page */
  const all = async (first: Page, between?: (page: Page) => Promise<unknown>): Promise<string[]> => {
    const ids: string[] = []
    for (let page = first; page.hits.hits.length > 0; ) {
      ids.push(...page.hits.hits.map(({ _id }) => _id))
      await between?.(page)
      page = (await ask('POST', '/_search/scroll', { scroll_id: page._scroll_id, scroll: '10m' }))[1]
    }
    return ids
  }

  it('goes through all documents, as Sycamore and helpers.scan do', async () => {
    const first = await begin({ query: { match_all: {} }, size: 10 })
    expect(first.hits.total.value).toBe(25)
    expect(first.hits.hits).toHaveLength(10)
    expect(await all(first)).toEqual(IDS)
    expect(await all(await begin({ sort: '_doc', size: 7, query: { match: { text: 'odd' } } }))).toHaveLength(
      12,
    )
    expect(await ask('DELETE', '/_search/scroll', { scroll_id: [first._scroll_id] })).toEqual([
      200,
      { succeeded: true, num_freed: 1 },
    ])
  })

  it('shows of each document what the first request asked for', async () => {
    const [, page] = await ask('POST', `/${index}/_search?scroll=1m&size=1&_source_includes=n`, {})
    expect(page.hits.hits[0]._source).toEqual({ n: 0 })
    const [, next] = await ask('GET', `/_search/scroll?scroll_id=${page._scroll_id}`)
    expect(next.hits.hits).toEqual([expect.objectContaining({ _id: 'd1', _source: { n: 1 } })])
  })

  it('passes no document over while those that were read are removed', async () => {
    const copy = indexName('scrolled')
    await fill(copy, Object.fromEntries(IDS.map((id, n) => [id, { n }])))
    const [, first] = await ask('POST', `/${copy}/_search?scroll=1m`, { size: 4 })
    const ids = await all(first, ({ hits }) =>
      Promise.all(hits.hits.map(({ _id }) => ask('DELETE', `/${copy}/_doc/${_id}`))),
    )
    expect(ids).toEqual(IDS)
  })

  it('keeps the order of a search that ranks or sorts', async () => {
    const sorted = await all(await begin({ sort: [{ n: 'desc' }], size: 10 }))
    expect(sorted).toEqual(IDS.toReversed())
    const ranked = await begin({ query: { match: { text: 'odd stone' } }, size: 20 })
    const [, once] = await ask('POST', `/${index}/_search`, {
      query: { match: { text: 'odd stone' } },
      size: 25,
    })
    expect(await all(ranked)).toEqual(once.hits.hits.map(({ _id }: { _id: string }) => _id))
  })

  it('refuses what it cannot do, and another index than the key may search', async () => {
    const refused = async (query: string, body: unknown) =>
      (await ask('POST', `/${index}/_search${query}`, body))[1].error.reason
    expect(await refused('?scroll=soon', {})).toContain('[soon] as a time value')
    expect(await refused('?scroll=1m', { from: 3 })).toContain('must be set to 0')
    const hybrid = { hybrid: { queries: [{ match: { text: 'odd' } }] } }
    expect(await refused('?scroll=1m', { query: hybrid })).toContain('[hybrid]')
    expect(await refused('?scroll=1m&search_pipeline=p', {})).toContain('[search_pipeline]')
    const [status, { error }] = await ask('POST', '/_search/scroll', { scroll_id: 'bm90aGluZw==' })
    expect([status, error.type]).toEqual([404, 'search_context_missing_exception'])
    const { _scroll_id } = await begin({ size: 1 })
    const statusWith = async (collections: string[]): Promise<number> => {
      const [, { value }] = await call('POST', '/keys', {
        body: { description: 'scrolls', actions: ['documents:search'], collections },
      })
      return (await ask('POST', '/_search/scroll', { scroll_id: _scroll_id }, value))[0]
    }
    expect(await statusWith([index])).toBe(200)
    expect(await statusWith(['another-.*'])).toBe(401)
  })
})
