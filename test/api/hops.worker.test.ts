/**
 * What a question waits for before its model is asked: reads of D1, calls to objects, calls to the model. Calls made at
 * once are one hop. Timings vary with the machine; this does not.
 */
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import HOPS from '../../bench/first-token/hops.json'
import { forgetKeys } from '../../src/auth/authenticate'
import * as conversations from '../../src/conversation/conversation-object'
import * as owner from '../../src/db/owner'
import * as collections from '../../src/search/collection/handle'
import { makeKey, QUESTION, setStage } from './parley/stage'
import { call, queryString, send } from './typesense/api'

const MODEL = {
  id: 'far',
  model_name: 'openai/any',
  api_key: 'sk-1',
  openai_url: 'https://llm.test',
  history_collection: 'history',
  max_bytes: 16_384,
}
const REWRITTEN = 'How high is the Brandenburg Gate?'
/** Longer than any row is cached. */
const LATER_MS = 3_600_000

/** The hops of a turn: those that begin before any of the same hop has ended. */
class Hops {
  readonly hops: string[][] = []
  #ended = 0
  /** the hop in which the conversation was told to look back; undefined once it has read */
  #ahead: number | undefined
  #lookedBack: Promise<unknown> = Promise.resolve()
  /** ends what was read ahead, once the question is there that waits for it */
  #read = () => {}

  begin(name: string, hop = this.#ended): () => void {
    this.hops[hop] = [...(this.hops[hop] ?? []), name].sort()
    return () => {
      this.#ended = Math.max(this.#ended, hop + 1)
    }
  }

  async around<T>(name: string, work: Promise<T>, hop?: number): Promise<T> {
    const end = this.begin(name, hop)
    return work.finally(end)
  }

  /** The Worker goes on meanwhile. What the object reads comes a hop later. */
  lookBack<T>(work: Promise<T>): Promise<T> {
    this.#ahead = this.#ended
    this.begin('lookBack')
    this.#lookedBack = work
    return work
  }

  /** A reply of D1, which takes longer than a call to a conversation and one of its history together. */
  async reply<T>(rows: Promise<T>): Promise<T> {
    const reply = await rows
    await this.#lookedBack
    return reply
  }

  ask(): void {
    this.begin('ask')()
    this.#read()
  }

  /** A call to a collection's object. */
  collection<T>(name: string, work: Promise<T>): Promise<T> {
    const ahead = this.#ahead
    if (name !== 'recentMessages' || ahead === undefined) return this.around(name, work)
    this.#ahead = undefined
    this.#read = this.begin(name, ahead + 1)
    return work
  }

  /** A call of an embedder comes after the call to the collection that asks for it, although that one has not ended. */
  embedding<T>(work: Promise<T>): Promise<T> {
    const caller = this.hops.flat().includes('embedAhead') ? 'embedAhead' : 'search'
    const callers = this.hops.flatMap((hop, at) => hop.filter((call) => call === caller).map(() => at))
    const before = this.hops.flat().filter((call) => call === 'embed').length
    return this.around('embed', work, callers[before]! + 1)
  }
}

const reads = (query: string): boolean => /^\s*(select|with)\b/i.test(query)

/** The reply of an embedder that is slower than any call before the search. */
async function embedding(texts: string[], watched?: Hops): Promise<Response> {
  // An object may not wait for a promise of its test.
  while (watched && !watched.hops.flat().includes('search')) {
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  return Response.json({ data: texts.map(() => ({ embedding: [1, 0, 0, 0, 0, 0, 0, 0] })) })
}

/** What a query of D1 is for. */
function purposeOf(query: string): string {
  const tables = [
    'owner',
    'json_each',
    'api_keys',
    'usage',
    'assistants',
    'conversation_models',
    'collections',
  ]
  const names: Record<string, string> = { json_each: 'registry', api_keys: 'key', usage: 'budget' }
  const table = tables.find((name) => new RegExp(`(from|join) "?${name}\\b`, 'i').test(query)) ?? 'D1'
  return names[table] ?? table
}

function watch(): Hops {
  const watched = new Hops()
  const { collectionObject } = collections
  vi.spyOn(collections, 'collectionObject').mockImplementation(
    (...given) =>
      new Proxy(collectionObject(...given), {
        get:
          (object, name: string) =>
          (...args: unknown[]) =>
            watched.collection(
              name,
              Reflect.apply(Reflect.get(object, name), object, args) as Promise<unknown>,
            ),
      }),
  )
  const { conversationObject } = conversations
  vi.spyOn(conversations, 'conversationObject').mockImplementation((...given) => {
    const object = conversationObject(...given)
    // What it calls comes after it, although it has not ended.
    return {
      ...object,
      ask: (request) => {
        watched.ask()
        return object.ask(request)
      },
      lookBack: (reading) => {
        return watched.lookBack(object.lookBack(reading))
      },
      lost: (turn) => object.lost(turn),
    }
  })
  for (const source of [env.DB, env.DB.withSession('first-unconstrained')]) {
    const database = Object.getPrototypeOf(source) as D1Database
    const batch = database.batch
    vi.spyOn(database, 'batch').mockImplementation(function (this: D1Database, statements) {
      const queries = (statements as unknown as { statement: string }[]).map(({ statement }) => statement)
      const asked = batch.call(this, statements)
      if (!queries.every(reads)) return asked as never
      return watched.around(purposeOf(queries.join('; ')), watched.reply(asked)) as never
    })
  }
  const prepared = Object.getPrototypeOf(env.DB.prepare('SELECT 1')) as D1PreparedStatement
  for (const name of ['all', 'raw', 'first'] as const) {
    const run = prepared[name] as (...args: unknown[]) => Promise<unknown>
    vi.spyOn(prepared, name).mockImplementation(function (this: { statement: string }, ...args: unknown[]) {
      const asked = run.apply(this, args)
      return (reads(this.statement) ? watched.around(purposeOf(this.statement), asked) : asked) as never
    })
  }
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (_, init) => {
    const { stream, input } = JSON.parse(String(init?.body))
    if (input) return watched.embedding(embedding(input, watched))
    watched.begin(stream ? 'answer' : 'rewrite')()
    if (!stream)
      return Response.json({ choices: [{ message: { content: REWRITTEN }, finish_reason: 'stop' }] })
    const said = `data: ${JSON.stringify({ choices: [{ delta: { content: '330 metres.' } }] })}\n\ndata: [DONE]\n\n`
    return new Response(said, { headers: { 'content-type': 'text/event-stream' } })
  })
  return watched
}

const realNow = Date.now
let later = 0

/** Whose the database is, as an isolate reads it that has not met it yet. */
const readOwner = async (): Promise<void> => void (await env.DB.prepare('SELECT worker FROM owner').first())

/** Empties the caches of all isolates. */
function beginAnew(): void {
  later += LATER_MS
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + later)

  vi.spyOn(owner, 'isVerified').mockReturnValue(false)
  vi.spyOn(owner, 'requireNoForeignDatabase').mockImplementation(readOwner)
  forgetKeys()
}

/** What the wires ask. */
const asked = { collection: 'facts', queryBy: 'text', assistant: 'guide' }

const questionOf = (follows: string | undefined): string =>
  `${follows === undefined ? QUESTION : 'And how high is the gate in Berlin, then?'} ${crypto.randomUUID()}`

const ofTypesense = (follows: string | undefined) =>
  queryString({
    q: questionOf(follows),
    conversation: true,
    conversation_model_id: 'far',
    ...(follows && { conversation_id: follows }),
  })

const BEFORE = [
  { role: 'user', content: QUESTION },
  { role: 'assistant', content: '330 metres.' },
]

/** How each wire asks a question, or follows up on a conversation. */
const wires: Record<string, (follows?: string) => Promise<Response>> = {
  "Parley's own route": (follows) =>
    send('POST', '/conversations', {
      key,
      body: {
        question: questionOf(follows),
        model: 'far',
        collections: [asked.collection],
        ...(follows && { conversation_id: follows }),
      },
    }),
  'a search of Typesense': (follows) =>
    send(
      'GET',
      `/collections/${asked.collection}/documents/search${ofTypesense(follows)}&query_by=${encodeURIComponent(asked.queryBy)}`,
      { key },
    ),
  'a multi_search of Typesense': (follows) =>
    send('POST', `/multi_search${ofTypesense(follows)}`, {
      key,
      body: { searches: [{ collection: asked.collection, query_by: asked.queryBy }] },
    }),
  "OpenAI's chat completions": (follows) =>
    send('POST', '/v1/chat/completions', {
      key,
      body: {
        model: asked.assistant,
        messages: [...(follows ? BEFORE : []), { role: 'user', content: questionOf(follows) }],
      },
    }),
  "a page's key, bound to an assistant": (follows) =>
    send('POST', `/a/${asked.assistant}/conversations`, {
      key: pageKeys[asked.assistant],
      body: { question: questionOf(follows), ...(follows && { conversation_id: follows }) },
    }),
}

/** @returns the hops up to the call for the answer, each without repetitions, all its calls, and the conversation */
async function hopsOf(
  asking: () => Promise<Response>,
): Promise<{ hops: string[]; calls: string[]; id: string }> {
  const watched = watch()
  const response = await asking()
  const body = await response.text()
  expect([response.status, body]).toEqual([200, expect.stringContaining('330 metres.')])
  vi.restoreAllMocks()
  const [, id = ''] = /"(?:conversation_id|id)": ?"(?:chatcmpl-)?([0-9a-f-]{36})/.exec(body) ?? []
  const last = watched.hops.findIndex((hop) => hop.includes('answer'))
  const hops = watched.hops.slice(0, last + 1)
  return { id, calls: hops.flat(), hops: hops.map((hop) => [...new Set(hop)].join()) }
}

let key: string
const pageKeys: Record<string, string> = {}

beforeAll(async () => {
  // An isolate makes it with its first request, and files of tests share one.
  await env.DB.exec(owner.CREATE_OWNER)
  await setStage()
  vi.spyOn(globalThis, 'fetch').mockImplementation(async () =>
    Response.json({
      data: [{ embedding: [1, 0, 0, 0, 0, 0, 0, 0] }],
      choices: [{ message: { content: 'yes' }, finish_reason: 'stop' }],
    }),
  )
  const embed = { from: ['text'], model_config: { model_name: 'openai/embedder', api_key: 'sk-2' } }
  const fields = [
    { name: 'text', type: 'string' },
    { name: 'vector', type: 'float[]', embed },
  ]
  expect((await call('POST', '/collections', { body: { name: 'meant', fields } }))[0]).toBe(201)
  expect((await call('POST', '/conversations/models', { body: MODEL }))[0]).toBe(201)
  for (const [id, collection] of [
    ['guide', 'facts'],
    ['meaning', 'meant'],
  ] as const) {
    const body = { model: 'far', collections: [collection] }
    expect((await call('PUT', `/assistants/${id}`, { body }))[0]).toBe(200)
  }
  vi.restoreAllMocks()
  key = await makeKey({ actions: ['documents:search', 'conversations:create'] })
  for (const assistant of ['guide', 'meaning']) {
    pageKeys[assistant] = await makeKey({ actions: ['assistants:ask'], limits: { assistant } })
  }
})
afterEach(() => vi.restoreAllMocks())

describe.each(Object.entries(wires))('%s', (name, ask) => {
  it('asks a first question from a cold isolate in at most 5 hops, a follow-up in at most 6', async () => {
    beginAnew()
    const first = await hopsOf(ask)
    beginAnew()
    const followUp = await hopsOf(() => ask(first.id))
    expect(first.hops.length).toBeLessThanOrEqual(5)
    expect(followUp.hops.length).toBeLessThanOrEqual(6)
    const { first: cold, followUp: coldFollowUp } = HOPS[name as keyof typeof HOPS].now
    expect({ first: first.hops, followUp: followUp.hops }).toEqual({ first: cold, followUp: coldFollowUp })
  })

  it('asks a follow-up in at most 7 where an embedder has to be called', async () => {
    Object.assign(asked, { collection: 'meant', queryBy: 'vector, text', assistant: 'meaning' })
    onTestFinished(
      () => void Object.assign(asked, { collection: 'facts', queryBy: 'text', assistant: 'guide' }),
    )
    beginAnew()
    const first = await hopsOf(ask)
    beginAnew()
    const followUp = await hopsOf(() => ask(first.id))
    expect(first.hops.length).toBeLessThanOrEqual(5)
    expect(followUp.hops.length).toBeLessThanOrEqual(7)
    const { embedded, embeddedFollowUp } = HOPS[name as keyof typeof HOPS].now
    expect({ first: first.hops, followUp: followUp.hops }).toEqual({
      first: embedded,
      followUp: embeddedFollowUp,
    })
  })

  it('waits for no row that is in the memory of the isolate', async () => {
    await hopsOf(ask)
    const first = await hopsOf(ask)
    const followUp = await hopsOf(() => ask(first.id))
    const { warm, warmFollowUp } = HOPS[name as keyof typeof HOPS].now
    expect({ warm: first.hops, warmFollowUp: followUp.hops }).toEqual({ warm, warmFollowUp })
  })
})

describe('an embedder that has to be called', () => {
  const asking = (more: Record<string, unknown> = {}, given = key) =>
    send('POST', '/conversations', {
      key: given,
      body: { question: questionOf(undefined), model: 'far', collections: ['meant'], ...more },
    })
  const searching = () =>
    send(
      'GET',
      `/collections/meant/documents/search${ofTypesense(undefined)}&query_by=${encodeURIComponent('vector, text')}`,
      { key },
    )
  const waits = ['ask,embedAhead', 'embed,schema,search', 'answer']

  it.each([
    ["Parley's own route", asking],
    ['a search of Typesense', searching],
  ])(
    '%s: is called while the conversation is, once, and a first question has at most 5 hops',
    async (_, ask) => {
      beginAnew()
      expect((await hopsOf(ask)).hops).toEqual(['key,owner', 'budget,registry', ...waits])
      const warm = await hopsOf(ask)
      expect(warm.hops).toEqual(waits)
      expect(warm.calls.filter((name) => name === 'embed')).toEqual(['embed'])
    },
  )

  it('is called for a follow-up when its search is, and once for each wording', async () => {
    const { id } = await hopsOf(asking)
    const { hops, calls } = await hopsOf(() => asking({ conversation_id: id }))
    expect(hops[0]).toBe('ask')
    expect(calls.filter((name) => name === 'embed' || name === 'embedAhead')).toEqual(['embed', 'embed'])
  })

  it('is not called for a question that is refused', async () => {
    const watched = watch()
    const other = await makeKey({ actions: ['documents:get'], collections: ['meant'] })
    const foreign = await makeKey({ actions: ['*'], collections: ['facts'] })
    const refused = [await asking({}, 'unknown'), await asking({}, other), await asking({}, foreign)]
    const unknown = await asking({ conversation_id: crypto.randomUUID() })
    expect([...refused, unknown].map(({ ok }) => ok)).toEqual([false, false, false, false])
    expect(watched.hops.flat().filter((name) => name.startsWith('embed'))).toEqual([])
  })

  it('is called with the search by an object of the version before', async () => {
    const { collectionObject } = collections
    vi.spyOn(collections, 'collectionObject').mockImplementation((...given) => {
      const object = collectionObject(...given)
      const embedAhead = () => Promise.reject(new TypeError('The RPC receiver does not implement it.'))
      return new Proxy(object, {
        get: (_, name) => (name === 'embedAhead' ? embedAhead : Reflect.get(object, name)),
      })
    })
    const embedded = vi.spyOn(globalThis, 'fetch').mockImplementation(async (_, init) => {
      const { input } = JSON.parse(String(init?.body))
      if (input) return embedding(input)
      return Response.json({ choices: [{ message: { content: '330 metres.' }, finish_reason: 'stop' }] })
    })
    expect(await (await asking()).text()).toContain('330 metres.')
    expect(embedded.mock.calls.filter(([, init]) => String(init?.body).includes('"input"'))).toHaveLength(1)
  })
})
