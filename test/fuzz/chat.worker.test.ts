/** Chat requests of every shape and of none: each is answered, no fault is the server's, and errors keep their shape. */
import fc from 'fast-check'
import { beforeAll, expect, it } from 'vitest'
import { setStage } from '../api/parley/stage'
import { call } from '../api/typesense/api'
import { check, hostile, PATIENCE, survives } from './fuzz'

beforeAll(async () => {
  await setStage()
  expect((await call('PUT', '/assistants/guide', { body: { model: 'm', collections: ['facts'] } }))[0]).toBe(
    200,
  )
})

/** A share of the cases is answered, which takes time. */
const SHARE = 0.3

/** What a request should have, and now and then something else. */
const usually = <T>(good: fc.Arbitrary<T>, odd: fc.Arbitrary<unknown> = json): fc.Arbitrary<unknown> =>
  fc.oneof({ arbitrary: good, weight: 25 }, { arbitrary: odd, weight: 1 })

const json = fc.jsonValue({ maxDepth: 2 })
const text = fc.oneof(hostile, fc.constantFrom('How high is the Eiffel Tower?', 'Who was its architect?'))
const role = usually(fc.constantFrom('user', 'assistant', 'system', 'developer', 'tool'))
const part = usually(
  fc.record({ type: fc.constantFrom('text', 'input_text', 'step-start', 'tool-x', 'source-url'), text }),
  fc.oneof(json, fc.record({ type: fc.constant('file') })),
)
const parts = fc.array(part, { minLength: 1, maxLength: 3 })
const id = fc.oneof(hostile, fc.uuid({ version: 4 }), fc.constantFrom('a chat of mine', 'DEFAULT_THREAD_ID'))
const said = fc.record(
  { id: usually(id), role, content: usually(fc.oneof(text, parts)) },
  { requiredKeys: ['role'] },
)
const asked = fc.oneof(
  fc.record({ id, role: fc.constant('user'), parts: usually(parts) }),
  fc.record({ role: fc.constant('user'), content: usually(fc.oneof(text, parts)) }),
)
const messages = usually(
  fc.tuple(fc.array(said, { maxLength: 3 }), usually(asked, said)).map(([before, last]) => [...before, last]),
)

const uiBody = fc.record(
  {
    id: usually(id),
    threadId: usually(id),
    messages,
    trigger: usually(fc.constantFrom('submit-message', 'regenerate-message')),
    messageId: usually(fc.oneof(id, fc.constantFrom('u1', 'c.1', '.1', '.'))),
    context: usually(fc.record({ overrides: fc.dictionary(hostile, json, { maxKeys: 3 }) })),
  },
  { requiredKeys: ['messages'] },
)

const completionBody = fc.record(
  {
    model: usually(fc.constant('guide'), fc.oneof(hostile, json)),
    messages,
    stream: usually(fc.boolean()),
    stream_options: usually(fc.record({ include_usage: fc.boolean() })),
    temperature: usually(fc.double({ min: 0, max: 2, noNaN: true }), fc.double()),
    max_tokens: usually(fc.integer({ min: 1 }), fc.integer()),
    user: usually(fc.string({ unit: 'binary', maxLength: 256 }), hostile),
    metadata: usually(fc.record({ conversation_id: id })),
  },
  { requiredKeys: ['model', 'messages'] },
)

const wellFormed = (text: string): unknown => JSON.parse(text)

it('on the UI message stream', { timeout: PATIENCE }, () =>
  check(
    fc.asyncProperty(usually(uiBody), async (body) => {
      const { status, text } = await survives('POST', '/ui/guide', { body })
      if (status >= 400) expect(wellFormed(text)).toMatchObject({ message: expect.stringMatching(/./) })
      else expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
    }) as never,
    SHARE,
  ),
)

it('as chat completions', { timeout: PATIENCE }, () =>
  check(
    fc.asyncProperty(usually(completionBody), async (body) => {
      const { status, text } = await survives('POST', '/v1/chat/completions', { body })
      if (status >= 400) {
        expect(wellFormed(text)).toEqual({
          error: {
            message: expect.any(String),
            type: expect.any(String),
            param: expect.toBeOneOf([null, expect.any(String)]),
            code: expect.toBeOneOf([null, expect.any(String)]),
          },
        })
      } else if (!text.endsWith('data: [DONE]\n\n')) {
        expect(wellFormed(text)).toMatchObject({ object: 'chat.completion' })
      }
    }) as never,
    SHARE,
  ),
)

const responseBody = fc.record(
  {
    model: usually(fc.constant('guide'), fc.oneof(hostile, json)),
    input: fc.oneof(usually(text), messages),
    instructions: usually(text),
    stream: usually(fc.boolean()),
    conversation: usually(fc.oneof(id, fc.record({ id }))),
    previous_response_id: usually(
      fc.oneof(
        id,
        fc.uuid().map((uuid) => `resp_${uuid}.1`),
      ),
    ),
  },
  { requiredKeys: ['model', 'input'] },
)

it('as responses', { timeout: PATIENCE }, () =>
  check(
    fc.asyncProperty(usually(responseBody), async (body) => {
      const { status, text } = await survives('POST', '/v1/responses', { body })
      if (status >= 400) expect(wellFormed(text)).toMatchObject({ error: { message: expect.any(String) } })
      else expect(text).toMatch(/"object":"response".*"status":"completed"/s)
    }) as never,
    SHARE,
  ),
)

it('for chats of any name', { timeout: PATIENCE }, () =>
  check(
    fc.asyncProperty(hostile, async (name) => {
      const chat = encodeURIComponent(name.toWellFormed())
      const answers = [
        await survives('GET', `/ui/guide/${chat}/stream`),
        await survives('GET', `/ui/guide?chatId=${chat}`),
        await survives('POST', `/ui/guide/${chat}/stop`),
        await survives('GET', `/v1/models/${chat}`),
        await survives('POST', `/ui/${chat}`, { body: { message: { role: 'user', content: 'q' } } }),
      ]
      expect(answers.map(({ status }) => status).filter((status) => status >= 500)).toEqual([])
    }) as never,
    SHARE / 3,
  ),
)
