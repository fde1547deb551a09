/**
 * Two users and an admin on all routes of memory: who gets what, also for requests that are malformed, and what is done
 * to find that out. A user is the key that Basic authentication carries as its password, or any other way.
 */
import { createExecutionContext, listDurableObjectIds, waitOnExecutionContext } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { sealedId } from '../../../src/conversation/conversation-id'
import worker from '../../../src/index'
import { asking, setStage, take } from '../../conversation/stage'
import { call } from '../typesense/api'

const MEMORY = '/_plugins/_ml/memory'

type Way = (key: string) => Record<string, string>

const WAYS: Record<string, Way> = {
  'Basic authentication': (key) => ({ authorization: `Basic ${btoa(`one name for all:${key}`)}` }),
  'a bearer token': (key) => ({ authorization: `Bearer ${key}` }),
  'an API key': (key) => ({ 'x-api-key': key }),
}

interface Reply {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: what came back is what the tests look into
  body: any
  text: string
  /** what was done for it: statements of D1, and calls of Conversation objects */
  work: { statements: number; objects: number }
}

/** Counts what a request asks of D1 and of Conversation objects. */
function counted(): { of: Cloudflare.Env; work: Reply['work'] } {
  const work = { statements: 0, objects: 0 }
  const bound = <T extends object>(target: T, name: string | symbol): unknown => {
    const value = Reflect.get(target, name) as unknown
    return typeof value === 'function' ? value.bind(target) : value
  }
  const DB = new Proxy(env.DB, {
    get(target, name) {
      if (name === 'prepare') work.statements += 1
      return bound(target, name)
    },
  })
  const CONVERSATION = new Proxy(env.CONVERSATION, {
    get(target, name) {
      if (name === 'get' || name === 'getByName') work.objects += 1
      return bound(target, name)
    },
  })
  return { of: { ...env, DB, CONVERSATION }, work }
}

async function send(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = WAYS['Basic authentication']!('xyz'),
): Promise<Reply> {
  const { of, work } = counted()
  const context = createExecutionContext()
  const request = new Request(`https://parley.test${path}`, {
    method,
    headers: { ...headers, ...(body !== undefined && { 'content-type': 'application/json' }) },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const response = await worker.fetch(request as never, of, context)
  const text = await response.text()
  await waitOnExecutionContext(context)
  return { status: response.status, text, body: text === '' ? undefined : JSON.parse(text), work }
}

const makeKey = async (more: Record<string, unknown> = {}): Promise<string> => {
  const body = { description: '', actions: ['conversations:*'], collections: ['nothing'], ...more }
  return (await call('POST', '/keys', { body }))[1].value
}

beforeAll(() => setStage())

/** A memory of somebody's with a message and a trace of it. */
async function makeMemory(headers: Record<string, string>): Promise<{ id: string; message: string }> {
  const { body: made } = await send('POST', MEMORY, { name: 'private' }, headers)
  const id = made.memory_id
  const { body: said } = await send('POST', `${MEMORY}/${id}/messages`, { input: 'secret' }, headers)
  const trace = { input: 'a secret step', parent_message_id: said.message_id, trace_number: 1 }
  expect((await send('POST', `${MEMORY}/${id}/messages`, trace, headers)).status).toBe(200)
  return { id, message: said.message_id }
}

type Route = readonly [
  name: string,
  method: string,
  path: (id: string, message: string) => string,
  body: unknown,
  denied: readonly [status: number, what: string],
]

const UNAUTHORIZED = [401, 'status_exception'] as const
const SECURITY = [500, 'security_exception'] as const

/** Every route that names a memory or a message. */
const ROUTES: Route[] = [
  ['reads a memory', 'GET', (id) => `/${id}`, undefined, UNAUTHORIZED],
  ['renames it', 'PUT', (id) => `/${id}`, { name: 'mine' }, UNAUTHORIZED],
  ['adds a message', 'POST', (id) => `/${id}/messages`, { input: 'x' }, UNAUTHORIZED],
  ['adds a trace', 'POST', (id) => `/${id}/messages`, 'TRACE', UNAUTHORIZED],
  ['lists messages', 'GET', (id) => `/${id}/messages`, undefined, UNAUTHORIZED],
  ['searches messages', 'POST', (id) => `/${id}/_search`, {}, UNAUTHORIZED],
  ['reads a message', 'GET', (_, message) => `/message/${message}`, undefined, UNAUTHORIZED],
  ['reads a message that is not there', 'GET', (id) => `/message/${id}_99`, undefined, UNAUTHORIZED],
  ['changes a message', 'PUT', (_, message) => `/message/${message}`, { response: 'x' }, UNAUTHORIZED],
  ['lists traces', 'GET', (_, message) => `/message/${message}/traces`, undefined, UNAUTHORIZED],
  ['deletes a memory', 'DELETE', (id) => `/${id}`, undefined, [404, 'status_exception']],
  ['lists interactions', 'GET', (id) => `/conversation/${id}`, undefined, SECURITY],
  ['adds an interaction', 'POST', (id) => `/conversation/${id}`, { input: 'x' }, SECURITY],
  ['deletes a conversation', 'DELETE', (id) => `/conversation/${id}`, undefined, [200, 'success']],
]

/** The same routes with something wrong about the request. */
const MALFORMED: [name: string, method: string, path: (id: string) => string, body: unknown][] = [
  ['a body that is no JSON', 'PUT', (id) => `/${id}`, '{"name":'],
  ['a body that is a list', 'PUT', (id) => `/${id}`, []],
  ['nothing to change', 'PUT', (id) => `/${id}`, {}],
  ['a message that says nothing', 'POST', (id) => `/${id}/messages`, {}],
  ['a message that is an object', 'POST', (id) => `/${id}/messages`, { input: {} }],
  [
    'a trace number that is no number',
    'POST',
    (id) => `/${id}/messages`,
    { input: 'x', trace_number: 'one' },
  ],
  ['an interaction that is an object', 'POST', (id) => `/conversation/${id}`, { input: {} }],
  ['a page of nothing', 'GET', (id) => `/${id}/messages?max_results=0`, undefined],
  ['a page that is no number', 'GET', (id) => `/conversation/${id}?next_token=x`, undefined],
  ['a page too far', 'GET', (id) => `/${id}/messages?next_token=10000`, undefined],
  ['an unknown parameter', 'GET', (id) => `/${id}?deep=true`, undefined],
  ['no change of a message', 'PUT', (id) => `/message/${id}_1`, {}],
  ['a page of traces of nothing', 'GET', (id) => `/message/${id}_1/traces?max_results=-1`, undefined],
]

/**
 * A way is done with once its key is known, before any route. Without FULL all routes are asked in one way, and in the others one of
 * each refusal.
 */
const isWhole = (way: string): boolean => env.FULL !== '' || way === 'Basic authentication'
const ONE_OF_EACH = ['reads a memory', 'deletes a memory', 'lists interactions', 'deletes a conversation']

describe.each(Object.entries(WAYS))('users by %s', (name, way) => {
  const routes = ROUTES.filter(([route]) => isWhole(name) || ONE_OF_EACH.includes(route))
  const malformed = isWhole(name) ? MALFORMED : MALFORMED.slice(0, 1)
  let [own, other, admin]: Record<string, string>[] = []
  beforeAll(async () => {
    own = way(await makeKey())
    other = way(await makeKey())
    admin = way('xyz')
  })

  const bodyFor = (body: unknown, message: string): unknown =>
    body === 'TRACE' ? { input: 'x', parent_message_id: message, trace_number: 2 } : body

  it.each(routes)('%s: its owner and the admin may, another user may not', async (...route) => {
    const [, method, path, body, [status, what]] = route
    const { id, message } = await makeMemory(own!)
    const before = await send('GET', `${MEMORY}/${id}/messages`, undefined, own)
    const refused = await send(method, MEMORY + path(id, message), bodyFor(body, message), other)
    expect([refused.status, refused.body.error?.type ?? Object.keys(refused.body)[0]]).toEqual([status, what])
    expect(refused.text).not.toContain('secret')
    expect(await send('GET', `${MEMORY}/${id}/messages`, undefined, own)).toMatchObject({ body: before.body })
    for (const headers of [admin!, own!]) {
      const mine = headers === own ? { id, message } : await makeMemory(own!)
      const allowed = await send(
        method,
        MEMORY + path(mine.id, mine.message),
        bodyFor(body, mine.message),
        headers,
      )
      expect(allowed.status).toBe(route[0].endsWith('not there') ? 404 : 200)
    }
  })

  it('lists and searches show nobody the memories of another, and the admin all', async () => {
    const [mine, theirs] = [await makeMemory(own!), await makeMemory(other!)]
    const seen = async (headers: Record<string, string>): Promise<string[]> => {
      const replies = await Promise.all([
        send('GET', `${MEMORY}?max_results=1000`, undefined, headers),
        send('GET', `${MEMORY}/conversation?max_results=1000`, undefined, headers),
        send('POST', `${MEMORY}/_search`, { size: 1000 }, headers),
      ])
      return replies.map(({ text }) => text)
    }
    for (const text of await seen(own!)) {
      expect(text).toContain(mine.id)
      expect(text).not.toContain(theirs.id)
    }
    for (const text of await seen(other!)) {
      expect(text).toContain(theirs.id)
      expect(text).not.toContain(mine.id)
    }
    for (const text of await seen(admin!)) for (const { id } of [mine, theirs]) expect(text).toContain(id)
  })

  it.each(malformed)('%s is told alike, whosever the memory is', async (_name, method, path, body) => {
    const { id } = await makeMemory(own!)
    const texts = await Promise.all(
      [
        [id, own!],
        [id, other!],
        [await sealedId(env), other!],
        ['nobody-made-this', other!],
      ].map(async ([memory, headers]) => {
        const { status, text } = await send(
          method,
          MEMORY + path(memory as string),
          body,
          headers as Record<string, string>,
        )
        expect(status).toBe(400)
        return text.replaceAll(memory as string, 'ID')
      }),
    )
    expect(new Set(texts).size).toBe(1)
  })
})

describe('what is done for an answer', () => {
  // What is kept of keys and names grows old in seconds, and a slow machine would take those between two requests.
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'] })
    return () => vi.useRealTimers()
  })

  /** Ids that are nobody's, and ids of somebody else's, each as the server makes them and as an import brings them. */
  async function ids(): Promise<{ unknown: string[]; foreign: string[] }> {
    const headers = WAYS['an API key']!(await makeKey())
    const { id } = await makeMemory(headers)
    const imported = await asking('Who directed Alien?', { conversationId: crypto.randomUUID() })
    await take(imported)
    return { unknown: [await sealedId(env), crypto.randomUUID()], foreign: [id, imported.conversationId] }
  }

  const ways = ROUTES.map(([name, method, path, body]) => [name, method, path, body] as const)

  it.each(ways)('%s: the same, whether it is not there or not yours', async (_name, method, path, body) => {
    const stranger = WAYS['an API key']!(await makeKey())
    const { unknown, foreign } = await ids()
    const reply = (id: string) =>
      send(method, MEMORY + path(id, `${id}_1`), body === 'TRACE' ? { input: 'x' } : body, stranger)
    // The first request of a key has more to do.
    await reply(unknown[0]!)
    for (const at of [0, 1]) {
      const [missing, closed] = [await reply(unknown[at]!), await reply(foreign[at]!)]
      expect(missing.work).toEqual(closed.work)
    }
    expect((await listDurableObjectIds(env.CONVERSATION)).length).toBeGreaterThan(0)
  })

  it('a search that is answered: nothing is asked, and what is done is the same', async () => {
    const pipeline = {
      response_processors: [
        { retrieval_augmented_generation: { model_id: 'm', context_field_list: ['text'] } },
      ],
    }
    const key = await makeKey({ actions: ['documents:search', 'conversations:get'], collections: ['films'] })
    const reply = (memory_id: string) =>
      send(
        'POST',
        '/films/_search',
        {
          query: { match: { text: 'alien' } },
          search_pipeline: pipeline,
          ext: { generative_qa_parameters: { llm_question: 'Who directed Alien?', memory_id } },
        },
        { 'x-api-key': key },
      )
    const { unknown, foreign } = await ids()
    // The first requests of a key look up more, and what they know may be kept after their reply.
    for (const id of [unknown[0]!, unknown[1]!, unknown[0]!]) await reply(id)
    for (const at of [0, 1]) {
      const [missing, closed] = [await reply(unknown[at]!), await reply(foreign[at]!)]
      expect([missing.status, missing.body.error.type]).toEqual([404, 'resource_not_found_exception'])
      expect([closed.status, closed.body.error.type]).toEqual([401, 'status_exception'])
      expect(missing.work).toEqual(closed.work)
      expect(closed.text).not.toContain('hits')
    }
  })

  it.each([
    ['GET', ''],
    ['GET', '/trace'],
    ['GET', '/events'],
    ['POST', '/stop'],
    ['PATCH', ''],
    ['DELETE', ''],
  ])("Parley's own %s /conversations/ID%s: the same work, and the same bytes", async (method, path) => {
    const key = await makeKey({ collections: ['else'] })
    const { unknown, foreign } = await ids()
    const body = method === 'PATCH' ? { title: 'mine' } : undefined
    const reply = (id: string) => send(method, `/conversations/${id}${path}`, body, { 'x-api-key': key })
    await reply(unknown[0]!)
    for (const at of [0, 1]) {
      const [missing, closed] = [await reply(unknown[at]!), await reply(foreign[at]!)]
      expect([missing.status, missing.text, missing.work]).toEqual([404, closed.text, closed.work])
    }
  })
})
