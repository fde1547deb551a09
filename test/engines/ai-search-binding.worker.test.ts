/**
 * Collections in Cloudflare AI Search by the binding AI_SEARCH. An object with the methods of the binding's types plays it, and
 * throws the errors that its documentation names: https://developers.cloudflare.com/ai-search/troubleshooting/api-error-codes
 */
import { env } from 'cloudflare:workers'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ASK, setStage } from '../api/parley/stage'
import { call, send } from '../api/typesense/api'

/** what the binding was asked: the instance, and the request */
let asked: [string, unknown][]
let fails: (() => Promise<never>) | undefined

const CHUNKS = [
  {
    id: 'c1',
    type: 'text',
    score: 0.75,
    text: 'The keeper of the lighthouse is Ada.',
    item: { key: 'https://example.com/keeper', timestamp: 5, metadata: { title: 'The keeper', room: 'a' } },
  },
  { id: 'c2', type: 'text', score: 0.5, text: 'The lamp is red.', item: { key: 'lamp.md' } },
]

/** The methods of `AiSearchNamespace` and `AiSearchInstance` that Parley calls. */
const namespace = {
  get: (instance: string) => ({
    search: async (request: unknown) => {
      asked.push([instance, request])
      await fails?.()
      return { search_query: 'keeper', chunks: CHUNKS }
    },
    stats: async () => {
      if (instance !== 'handbook') throw named('AiSearchNotFoundError', 'ai_search_not_found')
      return { completed: 7, queued: 1 }
    },
  }),
}

const named = (name: string, message: string): Error => Object.assign(new Error(message), { name })

const ENGINE = { type: 'ai-search', instance: 'handbook', timeout_ms: 50 }

beforeAll(setStage)

beforeEach(async () => {
  asked = []
  fails = undefined
  Object.assign(env, { AI_SEARCH: namespace })
  await call('DELETE', '/collections/pages')
  const [status, reply] = await call('POST', '/collections', { body: { name: 'pages', engine: ENGINE } })
  expect([status, reply.num_documents]).toEqual([201, 7])
})

const search = (parameters: Record<string, string>) =>
  call('GET', `/collections/pages/documents/search?${new URLSearchParams(parameters)}`)

describe('by the binding', () => {
  it('shows the documents of the instance, and no credentials', async () => {
    const [status, reply] = await call('GET', '/collections/pages')
    expect(status).toBe(200)
    expect(reply).toMatchObject({ num_documents: 7, engine: { type: 'ai-search', credentials: {} } })
  })

  it('is not connected to an instance that is not there', async () => {
    const body = { name: 'others', engine: { ...ENGINE, instance: 'nowhere' } }
    expect((await call('POST', '/collections', { body }))[0]).toBe(404)
  })

  it('finds passages, with the filter in the form of AI Search', async () => {
    const [status, reply] = await search({ q: 'keeper', filter_by: 'room:=a && floor:>2', per_page: '2' })
    expect(status).toBe(200)
    expect(reply.hits[0]).toMatchObject({
      document: { id: 'c1', title: 'The keeper', url: 'https://example.com/keeper', room: 'a' },
      vector_distance: 0.25,
    })
    expect(reply.hits[1].document).toMatchObject({ title: 'lamp.md', text: 'The lamp is red.' })
    expect(asked).toEqual([
      [
        'handbook',
        {
          query: 'keeper',
          ai_search_options: {
            retrieval: {
              max_num_results: 2,
              return_on_failure: false,
              filters: { room: { $eq: 'a' }, floor: { $gt: 2 } },
            },
          },
        },
      ],
    ])
  })

  it.each([
    ['AiSearchNotFoundError', 'ai_search_not_found', 404],
    ['AiSearchError', 'invalid_filter', 400],
    ['AiSearchInternalError', 'unable_to_connect_to_ai_search', 503],
  ])('tells of an error: %s', async (name, message, status) => {
    fails = async () => {
      throw named(name, message)
    }
    const [said, reply] = await search({ q: 'keeper' })
    expect(said).toBe(status)
    if (status !== 404) expect(reply.message).toContain(message)
  })

  it('stops waiting at the time limit', async () => {
    fails = () => new Promise(() => {})
    const [status, reply] = await search({ q: 'keeper' })
    expect([status, reply.message]).toEqual([503, expect.stringContaining('50 ms')])
  })

  it('answers a question in a stream, with the passage as its source', async () => {
    const body = {
      ...ASK,
      question: 'Who is the keeper of the lighthouse?',
      collections: ['pages'],
      stream: true,
    }
    const response = await send('POST', '/conversations', { body })
    expect(response.status).toBe(200)
    const text = await response.text()
    expect(text).toContain('Ada')
    expect(text).toContain('https://example.com/keeper')
    expect(asked[0]![0]).toBe('handbook')
  })

  it('ends a stream with the error of AI Search', async () => {
    fails = async () => {
      throw named('AiSearchInternalError', 'unable_to_connect_to_ai_search')
    }
    const body = { ...ASK, collections: ['pages'], stream: true }
    const response = await send('POST', '/conversations', { body })
    expect(await response.text()).toContain('search_unavailable')
  })

  it('is told of when the binding has gone', async () => {
    Reflect.deleteProperty(env, 'AI_SEARCH')
    const [status, reply] = await search({ q: 'keeper' })
    expect([status, reply.message]).toEqual([400, expect.stringContaining('AI_SEARCH')])
  })
})
