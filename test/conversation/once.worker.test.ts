import { env } from 'cloudflare:workers'
import { afterEach, expect, it, vi } from 'vitest'
import { answerOnce } from '../../src/conversation/once'
import { contentOf } from '../../src/parts'

afterEach(() => vi.restoreAllMocks())

it('tells its reader nothing that is for operators, and numbers its events without a gap', async () => {
  vi.spyOn(globalThis, 'fetch').mockImplementation(async () =>
    Response.json({ choices: [{ message: { content: 'Hi.' }, finish_reason: 'stop' }] }),
  )
  const events = answerOnce(env, {
    question: contentOf('Who?'),
    model: {
      id: 'm',
      model_name: 'local/extractive',
      history_collection: 'talk',
      max_bytes: 16_384,
      ttl: 60,
    },
    historyId: '',
    given: { passages: [], system: 'A secret prompt.', turns: 1 },
    onSearchError: 'fail',
    protocol: 'opensearch',
    asker: { owner: 'admin', userId: '' },
    fingerprint: 'f',
  })
  const lines = (await new Response(events).text()).trim().split('\n')
  const told = lines.map((line) => JSON.parse(line) as { type: string; seq: number })
  expect(told.map(({ type }) => type)).not.toContain('call')
  expect(told.at(-1)!.type).toBe('done')
  const numbered = told.filter(({ type }) => type !== 'results')
  expect(numbered.map(({ seq }) => seq)).toEqual(numbered.map((_, at) => at))
})
