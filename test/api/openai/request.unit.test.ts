import { describe, expect, it } from 'vitest'
import { readChatCompletion } from '../../../src/api/openai/ask-model'
import { errorBody, openAiError, unknownModel } from '../../../src/api/openai/errors'
import { InvalidParameter } from '../../../src/api/openai/question'
import { ApiError } from '../../../src/errors'
import { contentOf } from '../../../src/lib/parts'

const user = (content: unknown) => ({ role: 'user', content })

describe('a chat completion request', () => {
  it('is read with what was said before', () => {
    const messages = [
      { role: 'system', content: 'Be brief.' },
      { role: 'developer', content: [{ type: 'text', text: 'In French.' }] },
      user('How high?'),
      { role: 'assistant', content: '330 m' },
      { role: 'tool', content: 'x', tool_call_id: '1' },
      user([
        { type: 'text', text: 'And' },
        { type: 'text', text: 'there?' },
      ]),
    ]
    const body = {
      model: 'docs',
      messages,
      stream: true,
      stream_options: { include_usage: true },
      temperature: 0.2,
      max_tokens: 5,
      max_completion_tokens: 50,
      top_p: null,
      user: 'anna',
      metadata: { conversation_id: 'c-1' },
      tools: [],
      n: 1,
    }
    expect(readChatCompletion(body)).toEqual({
      model: 'docs',
      question: 'And\nthere?',
      transcript: [
        { role: 'user', content: contentOf('How high?') },
        { role: 'assistant', content: contentOf('330 m') },
        { role: 'assistant', content: [{ type: 'tool_result', id: '1', text: 'x' }] },
      ],
      instructions: 'Be brief.\n\nIn French.',
      stream: true,
      includeUsage: true,
      user: 'anna',
      conversation: 'c-1',
      sampling: { temperature: 0.2, max_completion_tokens: 50 },
      ignored: [],
    })
  })

  it.each([
    [null, null],
    [{ messages: [user('q')] }, 'model'],
    [{ model: 5, messages: [user('q')] }, 'model'],
    [{ model: 'docs' }, 'messages'],
    [{ model: 'docs', messages: [] }, 'messages'],
    [{ model: 'docs', messages: [{}] }, 'messages.0.role'],
    [{ model: 'docs', messages: [user(' ')] }, 'messages'],
    [{ model: 'docs', messages: [user(5)] }, 'messages.0.content'],
    [{ model: 'docs', messages: [user([{ type: 'image_url' }])] }, 'messages.0.content'],
    [{ model: 'docs', messages: [{ role: 'assistant', content: 'a' }] }, 'messages'],
    [{ model: 'docs', messages: [user('q')], n: 2 }, 'n'],
    [{ model: 'docs', messages: [user('q')], stream: 'yes' }, 'stream'],
    [{ model: 'docs', messages: [user('q')], temperature: '1' }, 'temperature'],
    [{ model: 'docs', messages: [user('q')], temperature: 2.1 }, 'temperature'],
    [{ model: 'docs', messages: [user('q')], max_tokens: 0 }, 'max_tokens'],
    [{ model: 'docs', messages: [user('q')], metadata: { conversation_id: 5 } }, 'metadata.conversation_id'],
  ])('%j is refused by its parameter', (body, param) => {
    expect(() => readChatCompletion(body)).toThrowError(expect.objectContaining({ status: 400, param }))
  })
})

describe('an error', () => {
  it.each([
    [400, 'invalid_request_error', null],
    [401, 'invalid_request_error', 'invalid_api_key'],
    [403, 'permission_error', 'origin_not_allowed'],
    [404, 'invalid_request_error', 'not_found'],
    [408, 'timeout_error', 'timeout'],
    [413, 'invalid_request_error', 'request_too_large'],
    [429, 'rate_limit_error', 'rate_limit_exceeded'],
    [500, 'server_error', 'server_error'],
    [503, 'server_error', 'server_error'],
  ])('of status %i has a type and a code', (status, type, code) => {
    expect(errorBody({ status, message: 'm' })).toEqual({ error: { message: 'm', type, param: null, code } })
  })

  it('names the parameter, the model, and when to come back', async () => {
    expect(await openAiError(new InvalidParameter('m', 'n')).json()).toMatchObject({ error: { param: 'n' } })
    const unknown = openAiError(unknownModel('gpt'))
    expect(unknown.status).toBe(404)
    expect(await unknown.json()).toMatchObject({ error: { param: 'model', code: 'model_not_found' } })
    expect(openAiError(new ApiError(429, 'm', 7)).headers.get('retry-after')).toBe('7')
  })

  it('of a key speaks of the header that these clients send', async () => {
    expect(await openAiError(new ApiError(401, 'Forbidden')).json()).toMatchObject({
      error: { message: expect.stringContaining('Authorization: Bearer') },
    })
  })
})
