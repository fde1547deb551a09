/** Searching: rows 67 to 70, and errors by their words. */
import { beforeAll, expect, test } from 'vitest'
import { client, createShows, query, request, unique } from './harness'

let shows: string
beforeAll(async () => {
  shows = await createShows()
})

const search = (parameters: Record<string, string | number | boolean>) =>
  request('GET', query(`/collections/${shows}/documents/search`, parameters))

const ids = (result: { hits: { document: { id: string } }[] }): string[] =>
  result.hits.map(({ document }) => document.id)

test('67: filters are joined, and the query wins over the body', async () => {
  const reply = await request('POST', query('/multi_search', { filter_by: 'points:>50', per_page: 1 }), {
    searches: [{ collection: shows, q: '*', filter_by: 'points:<90', per_page: 5, sort_by: 'points:desc' }],
  })
  const [result] = reply.body.results
  expect(result.found).toBe(3)
  expect(ids(result)).toEqual(['quest'])
})

test('68: per_page over 250', async () => {
  const reply = await search({ q: '*', per_page: 251 })
  expect([reply.status, reply.body]).toEqual([
    422,
    { message: 'Only upto 250 hits can be fetched per page.' },
  ])
})

test('69: a search by meaning finds a page of the nearest', async () => {
  const name = unique('thirty')
  await client()
    .collections()
    .create({
      name,
      fields: [
        { name: 'title', type: 'string' },
        {
          name: 'embedding',
          type: 'float[]',
          embed: { from: ['title'], model_config: { model_name: 'ts/all-MiniLM-L12-v2' } },
        },
      ],
    } as never)
  await client()
    .collections(name)
    .documents()
    .import(
      Array.from({ length: 30 }, (_, n) => ({
        id: String(n),
        title: `chapter ${n} about ${n % 3 ? 'ships' : 'bread'}`,
      })),
    )
  const reply = await request(
    'GET',
    query(`/collections/${name}/documents/search`, {
      q: 'bread',
      query_by: 'embedding',
      exclude_fields: 'embedding',
    }),
  )
  expect(reply.body.found).toBe(10)
  const distances = reply.body.hits.map((hit: { vector_distance: number }) => hit.vector_distance)
  expect(distances).toEqual([...distances].sort((a, b) => a - b))
  for (const hit of reply.body.hits) {
    expect(hit).not.toHaveProperty('text_match')
    expect(hit).not.toHaveProperty('hybrid_search_info')
    expect(hit.document.title).toContain('bread')
  }
})

test('70: ranks are fused', async () => {
  const name = unique('fused')
  await client()
    .collections()
    .create({
      name,
      fields: [
        { name: 'title', type: 'string' },
        { name: 'place', type: 'float[]', num_dim: 2 },
      ],
    } as never)
  await client()
    .collections(name)
    .documents()
    .import([
      { id: 'word', title: 'lighthouse', place: [0, 1] },
      { id: 'near', title: 'harbour', place: [1, 0] },
    ])
  const fused = async (vector: string): Promise<Record<string, number>> => {
    const parameters = { q: 'lighthouse', query_by: 'title', vector_query: `place:(${vector}, k:1)` }
    const { body } = await request('GET', query(`/collections/${name}/documents/search`, parameters))
    return Object.fromEntries(
      body.hits.map(
        (hit: { document: { id: string }; hybrid_search_info: { rank_fusion_score: number } }) => [
          hit.document.id,
          Number(hit.hybrid_search_info.rank_fusion_score.toFixed(4)),
        ],
      ),
    )
  }
  expect(await fused('[0,1]')).toEqual({ word: 1 })
  expect(await fused('[1,0]')).toEqual({ word: 0.7, near: 0.3 })
})

test('2.4: the shape of a keyword hit', async () => {
  const { status, body } = await search({
    q: 'coral',
    query_by: 'title,overview',
    exclude_fields: 'embedding',
  })
  expect(status).toBe(200)
  expect(body).toMatchObject({
    found: 1,
    out_of: 5,
    page: 1,
    facet_counts: [],
    search_cutoff: false,
    request_params: { collection_name: shows, per_page: 10, q: 'coral', first_q: 'coral' },
  })
  const [hit] = body.hits
  expect(hit.document).toMatchObject({ id: 'reef', points: 50 })
  expect(hit.highlight.overview).toMatchObject({
    matched_tokens: ['coral'],
    snippet: expect.stringContaining('<mark>coral</mark>'),
  })
  expect(hit.highlights).toMatchObject([{ field: 'overview', matched_tokens: ['coral'] }])
  expect(hit.text_match).toBeTypeOf('number')
  expect(hit).not.toHaveProperty('vector_distance')
})

test.each([
  [{ q: 'x' }, 400, 'No search fields specified for the query.'],
  [{ q: 'x', query_by: 'nothing' }, 404, 'Could not find a field named `nothing` in the schema.'],
  [{ q: 'x', query_by: 'points' }, 400, 'Field `points` should be a string or a string array.'],
  [{ q: '*', filter_by: 'nothing:1' }, 400, 'Could not find a filter field named `nothing` in the schema.'],
  [{ q: '*', filter_by: 'points' }, 400, 'Could not parse the filter query.'],
  [{ q: '*', filter_by: '(points:1' }, 400, 'Could not parse the filter query: unbalanced parentheses.'],
  [{ q: '*', filter_by: 'points:>many' }, 400, 'Error with filter field `points`: Not an int32.'],
  [
    { q: '*', sort_by: 'nothing:asc' },
    404,
    'Could not find a field named `nothing` in the schema for sorting.',
  ],
  [{ q: '*', sort_by: 'points' }, 400, 'Parameter `sort_by` is malformed.'],
  [{ q: '*', facet_by: 'points' }, 404, 'Could not find a facet field named `points` in the schema.'],
  [{ q: '*', page: 'abc' }, 400, 'Parameter `page` must be an unsigned integer.'],
])('2.3: %o', async (parameters, status, message) => {
  const reply = await search(parameters as Record<string, string>)
  expect([reply.status, reply.body]).toEqual([status, { message }])
})

test('2.3: an error of one search stands in its place in multi_search', async () => {
  const reply = await request('POST', '/multi_search', {
    searches: [{ collection: shows }, { collection: 'nowhere', q: '*' }, { collection: shows, q: '*' }],
  })
  expect(reply.status).toBe(200)
  expect(reply.body.results.slice(0, 2)).toEqual([
    { code: 400, error: 'Parameter `q` is required.' },
    {
      code: 404,
      error: 'Collection not found',
      detail: 'There is no collection or alias `nowhere`.',
    },
  ])
  expect(reply.body.results[2].found).toBe(5)
})

test('0: a query that is too long', async () => {
  const reply = await search({ q: 'x'.repeat(4100), query_by: 'title' })
  expect([reply.status, reply.body.message]).toEqual([
    400,
    'Query string exceeds max allowed length of 4000. Use the /multi_search end-point for larger payloads.',
  ])
})
