import { env } from 'cloudflare:workers'
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { bindWorkersAi } from '../models/workers-ai/bind'
import { WorkersAi } from '../models/workers-ai/workers-ai'
import { idsOf, makeCollection, refusal, type TestCollection } from './make-collection'

const MODEL = 'cloudflare/@cf/baai/bge-reranker-base'

let ai: WorkersAi
let books: TestCollection

/** Documents whose keyword order, by how often they say "wind", is not the order of what else the question says. */
const BOOKS = Array.from({ length: 12 }, (_, index) => ({
  id: `${index}`,
  title: `${'wind '.repeat(12 - index)}${['in', 'the', 'tall', 'green', 'willows'].slice(0, index % 6).join(' ')}`,
  body: 'nothing to see',
}))
const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'body', type: 'string', optional: true },
]

beforeAll(async () => {
  bindWorkersAi(new WorkersAi())
  books = await makeCollection(FIELDS, BOOKS)
})
beforeEach(() => {
  ai = new WorkersAi()
  bindWorkersAi(ai)
})

const Q = { q: 'wind in the tall green willows', query_by: 'title', drop_tokens_threshold: '1000000' }

describe('rerank_model', () => {
  it('puts the best hits in the order of the model, by the fields that were searched', async () => {
    const before = await books.search(Q)
    const result = await books.search({ ...Q, rerank_model: MODEL })
    const scores = result.hits!.map((hit) => hit.rerank_score!)
    expect(scores).toEqual([...scores].sort((a, b) => b - a))
    expect(new Set(scores).size).toBeGreaterThan(3)
    expect(idsOf(result).slice(0, 2).sort()).toEqual(['11', '5'])
    expect(idsOf(result)).not.toEqual(idsOf(before))
    expect(result.found).toBe(before.found)
    expect(result.rerank).toEqual({ model: MODEL, reranked: 12, time_ms: expect.any(Number) })
    const [call] = ai.calls
    expect(call).toMatchObject({ model: '@cf/baai/bge-reranker-base', inputs: { query: Q.q } })
    const { contexts } = call!.inputs as { contexts: { text: string }[] }
    expect(contexts.map(({ text }) => text).sort()).toEqual(BOOKS.map(({ title }) => title).sort())
  })

  it('orders only the best, and pages through them as through any others', async () => {
    const top = await books.search({ ...Q, rerank_model: MODEL, rerank_top: '5', per_page: '12' })
    const before = idsOf(await books.search({ ...Q, per_page: '12' }))
    expect(idsOf(top).slice(0, 5).sort()).toEqual(before.slice(0, 5).sort())
    expect(idsOf(top).slice(5)).toEqual(before.slice(5))
    expect(top.hits!.filter((hit) => 'rerank_score' in hit)).toHaveLength(5)
    const pages = []
    for (const page of ['1', '2', '3']) {
      const result = await books.search({ ...Q, rerank_model: MODEL, rerank_top: '5', per_page: '4', page })
      expect(result.rerank!.reranked).toBe(page === '3' ? 0 : 5)
      pages.push(...idsOf(result))
    }
    expect(pages).toEqual(idsOf(top))
    expect(ai.calls).toHaveLength(3)
  })

  it('goes through AI Gateway where one is set', async () => {
    Object.assign(env, { AI_GATEWAY: 'account/gate' })
    const behind = await makeCollection(FIELDS, BOOKS)
    await behind.search({ ...Q, rerank_model: MODEL })
    Object.assign(env, { AI_GATEWAY: '' })
    expect(ai.calls[0]!.options).toMatchObject({ gateway: { id: 'gate' } })
  })

  it('leaves pinned hits where they are', async () => {
    const result = await books.search({ ...Q, rerank_model: MODEL, pinned_hits: '0:2' })
    expect(idsOf(result)[0]).toBe('11')
    expect(result.hits![1]).toMatchObject({ document: { id: '0' }, curated: true })
    expect(result.hits![1]).not.toHaveProperty('rerank_score')
  })

  it('is not asked when there are no words, or no hits', async () => {
    await books.search({ q: '*', rerank_model: MODEL })
    await books.search({ q: 'zebra', query_by: 'title', rerank_model: MODEL })
    expect(ai.calls).toHaveLength(0)
  })

  it.each([
    ['fails', () => ai.failNext(3040), 'Cloudflare API error: 3040: Capacity'],
    [
      'answers something else',
      () => vi.spyOn(env.AI, 'run').mockResolvedValueOnce({ response: 'hello' } as never),
      'Got malformed response from Cloudflare API.',
    ],
    [
      'takes too long',
      () => vi.spyOn(env.AI, 'run').mockImplementationOnce((() => new Promise(() => {})) as never),
      'The model did not answer within 30 ms.',
    ],
  ])('changes nothing when the model %s, and says why', async (_, fail, error) => {
    fail()
    const result = await books.search({ ...Q, rerank_model: MODEL, rerank_timeout_ms: '30' })
    expect(idsOf(result)).toEqual(idsOf(await books.search(Q)))
    expect(result.rerank).toMatchObject({ reranked: 0, error: expect.stringContaining(error) })
  })

  it.each([
    [{ rerank_model: 'cohere/rerank' }, /^400 `cohere\/rerank` is not a reranking model/],
    [{ rerank_model: MODEL, rerank_top: '101' }, /^400 Parameter `rerank_top` must be .* 1 and 100\.$/],
    [{ rerank_model: MODEL, rerank_timeout_ms: 'soon' }, /^400 Parameter `rerank_timeout_ms`/],
  ])('refuses %j', async (parameters, message) => {
    expect(await refusal(books, { ...Q, ...parameters })).toMatch(message)
    expect(ai.calls).toHaveLength(0)
  })

  it('cannot be combined with groups', async () => {
    const grouped = await makeCollection([{ name: 'kind', type: 'string', facet: true }], [{ kind: 'a' }])
    const parameters = { q: 'a', query_by: 'kind', group_by: 'kind', rerank_model: MODEL }
    expect(await refusal(grouped, parameters)).toBe('400 `rerank_model` cannot be combined with `group_by`.')
  })

  it('changes nothing where there is no Workers AI, and says so', async () => {
    Object.assign(env, { AI_BACKEND: 'local' })
    const local = await makeCollection(FIELDS, BOOKS)
    const result = await local.search({ ...Q, rerank_model: MODEL })
    expect(idsOf(result)).toEqual(idsOf(await local.search(Q)))
    expect(result.rerank).toMatchObject({ reranked: 0, error: expect.stringContaining('Workers AI') })
  })
})
