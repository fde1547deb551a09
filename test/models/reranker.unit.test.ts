import { expect, it } from 'vitest'
import { BGE_RERANKER, createReranker } from '../../src/models/reranker'
import { WorkersAi } from './workers-ai/workers-ai'

const scoring = (prepare: (ai: WorkersAi) => void): Promise<number[]> => {
  const ai = new WorkersAi()
  prepare(ai)
  const env = { AI: ai, AI_BACKEND: 'workers-ai' } as unknown as Cloudflare.Env
  return createReranker(BGE_RERANKER, env)!.score('wind', ['calm', 'wind'], new AbortController().signal)
}

it('scores the texts in their order', async () => {
  const [calm, wind] = await scoring(() => {})
  expect(wind).toBeGreaterThan(calm!)
})

it.each([
  ['outside of the list', [{ id: 2, score: 1 }]],
  ['before the list', [{ id: -1, score: 1 }]],
  [
    'twice',
    [
      { id: 0, score: 1 },
      { id: 0, score: 2 },
    ],
  ],
  ['without a number', [{ id: 0, score: Number.NaN }]],
])('takes no reply that scores a text %s', async (_, response) => {
  const malformed = { status: 400, message: 'Got malformed response from Cloudflare API.', upstream: 200 }
  await expect(scoring((ai) => (ai.run = async () => ({ response }) as never))).rejects.toMatchObject(
    malformed,
  )
})

it.each([
  [3040, 'limited', 429],
  [3036, 'exhausted', 429],
  [3041, 'denied', 403],
])('tells the fault of error %i of Workers AI', async (code, fault, upstream) => {
  await expect(scoring((ai) => ai.failNext(code))).rejects.toMatchObject({
    status: 400,
    message: expect.stringMatching(`^Cloudflare API error: ${code}: `),
    fault,
    upstream,
  })
})
