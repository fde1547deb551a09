/** Searches of several indices: what they find is what one index with all of their documents has. */
import { beforeAll, describe, expect, it } from 'vitest'
import { call } from '../typesense/api'
import { scopedKey } from '../typesense/conversing'
import { fill, indexName, request } from './api'

const stem = indexName('logs')
const whole = indexName('whole')
const parts = ['a', 'b', 'c'].map((part) => `${stem}-${part}`)
const [first, second, third] = parts as [string, string, string]

/** 90 documents, of which the last third has no `price`, and no list. */
const DOCUMENTS = Object.fromEntries(
  Array.from({ length: 90 }, (_, at) => [
    `d${at}`,
    {
      title: `part ${'of a long machine '.repeat(at % 5)}`,
      n: (at * 37) % 90,
      kind: ['axe', 'Bolt', 'cable', 'drum'][(at * at) % 4],
      made: `2024-0${1 + (at % 6)}-15T00:00:00Z`,
      ...(at < 60 && { price: (at % 9) / 2, tags: [`t${at % 4}`, `t${at % 3}`] }),
    },
  ]),
)

const properties = {
  title: { type: 'text' },
  kind: { type: 'keyword' },
  n: { type: 'integer' },
  made: { type: 'date' },
}

beforeAll(async () => {
  const entries = Object.entries(DOCUMENTS)
  for (const [at, index] of [whole, ...parts].entries()) {
    const priced = at < 3 && { price: { type: 'double' }, tags: { type: 'keyword' } }
    const [status] = await request('PUT', `/${index}`, {
      mappings: { properties: { ...properties, ...priced } },
    })
    expect(status).toBe(200)
    await fill(index, Object.fromEntries(at === 0 ? entries : entries.slice((at - 1) * 30, at * 30)))
  }
})

type Body = Record<string, unknown>

async function search(body: Body, indices = `${stem}-*`, query = '', key?: string) {
  const [status, answer] = await request('POST', `/${indices}/_search${query}`, body, key)
  expect([status, answer.error]).toEqual([200, undefined])
  return answer
}

/** The reason of a refusal, behind its status. */
async function refusal(path: string, body?: Body, key?: string): Promise<string> {
  const [status, { error }] = await request('POST', path, body, key)
  return `${status} ${error?.root_cause[0].reason}`
}

const idsIn = ({ hits }: { hits: { hits: { _id: string }[] } }) => hits.hits.map(({ _id }) => _id)

describe('hits come in one order', () => {
  it('by score, each with its index, and the numbers are added up', async () => {
    const found = await search({ query: { match: { title: 'machine' } }, size: 90, track_scores: false })
    expect(found).toMatchObject({
      _shards: { total: 3, successful: 3, skipped: 0, failed: 0 },
      hits: { total: { value: 72, relation: 'eq' }, max_score: found.hits.hits[0]._score },
    })
    const scores = found.hits.hits.map(({ _score }: { _score: number }) => _score)
    expect(scores).toEqual(scores.toSorted((a: number, b: number) => b - a))
    for (const { _index, _id } of found.hits.hits) {
      expect(_index).toBe(parts[Math.floor(Number(_id.slice(1)) / 30)])
    }
    const highlight = { fields: { title: {} } }
    const [page] = (
      await search({ query: { match: { title: 'long' } }, from: 40, size: 3, highlight, _source: ['n'] })
    ).hits.hits
    expect(page._source).toEqual({ n: DOCUMENTS[page._id as string]!.n })
    expect(page.highlight.title[0]).toContain('<em>long</em>')
    const counted = await search({ size: 0 }, `${stem}-*`, '?rest_total_hits_as_int=true')
    expect(counted.hits).toEqual({ total: 90, max_score: null, hits: [] })
  })

  it.each([
    [['n']],
    [[{ kind: 'desc' }, 'n']],
    [[{ price: { order: 'desc', unmapped_type: 'double' } }, 'n']],
    [[{ price: { order: 'asc', missing: '_first', unmapped_type: 'double' } }, { n: 'desc' }]],
    [[{ made: 'desc' }, { n: { order: 'asc' } }]],
  ])('by values: %j', async (sort) => {
    const all = idsIn(await search({ sort, size: 90 }, whole))
    expect(idsIn(await search({ sort, size: 90 }))).toEqual(all)
    expect(idsIn(await search({ sort, from: 25, size: 40 }))).toEqual(all.slice(25, 65))
    const read: string[] = []
    for (let after: unknown[] | undefined; ; ) {
      const page = (await search({ sort, size: 23, ...(after && { search_after: after }) })).hits.hits
      read.push(...page.map(({ _id }: { _id: string }) => _id))
      if (page.length === 0) break
      after = page.at(-1).sort
    }
    expect(read).toEqual(all)
  })

  it('of several queries, and with a filter behind them', async () => {
    const queries = [{ match: { title: 'machine' } }, { term: { kind: 'axe' } }]
    const body = { query: { hybrid: { queries } }, size: 90 }
    const ids = idsIn(await search(body))
    expect(new Set(ids).size).toBe(ids.length)
    expect(new Set(ids)).toEqual(new Set(idsIn(await search(body, whole))))
    const filtered = { sort: ['n'], post_filter: { term: { kind: 'drum' } }, size: 90 }
    expect(idsIn(await search(filtered))).toEqual(idsIn(await search(filtered, whole)))
  })

  it('also those of the same id', async () => {
    const [one, other] = [indexName('same'), indexName('same')]
    await fill(one, { x: { n: 1 } })
    await fill(other, { x: { n: 2 } })
    const queries = [{ term: { n: 2 } }, { match_all: {} }]
    for (const body of [{ sort: [{ n: 'desc' }] }, { query: { hybrid: { queries } } }]) {
      const { hits } = (await search(body, `${one},${other}`)).hits
      expect(hits.map(({ _index, _id }: { _index: string; _id: string }) => [_index, _id])).toEqual([
        [other, 'x'],
        [one, 'x'],
      ])
    }
  })
})

describe('aggregations are added up exactly', () => {
  const metrics = Object.fromEntries(
    ['stats', 'min', 'max', 'avg', 'sum', 'value_count', 'cardinality'].flatMap((type) => [
      [`n_${type}`, { [type]: { field: 'n' } }],
      [`price_${type}`, { [type]: { field: 'price' } }],
    ]),
  )
  const avg = { avg: { field: 'price' } }

  it.each([
    metrics,
    {
      kinds: { terms: { field: 'kind' } },
      first: { terms: { field: 'kind', size: 2, order: { _key: 'desc' } } },
    },
    {
      tags: { terms: { field: 'tags' } },
      count: { value_count: { field: 'kind' } },
      all: { cardinality: { field: 'tags' } },
    },
    { kinds: { terms: { field: 'kind' }, aggs: { avg, tags: { terms: { field: 'tags' } } } } },
    { tags: { terms: { field: 'tags', size: 3 }, aggs: { most: { max: { field: 'n' } } } } },
    { axes: { filter: { term: { kind: 'axe' } }, aggs: { avg, kinds: { cardinality: { field: 'made' } } } } },
    { months: { date_histogram: { field: 'made', calendar_interval: 'month' }, aggs: { avg } } },
    { nothing: { terms: { field: 'nowhere' } }, none: { sum: { field: 'nowhere' } } },
  ])('%j', async (aggs) => {
    for (const more of [
      {},
      { query: { range: { n: { lt: 50 } } } },
      { post_filter: { term: { kind: 'axe' } } },
    ]) {
      const body = { aggs, size: 0, ...more }
      const path = '?typed_keys=true'
      const { aggregations } = await search(body, `${stem}-*`, path)
      expect(aggregations).toEqual((await search(body, whole, path)).aggregations)
    }
  })

  it('and refused where they cannot be', async () => {
    const other = indexName('other')
    await request('PUT', `/${other}`, { mappings: { properties: { n: { type: 'keyword' } } } })
    await fill(other, { x: { n: 'many', price: 1 } })
    const kinds = await refusal(`/${first},${other}/_search`, { aggs: { ns: { terms: { field: 'n' } } } })
    expect(kinds).toMatch(/^400 The aggregation \[ns\] of a field that has another type in another index/)
    expect(await refusal(`/${first},${other}/_search`, { sort: ['n'] })).toMatch(
      /^400 Can't sort on field \[n\]/,
    )
    expect(await refusal(`/${first},${third}/_search`, { sort: ['price'] })).toMatch(/^400 No mapping found/)
    const inner = { ks: { terms: { field: 'kind', size: 20 }, aggs: { n: { max: { field: 'n' } } } } }
    expect(await refusal(`/${stem}-*/_search`, { aggs: inner })).toContain('inside of more than 16 terms')
  })
})

describe('an expression', () => {
  const indicesOf = async (expression: string, query = '') => {
    const { hits } = await search({ size: 90, _source: false }, expression, query)
    return [...new Set(hits.hits.map(({ _index }: { _index: string }) => _index))]
  }

  it('stands for indices by names, patterns, aliases and what is left out', async () => {
    const alias = indexName('alias')
    await request('PUT', `/${second}/_alias/${alias}`)
    expect(await indicesOf(`${third},${first}`)).toEqual([first, third])
    expect(await indicesOf(encodeURIComponent(`${third},${first},${first}`))).toEqual([first, third])
    expect(await indicesOf(`${alias},${second},${first}`)).toEqual([first, second])
    expect(await indicesOf(`${stem}-*,-${second}`)).toEqual([first, third])
    expect(await indicesOf(`${stem}-*,-*-c,${alias}`)).toEqual([first, second])
    expect(await indicesOf(`${alias.slice(0, -1)}*`)).toEqual([second])
    expect(await indicesOf(`*,-*,${first}`)).toEqual([first])
    expect(await indicesOf(`*,-${whole}`)).toEqual(expect.arrayContaining(parts))
    expect(await refusal(`/${first},-${second}/_search`)).toBe(`404 no such index [-${second}]`)
  })

  it('may name what is missing, if the request says so', async () => {
    const [gone, none] = [indexName('gone'), `${indexName('none')}*`]
    const nothing = { total: { value: 0, relation: 'eq' }, max_score: 0, hits: [] }
    expect(await refusal(`/${first},${gone}/_search`)).toBe(`404 no such index [${gone}]`)
    expect(await indicesOf(`${first},${gone}`, '?ignore_unavailable=true')).toEqual([first])
    const empty = await search({ aggs: { n: { max: { field: 'n' } } } }, gone, '?ignore_unavailable=true')
    expect(empty).toEqual({
      took: expect.any(Number),
      timed_out: false,
      _shards: expect.objectContaining({ total: 0 }),
      hits: nothing,
    })
    expect((await search({}, none)).hits).toEqual(nothing)
    expect(await refusal(`/${none}/_search?allow_no_indices=false`)).toBe(`404 no such index [${none}]`)
    expect((await search({}, `${stem}-*`, '?expand_wildcards=none')).hits).toEqual(nothing)
    expect(await indicesOf(`${stem}-*`, '?expand_wildcards=open,closed')).toEqual(parts)
  })

  it('is taken by counts, several searches, descriptions and refreshes', async () => {
    const query = { term: { kind: 'axe' } }
    const count = async (path: string) => (await request('POST', `/${path}/_count`, { query }))[1]
    expect(await count(`${stem}-*`)).toEqual({
      count: (await count(whole)).count,
      _shards: { total: 3, successful: 3, skipped: 0, failed: 0 },
    })
    const lines = [
      { index: [first, second] },
      { size: 0 },
      { index: `${stem}-*,-${first}`, ignore_unavailable: true },
      { size: 0 },
      { index: ['gone', first], ignore_unavailable: true },
      { size: 0 },
      {},
      { size: 0 },
      { index: ['gone', first] },
      { size: 0 },
    ]
    const [, { responses }] = await request('POST', `/${stem}-*/_msearch`, lines)
    const totals = responses.map(
      (one: { hits?: { total: { value: number } }; status: number }) => one.hits?.total.value ?? one.status,
    )
    expect(totals).toEqual([60, 60, 30, 90, 404])
    for (const part of ['_mapping', '_settings']) {
      const [status, described] = await request('GET', `/${stem}-*/${part}`)
      expect([status, Object.keys(described)]).toEqual([200, parts])
      expect((await request('GET', `/${part}`))[1]).toMatchObject(described)
      expect((await request('GET', `/_all/${part}`))[1]).toMatchObject(described)
      expect((await request('GET', `/${first}/${part}`))[1]).toEqual({ [first]: described[first] })
    }
    expect(Object.keys((await request('GET', `/${first},${second}`))[1])).toEqual([first, second])
    expect((await request('POST', `/${first},${second},*/_refresh`))[1]._shards.total).toBe(2)
    expect((await request('POST', `/${first},gone/_refresh`))[0]).toBe(404)
  })

  it('is refused where one index is meant', async () => {
    const several = (name: string) => `400 [${name}]: several indices at once; it is not supported here`
    for (const path of ['_delete_by_query', '_doc', '_update/1']) {
      const body = path === '_update/1' ? { doc: {} } : { query: { match_all: {} } }
      for (const name of [`${first},${second}`, `${stem}-*`])
        expect(await refusal(`/${name}/${path}`, body), path).toBe(several(name))
    }
    for (const name of [`${first},${second}`, `${stem}-*`, '_all'])
      expect(await refusal(`/${name}/_search?scroll=1m`, {})).toContain(
        `A scroll of several indices, [${name}]`,
      )
    const tied = { sort: ['kind', '_id'], search_after: ['axe', 'd1'] }
    expect(await refusal(`/${stem}-*/_search`, tied)).toContain('[search_after] of a [sort] by [_id]')
    for (const all of ['*', '_all'])
      expect((await request('DELETE', `/${all}`))[1].error.reason).toContain('A deletion of all indices')
    expect((await request('DELETE', `/${stem}-*,-${stem}-*`))[0]).toBe(200)
    expect((await request('POST', `/${first}/_count`))[1].count).toBe(30)
  })

  it('stands for at most 20 indices, and hits of all within the window', async () => {
    const wide = indexName('wide')
    const names = Array.from({ length: 21 }, (_, at) => `${wide}-${at}`)
    for (const name of names) await request('PUT', `/${name}`)
    expect(await refusal(`/${wide}-*/_search`)).toContain('stands for 21 indices: at most 20')
    expect(await refusal(`/${names}/_count`)).toContain('stands for 21 indices: at most 20')
    const some = `${wide}-*,-${names[0]}`
    expect((await search({ size: 500 }, some))._shards.total).toBe(20)
    expect(await refusal(`/${some}/_search`, { size: 501 })).toContain('equal to: [500] but was [501]')
    const many = indexName('many')
    await request('PUT', `/${many}`, {
      mappings: { properties: { kind: { type: 'keyword' }, n: { type: 'integer' } } },
    })
    const lines = Array.from({ length: 5_100 }, (_, n) => [{ index: {} }, { kind: `k${n}`, n }]).flat()
    for (let at = 0; at < lines.length; at += 4_000)
      expect((await request('POST', `/${many}/_bulk`, lines.slice(at, at + 4_000)))[1].errors).toBe(false)
    const twenty = `${some},-${names[1]},${many}`
    for (const type of ['terms', 'cardinality', 'value_count'])
      expect(await refusal(`/${twenty}/_search`, { aggs: { ks: { [type]: { field: 'kind' } } } })).toBe(
        '400 The aggregation [ks] of more than 5000 terms is not supported here',
      )
    const aggs = { sum: { sum: { field: 'n' } }, count: { value_count: { field: 'n' } } }
    const { aggregations } = await search({ aggs }, twenty)
    expect(aggregations).toEqual({ sum: { value: (5_099 * 5_100) / 2 }, count: { value: 5_100 } })
    expect((await search({ from: 3_000, size: 333 }))._shards.total).toBe(3)
    expect(await refusal(`/${stem}-*/_search`, { from: 3_000, size: 334 })).toContain('[3333] but was [3334]')
  })
})

describe('a key that may search one of two', () => {
  const keyOf = async (more: Body) => {
    const body = { description: '', actions: ['documents:search', 'collections:get'], ...more }
    return (await call('POST', '/keys', { body }))[1].value as string
  }
  const indicesOf = async (path: string, key: string) => {
    const [status, answer] = await request('GET', path, undefined, key)
    expect([path, status]).toEqual([path, 200])
    const hits = answer.hits?.hits ?? []
    return [...new Set(hits.map(({ _index }: { _index: string }) => _index))]
  }

  it('sees the other one by no expression', async () => {
    const key = await keyOf({ collections: [first] })
    for (const path of ['/_search', '/_all/_search', '/*/_search', `/${stem}-*/_search`, `/${first}/_search`])
      expect(await indicesOf(path, key)).toEqual([first])
    expect(await indicesOf(`/${stem}-b*/_search`, key)).toEqual([])
    expect(await indicesOf(`/*,-${first}/_search`, key)).toEqual([])
    for (const path of [`${first},${second}`, second, `${stem}-*,${second}`, `${first},gone`])
      for (const query of ['', '?ignore_unavailable=true']) {
        const [status, { error }] = await request('POST', `/${path}/_search${query}`, {}, key)
        expect([status, error.type]).toEqual([401, 'security_exception'])
      }
    const lines = (index: unknown) => [{ index }, { size: 0 }]
    expect((await request('POST', '/_msearch', lines([first, second]), key))[0]).toBe(401)
    const [, { responses }] = await request(
      'POST',
      '/_msearch',
      [...lines(`${stem}-*`), {}, { size: 0 }],
      key,
    )
    expect(responses).toMatchObject([{ hits: { total: { value: 30 } } }, { hits: { total: { value: 30 } } }])
    expect((await request('GET', `/${stem}-*/_count`, undefined, key))[1].count).toBe(30)
    expect(Object.keys((await request('GET', '/_mapping', undefined, key))[1])).toEqual([first])
    expect((await request('GET', `/${first},${second}/_mapping`, undefined, key))[0]).toBe(401)
    expect((await request('DELETE', `/${stem}-*`, undefined, key))[0]).toBe(401)
  })

  it('finds by an alias what the alias is for, and by a scoped key its filter and collection alone', async () => {
    const alias = indexName('own')
    await request('PUT', `/${second}/_alias/${alias}`)
    const aliased = await keyOf({ collections: [alias] })
    expect(await indicesOf('/_search', aliased)).toEqual([second])
    expect((await request('GET', `/${alias},${second}/_search`, undefined, aliased))[0]).toBe(401)
    const parent = await keyOf({ actions: ['documents:search'], collections: [`${stem}-.*`] })
    const filtered = await scopedKey(parent, { filter_by: 'kind:=axe' })
    const { hits, aggregations } = await search(
      { size: 90, aggs: { kinds: { terms: { field: 'kind' } } } },
      '_all',
      '',
      filtered,
    )
    expect(new Set(hits.hits.map(({ _source }: { _source: Body }) => _source.kind))).toEqual(new Set(['axe']))
    expect(new Set(hits.hits.map(({ _index }: { _index: string }) => _index))).toEqual(new Set(parts))
    expect(aggregations.kinds.buckets).toEqual([{ key: 'axe', doc_count: hits.total.value }])
    const bound = await scopedKey(parent, { collection: second })
    expect(await indicesOf('/_search', bound)).toEqual([second])
    expect((await request('GET', `/${first},${second}/_search`, undefined, bound))[0]).toBe(401)
    // A key for pages has ten searches of a request.
    const page = await keyOf({
      actions: ['documents:search'],
      collections: ['*'],
      allowed_origins: ['https://a.example'],
    })
    expect(await refusal('/_search', {}, page)).toMatch(/^400 /)
  })

  it('reads no conversations by a pattern', async () => {
    const message = { conversation_id: 'c', model_id: 'm', role: 'user', message: 'secret', timestamp: 1 }
    const history = indexName('history')
    const types = {
      conversation_id: 'string',
      model_id: 'string',
      role: 'string',
      message: 'string',
      timestamp: 'int32',
    }
    const fields = Object.entries(types).map(([name, type]) => ({ name, type }))
    await call('POST', '/collections', { body: { name: history, fields } })
    await call('POST', `/collections/${history}/documents`, { body: message })
    const query = { match: { message: 'secret' } }
    expect(idsIn(await search({ query }, `${history.slice(0, -1)}*`))).toEqual([])
    expect(idsIn(await search({ query }, `${history},${first}`))).toHaveLength(1)
    const visitor = await keyOf({ actions: ['documents:search'], collections: ['*'] })
    expect((await search({ query }, `${history.slice(0, -1)}*,${first}`, '', visitor))._shards.total).toBe(1)
  })
})

it('counts the conditions of all indices together', async () => {
  const query = { terms: { kind: Array.from({ length: 40_000 }, (_, at) => `k${at}`) } }
  expect((await search({ query }, `${first},${second}`))._shards.total).toBe(2)
  expect(await refusal(`/${stem}-*/_search`, { query })).toContain('at most 100000 are allowed')
  expect(await refusal(`/${stem}-*/_count`, { query })).toContain('at most 100000 are allowed')
})
