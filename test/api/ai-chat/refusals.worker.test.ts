/** The AI Chat Protocol inside workerd: what is refused, and forms. The numbers are the conformance cases of contract section 5. */
import { beforeAll, describe, expect, it } from 'vitest'
import { makeKey, QUESTION } from '../parley/stage'
import { send } from '../typesense/api'
import { ask, type Options, post, SDK, setChatStage, user } from './stage'

beforeAll(setChatStage)

describe('a refusal', () => {
  it.each<[string, number, unknown, Record<string, string>]>([
    ['15', 400, '{', {}],
    ['15', 400, '', {}],
    ['15', 400, [], {}],
    ['15', 413, JSON.stringify({ messages: [user('x'.repeat(2_000_000))] }), {}],
    ['16', 415, 'hello', { 'content-type': 'text/plain' }],
    ['11', 400, { messages: [] }, {}],
    ['', 400, { messages: [user(QUESTION)], context: '' }, {}],
    ['', 415, 'a=b', { 'content-type': 'application/x-www-form-urlencoded' }],
  ])('is JSON with a text (case %s): %i', async (_, status, body, headers) => {
    for (const path of ['/chat', '/chat/stream']) {
      const response = await post(path, body, { headers })
      expect([response.status, response.headers.get('content-type')]).toEqual([status, 'application/json'])
      const error = await response.json<Record<string, string>>()
      expect(error).toMatchObject({
        error: expect.any(String),
        message: error.error,
        code: expect.any(String),
      })
    }
  })

  it('is an object for the client of npm (case 35)', async () => {
    const object = { error: { code: 'bad_request', message: expect.any(String), field: 'messages' } }
    const bad = { messages: [] }
    const ways: [string, unknown, Options][] = [
      ['/chat', bad, { headers: SDK }],
      ['/chat', bad, { headers: { 'x-ms-useragent': 'ts-http-runtime/1' } }],
      ['/chat', { ...bad, sessionState: null }, {}],
      ['/chat?error_format=object', bad, {}],
      ['/v/2024-08/chat', bad, {}],
    ]
    for (const [path, body, options] of ways)
      expect(await (await post(path, body, options)).json()).toEqual(object)
    expect(await ask({ ...bad, session_state: null })).toMatchObject([400, { error: expect.any(String) }])
  })

  it('says which methods there are (case 17)', async () => {
    for (const [method, path, allow] of [
      ['GET', '/chat', 'POST'],
      ['PUT', '/chat/stream', 'POST'],
      ['DELETE', '/a/default/chat', 'POST'],
      ['POST', '/content/0.txt', 'GET'],
    ] as const) {
      const response = await send(method, path)
      expect([response.status, response.headers.get('allow')]).toEqual([405, allow])
      expect(await response.json()).toMatchObject({ code: 'method_not_allowed' })
    }
  })

  it('names no assistant that is not there, or not for this key', async () => {
    const key = await makeKey({ actions: ['documents:search'], collections: ['facts'] })
    const unknown = await ask({}, { key }, '/a/nobody/chat')
    expect(unknown).toMatchObject([404, { error: 'Assistant not found' }])
    expect(await ask({}, { key }, '/a/plans/chat')).toEqual(unknown)
    for (const wrong of [null, 'wrong']) expect((await ask({}, { key: wrong }))[0]).toBe(401)
    const bound = await makeKey({
      actions: ['documents:search'],
      collections: ['none'],
      limits: { assistant: 'plans' },
    })
    expect((await ask({ messages: [user('plan?')] }, { key: bound }, '/a/plans/chat'))[0]).toBe(200)
    expect((await send('GET', '/a/plans/content/Plan.pdf', { key: bound })).status).toBe(200)
    expect(await ask({}, { key: bound })).toEqual(unknown)
    expect((await send('GET', '/content/0.txt', { key: bound })).status).toBe(404)
  })

  it('does not keep a browser of another origin from asking (case 18)', async () => {
    const asked = 'content-type,x-ms-useragent,authorization'
    const response = await send('OPTIONS', '/chat/stream', {
      key: null,
      headers: {
        origin: 'https://a.example',
        'access-control-request-method': 'POST',
        'access-control-request-headers': asked,
      },
    })
    expect(response.ok).toBe(true)
    expect(response.headers.get('access-control-allow-headers')).toBe(asked)
    expect((await post('/chat', { messages: [] })).headers.get('access-control-allow-origin')).toBe('*')
  })
})

describe('a form', () => {
  const part = (name: string, type: string, content: string, filename?: string) =>
    `--b\r\ncontent-type: ${type}\r\ncontent-disposition: form-data; name=${name}${filename ? `; filename="${filename}"` : ''}\r\n\r\n${content}\r\n`
  const json = (name = 'json', filename?: string) =>
    part(name, 'application/json', JSON.stringify({ messages: [user('Who is called Kane?')] }), filename)
  const file = (name: string, type = 'text/plain', content = 'The guest is called Kane.') =>
    part(`"${name}"`, type, content, 'notes.txt')
  const submit = async (body: string) => {
    const response = await send('POST', '/chat', {
      body,
      headers: { 'content-type': 'multipart/form-data; boundary=b' },
    })
    // biome-ignore lint/suspicious/noExplicitAny: what came back is what the tests look into
    return [response.status, await response.json<any>()] as const
  }

  it.each([
    ['a name that is not quoted', json()],
    ['a quoted name', json('"json"')],
    ['a file name', json('json', 'blob')],
  ])('has its question in a part with %s (case 43)', async (_, question) => {
    expect((await submit(`${question}--b--\r\n`))[0]).toBe(200)
  })

  it('has text files that are read for this question', async () => {
    const [status, { message }] = await submit(`${json()}${file('messages[0].files[0]')}--b--\r\n`)
    expect([status, message.content]).toEqual([200, 'The guest is called Kane.'])
  })

  it.each([
    ['no question', `${file('messages[0].files[0]')}--b--\r\n`, 'json'],
    ['a gap', `${json()}${file('messages[0].files[1]')}--b--\r\n`, 'messages[0].files[0]'],
    ['a file of no message', `${json()}${file('messages[9].files[0]')}--b--\r\n`, 'messages[9].files[0]'],
    [
      'an image (case 42)',
      `${json()}${file('messages[0].files[0]', 'image/png')}--b--\r\n`,
      'messages[0].files[0]',
    ],
    ['no end', json(), undefined],
    ['another part', `${json()}${file('x')}--b--\r\n`, undefined],
    [
      'too long a file',
      `${json()}${file('messages[0].files[0]', 'text/plain', 'x'.repeat(9_000))}--b--\r\n`,
      undefined,
    ],
  ])('is refused with %s (case 43)', async (_, body, field) => {
    const [status, error] = await submit(body)
    expect([status, error.field]).toEqual([400, field])
  })
})
