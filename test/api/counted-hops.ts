/**
 * Counts what a question waits for before its model is asked: reads of D1, calls to objects, calls to the model. Calls made at
 * once are one hop.
 */
import { env } from 'cloudflare:workers'
import { expect, vi } from 'vitest'
import HOPS from '../../bench/first-token/hops.json'
import { forgetKeys } from '../../src/auth/authenticate'
import * as conversations from '../../src/conversation/conversation-object'
import * as owner from '../../src/db/owner'
import * as collections from '../../src/search/collection/handle'
import { setStage } from './parley/stage'
import { call } from './typesense/api'

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
const DAY_MS = 24 * LATER_MS

/** Turns of the event loop in a moment. What takes no hop takes a few. */
const MOMENT_TURNS = 40

/**
 * Time for what takes no hop. Turns of the event loop count, in each of which all goes on that can: a busy machine takes longer for a
 * turn and for what is done in it. Of a count of milliseconds it could do less.
 */
async function moment(): Promise<void> {
  for (let turns = 0; turns < MOMENT_TURNS; turns++) await new Promise((resolve) => setTimeout(resolve, 1))
}

/** The hops of a turn: those that begin before any of the same hop has ended. */
class Hops {
  readonly hops: string[][] = []
  #ended = 0
  /** the hop in which the conversation was told to look back; undefined once the question is there */
  #ahead: number | undefined
  #lookedBack: Promise<unknown> = Promise.resolve()
  /** what the conversation reads when it looks back, each once. The Worker may call the same method */
  readonly #seen = new Set<string>()
  /** ends what was read ahead, once the question is there that waits for it */
  #read: (() => void)[] = []

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
  lookBack(work: Promise<conversations.Seen>): Promise<conversations.Seen> {
    this.#ahead = this.#ended
    this.#seen.clear()
    this.begin('lookBack')
    this.#lookedBack = work
    // Where nothing was said, nothing is read.
    return work.then((seen) => {
      if (seen.isNew && seen.historyId === undefined) this.#ahead = undefined
      return seen
    })
  }

  /** A reply of D1, which takes longer than a call to a conversation and one of its history together. */
  async reply<T>(rows: Promise<T>): Promise<T> {
    const reply = await rows
    // Before a chat is looked at, its body is read and digests are made, which takes no hop, but a moment.
    await moment()
    await this.#lookedBack
    return reply
  }

  /** A reply that takes longer than a question's checks, which take no hop. */
  async afterChecks<T>(work: Promise<T>): Promise<T> {
    const reply = await work
    await moment()
    return reply
  }

  ask(): void {
    this.begin('ask')()
    for (const end of this.#read) end()
    this.#ahead = undefined
  }

  /** A call to a collection's object. */
  collection<T>(name: string, work: Promise<T>): Promise<T> {
    const ahead = this.#ahead
    const isAhead = (name === 'recentMessages' || name === 'wholeTurns') && ahead !== undefined
    if (name === 'schema') return this.around(name, this.afterChecks(work))
    if (!isAhead || this.#seen.has(name)) return this.around(name, work)
    this.#seen.add(name)
    this.#read.push(this.begin(name, ahead + 1))
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
export async function embedding(texts: string[], watched?: Hops): Promise<Response> {
  // An object may not wait for a promise of its test.
  while (watched && !watched.hops.flat().includes('search')) {
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  return Response.json({ data: texts.map(() => ({ embedding: [1, 0, 0, 0, 0, 0, 0, 0] })) })
}

/** A collection's object looks up its own name. The Worker knows collections by name, and waits for no such query. */
const OWN_LOOK_UP = /\bFROM collections WHERE object_id = \?/

/** What a query of D1 is for. */
function purposeOf(query: string): string {
  const tables = [
    'owner',
    'json_each',
    'messages',
    'conversations',
    'resources',
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

export function watch(): Hops {
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
      isOpenTo: (asker) => watched.around('isOpenTo', object.isOpenTo(asker)),
      recorded: (asker) => watched.around('recorded', watched.afterChecks(object.recorded(asker))),
      tell: (told) => object.tell(told),
      ask: (request) => {
        watched.ask()
        return object.ask(request)
      },
      askNamed: (...given) => {
        watched.ask()
        return object.askNamed(...given)
      },
      once: (single) => {
        watched.begin('once')()
        return object.once(single)
      },
      lookBack: (...given) => {
        return watched.lookBack(object.lookBack(...given))
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
      if (!reads(this.statement)) return asked as never
      const purpose = purposeOf(this.statement)
      if (OWN_LOOK_UP.test(this.statement)) {
        watched.begin(purpose)
        return asked as never
      }
      if (purpose === 'collections') return watched.around(purpose, watched.reply(asked)) as never
      return watched.around(purpose, purpose === 'resources' ? watched.afterChecks(asked) : asked) as never
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
export function beginAnew(): void {
  later += LATER_MS
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + later)

  vi.spyOn(owner, 'isVerified').mockReturnValue(false)
  vi.spyOn(owner, 'requireNoForeignDatabase').mockImplementation(readOwner)
  forgetKeys()
}

/** Goes on in the first hour of another day: a budget of a day that is spent stays so while caches are emptied. */
export function beginDay(): void {
  later += DAY_MS - ((realNow() + later) % DAY_MS)
}

/** @returns the hops up to the call for the answer, each without repetitions, all its calls, and the conversation */
export async function hopsOf(
  asking: () => Promise<Response>,
): Promise<{ hops: string[]; calls: string[]; id: string }> {
  const watched = watch()
  const response = await asking()
  const body = await response.text()
  expect([response.status, body]).toEqual([200, expect.stringContaining('330 metres.')])
  vi.restoreAllMocks()
  const [, id = response.headers.get('x-parley-conversation-id') ?? ''] =
    /"(?:conversation_id|id)": ?"(?:chatcmpl-)?([0-9a-f-]{36})/.exec(body) ?? []
  const last = watched.hops.findIndex((hop) => hop.includes('answer'))
  const hops = watched.hops.slice(0, last + 1)
  return { id, calls: hops.flat(), hops: hops.map((hop) => [...new Set(hop)].join()) }
}

/** The hops without what collections' objects look up for themselves meanwhile. Nobody waits for that. */
export const waitedFor = ({ hops }: { hops: string[] }): string[] =>
  hops.map((hop) =>
    hop
      .split(',')
      .filter((call) => call !== 'collections')
      .join(),
  )

/**
 * Compares hops with those that the table of docs/benchmarks.md is made from.
 * @param wire its row; undefined: it has none
 */
export function expectInTable(
  wire: keyof typeof HOPS | undefined,
  hops: Partial<(typeof HOPS)["Parley's own route"]['now']>,
): void {
  if (wire !== undefined) expect(HOPS[wire].now).toMatchObject(hops)
}

/**
 * Makes the collections `facts`, and `meant` whose embedder has to be called, the model `far`, and the assistants `guide` and
 * `meaning`.
 */
export async function setHopStage(): Promise<void> {
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
}
