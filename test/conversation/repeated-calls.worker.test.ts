/** What becomes of a request when a call between objects fails in passing, as it does at a deployment. */
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { app } from '../../src/app'
import { ApiError } from '../../src/errors'
import * as handle from '../../src/search/collection/handle'
import { asking, collectionNamed, messagesOf, setStage, take } from './stage'

beforeAll(() => setStage())
afterEach(() => vi.restoreAllMocks())

interface Fault {
  /** the method that fails */
  method: string
  error: Error
  /** whether it is carried out, and its answer is lost */
  late?: boolean
}

/** A namespace whose objects fail at the first call of a method. */
function faulty(namespace: DurableObjectNamespace, { method, error, late }: Fault, calls: string[]) {
  let broken = false
  const stub = (real: Record<string, (...args: unknown[]) => Promise<unknown>>) =>
    new Proxy(real, {
      // A stub's methods are called on it, or they count as names of further methods.
      get:
        (target, name: string) =>
        async (...args: unknown[]) => {
          const fails = name === method && !broken
          if (name === method) calls.push(method)
          if (!fails) return target[name]!(...args)
          broken = true
          if (late) await target[name]!(...args)
          throw error
        },
    })
  return {
    idFromName: (name: string) => namespace.idFromName(name),
    get: (id: DurableObjectId) => stub(namespace.get(id) as never),
  }
}

const moved = () => Object.assign(new Error('The object was reset.'), { retryable: true })
const overloaded = () => Object.assign(moved(), { overloaded: true })

async function send(
  path: string,
  body: unknown,
  binding: 'COLLECTION' | 'CONVERSATION',
  fault: Fault,
): Promise<{ status: number; retryAfter: string | null; calls: string[]; body: Record<string, unknown> }> {
  const calls: string[] = []
  const around = { ...env, [binding]: faulty(env[binding] as DurableObjectNamespace, fault, calls) }
  const response = await app.fetch(
    new Request(`http://parley${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'x-typesense-api-key': 'xyz' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }),
    around as unknown as Cloudflare.Env,
    { waitUntil: () => {}, passThroughOnException: () => {}, props: {} } as unknown as ExecutionContext,
  )
  const retryAfter = response.headers.get('retry-after')
  return { status: response.status, retryAfter, calls, body: await response.json() }
}

const SEARCH = '/collections/films/documents/search?q=alien&query_by=title'
const question = (text: string) => ({ question: text, model: 'm', collections: ['films'] })

describe('a search', () => {
  it('is sent again when its collection was moved', async () => {
    const { status, body, calls } = await send(SEARCH, undefined, 'COLLECTION', {
      method: 'search',
      error: moved(),
    })
    expect({ status, found: body.found, calls }).toEqual({
      status: 200,
      found: 1,
      calls: ['search', 'search'],
    })
  })

  it('is a 503 with a time to wait when its collection is overloaded', async () => {
    const { status, retryAfter, calls, body } = await send(SEARCH, undefined, 'COLLECTION', {
      method: 'search',
      error: overloaded(),
    })
    expect({ status, calls }).toEqual({ status: 503, calls: ['search'] })
    expect(Number(retryAfter)).toBeGreaterThan(0)
    expect(body.message).toMatch(/Try again later/)
  })
})

describe('a question', () => {
  it.each([true, false])('is asked again, and answered once (carried out: %s)', async (late) => {
    const { status, body, calls } = await send(
      '/conversations',
      question(`Who directed Alien ${late}?`),
      'CONVERSATION',
      {
        method: 'ask',
        error: moved(),
        late,
      },
    )
    expect({ status, calls }).toEqual({ status: 200, calls: ['ask', 'ask'] })
    expect(body.turn).toBe(1)
    expect(await messagesOf(String(body.conversation_id))).toHaveLength(2)
  })

  it('to an overloaded conversation is a 503', async () => {
    const { status, retryAfter } = await send('/conversations', question('And?'), 'CONVERSATION', {
      method: 'ask',
      error: overloaded(),
    })
    expect(status).toBe(503)
    expect(Number(retryAfter)).toBeGreaterThan(0)
  })
})

it('a document is not written twice, nor is its writing passed over in silence', async () => {
  const { status, calls, body } = await send(
    '/collections/films/documents',
    { title: 'Ronin', text: 'A chase.' },
    'COLLECTION',
    { method: 'write', error: moved(), late: true },
  )
  expect({ status, calls }).toEqual({ status: 503, calls: ['write'] })
  expect(body.message).toMatch(/may have been done/)
})

describe('a collection that is overloaded', () => {
  const { collectionObject } = handle

  /** Refuses the searches of a collection, as its handle does for an overloaded object. */
  const overload = (objectId: string): void => {
    vi.spyOn(handle, 'collectionObject').mockImplementation((env, id) => {
      const object = collectionObject(env, id)
      if (id !== objectId) return object
      return new Proxy(object, {
        get: (target, name: keyof typeof object) =>
          name === 'search' ? () => Promise.reject(new ApiError(503, 'Too many requests.', 5)) : target[name],
      })
    })
  }

  it('leaves an answer to the others', async () => {
    const { objectId } = await collectionNamed('films')
    const { objectId: other } = await collectionNamed('talk')
    overload(other)
    const searches = [other, objectId].map((objectId) => ({
      collection: 'c',
      objectId,
      params: { query_by: 'title,text' },
    }))
    const events = await take(await asking('Who directed Alien?', { searches, shape: 'multi' }))
    expect(events.find(({ type }) => type === 'retrieval')).toMatchObject({
      replies: [{ error: 'Too many requests.', code: 503 }, { result: { found: 1 } }],
    })
    expect(events.at(-1)).toMatchObject({ type: 'done' })
  })

  it('is an error that passes where there is no other', async () => {
    overload((await collectionNamed('films')).objectId)
    const events = await take(await asking('Who directed Alien?'))
    expect(events.at(-1)).toMatchObject({ type: 'error', status: 503, retryable: true })
  })
})
