/** The AI Chat Protocol under requests of every shape: each is answered, and errors keep the shape of their dialect. */
import fc from 'fast-check'
import { beforeAll, expect, it } from 'vitest'
import { OVERRIDES } from '../../src/registry/overrides'
import { setChatStage } from '../api/ai-chat/stage'
import { check, encoded, garbled, hostile, PATIENCE, survives } from './fuzz'

beforeAll(setChatStage)

/** A share of the cases is answered, which takes time. */
const SHARE = 0.5

const json = fc.jsonValue({ maxDepth: 2 })
/** What a request should have, and now and then something else. */
const usually = <T>(good: fc.Arbitrary<T>, odd: fc.Arbitrary<unknown> = json): fc.Arbitrary<unknown> =>
  fc.oneof({ arbitrary: good, weight: 20 }, { arbitrary: odd, weight: 1 })

const text = fc.oneof(hostile, fc.constantFrom('How high is the tower?', 'What does the plan cover?'))
const message = fc.record({
  role: usually(fc.constantFrom('user', 'assistant', 'system')),
  content: usually(text),
})
const question = fc.record({ role: fc.constant('user'), content: usually(text) })
const messages = usually(
  fc.tuple(fc.array(message, { maxLength: 3 }), usually(question)).map(([before, last]) => [...before, last]),
)
const name = fc.constantFrom(...OVERRIDES, 'use_gpt4v', 'approach', 'minimum_reranker_score', 'gpt4v_input')
const value = fc.oneof(
  hostile,
  json,
  fc.constantFrom(
    true,
    false,
    0,
    1,
    3,
    'text',
    'vectors',
    'hybrid',
    'health',
    'embedding',
    'tenant:=a',
    'de',
  ),
)
const apt = fc.record(
  {
    top: fc.integer({ min: 1, max: 50 }),
    retrieval_mode: fc.constantFrom('text', 'hybrid'),
    include_category: hostile,
    exclude_category: hostile,
    filter_by: fc.constantFrom('', 'id:*', 'tenant:=a'),
    minimum_search_score: fc.double({ min: 0, max: 1, noNaN: true }),
    temperature: fc.double({ min: 0, max: 2, noNaN: true }),
    prompt_template: hostile,
    language: fc.constantFrom('de', 'pt-BR'),
    suggest_followup_questions: fc.boolean(),
    semantic_ranker: fc.boolean(),
  },
  { requiredKeys: [] },
)
const overrides = usually(apt, fc.dictionary(fc.oneof(name, hostile), value, { maxKeys: 4 }))
const session = usually(fc.constantFrom(null, ''), fc.oneof(hostile, json, fc.uuid({ version: 4 })))
const body = fc.record(
  {
    messages,
    context: usually(
      fc.record({ overrides, approach: fc.constant('rrr'), userId: hostile }, { requiredKeys: [] }),
    ),
    session_state: session,
    sessionState: session,
    stream: usually(fc.boolean()),
  },
  { requiredKeys: ['messages'] },
)
const path = fc
  .tuple(
    fc.constantFrom('', '/a/plans', '/a/vectors', '/a/both', '/a/strict', '/a/open'),
    fc.constantFrom('', '/v/2024-01-28', '/v/2024-08', '/v/2026-04'),
    fc.constantFrom('/chat', '/chat/stream'),
  )
  .map((parts) => parts.join(''))

/** Errors are a text or an object, and good lines have none. */
function requireShape(status: number, answer: string): void {
  if (status >= 400) {
    const { error } = JSON.parse(answer)
    const said = typeof error === 'string' ? error : error.message
    expect(said).toMatch(/./)
    return
  }
  if (!answer.endsWith('\n')) return void JSON.parse(answer)
  const lines = answer.split('\n').filter((line) => line !== '')
  expect(lines.length).toBeGreaterThan(0)
  for (const line of lines) JSON.parse(line)
}

it('with bodies of any kind', { timeout: PATIENCE }, () =>
  check(
    fc.asyncProperty(path, usually(body), async (where, asked) => {
      const headers = { 'content-type': 'application/json' }
      const { status, text: answer } = await survives('POST', where, { body: asked, headers })
      requireShape(status, answer)
    }) as never,
    SHARE,
  ),
)

it('with forms of any kind', { timeout: PATIENCE }, () => {
  const form = garbled(
    '--b\r\n',
    '--b--\r\n',
    '\r\n',
    '\r\n\r\n',
    'content-disposition: form-data; name=json\r\n\r\n',
    'content-disposition: form-data; name="messages[0].files[0]"; filename="a.txt"\r\n\r\n',
    '{"messages":[{"role":"user","content":"hi"}]}\r\n',
  )
  const headers = { 'content-type': 'multipart/form-data; boundary=b' }
  return check(
    fc.asyncProperty(form, async (asked) => {
      const { status, text: answer } = await survives('POST', '/chat', { body: asked, headers })
      requireShape(status, answer)
    }) as never,
  )
})

it('with citations of any kind', { timeout: PATIENCE }, () =>
  check(
    fc.asyncProperty(
      fc.constantFrom('', '/a/plans', '/a/both'),
      fc.oneof(hostile, garbled('Plan.pdf', '#page=1', '.txt', '%2', '`', '*', '(')),
      async (where, label) => {
        const { status } = await survives('GET', `${where}/content/${encoded(label)}`)
        expect([200, 404]).toContain(status)
      },
    ) as never,
    SHARE,
  ),
)
