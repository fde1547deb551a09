/**
 * What a question waits for before its model is asked: reads of D1, calls to objects, calls to the model. Calls made at
 * once are one hop. Timings vary with the machine; this does not.
 */
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import * as conversations from '../../src/conversation/conversation-object'
import * as collections from '../../src/search/collection/handle'
import { makeKey, QUESTION, setStage } from './parley/stage'
import { call, queryString } from './typesense/api'

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

let key: string

/** The hops of a turn: those that begin before any of the same hop has ended. */
class Hops {
  readonly hops: string[][] = []
  #ended = 0

  begin(name: string): () => void {
    const hop = this.#ended
    this.hops[hop] = [...(this.hops[hop] ?? []), name].sort()
    return () => {
      this.#ended = Math.max(this.#ended, hop + 1)
    }
  }

  async around<T>(name: string, work: Promise<T>): Promise<T> {
    const end = this.begin(name)
    return work.finally(end)
  }
}

const reads = (query: string): boolean => /^\s*(select|with)\b/i.test(query)

function watch(): Hops {
  const watched = new Hops()
  const { collectionObject } = collections
  vi.spyOn(collections, 'collectionObject').mockImplementation(
    (...given) =>
      new Proxy(collectionObject(...given), {
        get:
          (object, name: string) =>
          (...args: unknown[]) =>
            watched.around(name, Reflect.apply(Reflect.get(object, name), object, args) as Promise<unknown>),
      }),
  )
  const { conversationObject } = conversations
  vi.spyOn(conversations, 'conversationObject').mockImplementation((...given) => {
    const object = conversationObject(...given)
    // What it calls comes after it, although it has not ended.
    return {
      ...object,
      ask: (request) => {
        watched.begin('ask')()
        return object.ask(request)
      },
      lost: (turn) => object.lost(turn),
    }
  })
  const database = Object.getPrototypeOf(env.DB) as D1Database
  const batch = database.batch
  vi.spyOn(database, 'batch').mockImplementation(function (this: D1Database, statements) {
    const queries = statements as unknown as { statement: string }[]
    const asked = batch.call(this, statements)
    return (queries.every(({ statement }) => reads(statement)) ? watched.around('D1', asked) : asked) as never
  })
  const prepared = Object.getPrototypeOf(env.DB.prepare('SELECT 1')) as D1PreparedStatement
  for (const name of ['all', 'raw', 'first'] as const) {
    const run = prepared[name] as (...args: unknown[]) => Promise<unknown>
    vi.spyOn(prepared, name).mockImplementation(function (this: { statement: string }, ...args: unknown[]) {
      const asked = run.apply(this, args)
      return (reads(this.statement) ? watched.around('D1', asked) : asked) as never
    })
  }
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (_, init) => {
    const { stream } = JSON.parse(String(init?.body))
    watched.begin(stream ? 'answer' : 'rewrite')()
    if (!stream)
      return Response.json({ choices: [{ message: { content: REWRITTEN }, finish_reason: 'stop' }] })
    const said = `data: ${JSON.stringify({ choices: [{ delta: { content: '330 metres.' } }] })}\n\ndata: [DONE]\n\n`
    return new Response(said, { headers: { 'content-type': 'text/event-stream' } })
  })
  return watched
}

/** Asks a question. @returns the hops up to the call for its answer */
async function hopsOf(more: Record<string, unknown>): Promise<{ id: string; hops: string[][] }> {
  const watched = watch()
  const body = {
    question: `${QUESTION} ${crypto.randomUUID()}`,
    model: 'far',
    collections: ['facts'],
    ...more,
  }
  const [status, answer] = await call('POST', '/conversations', { key, body })
  expect([status, answer.answer]).toEqual([200, '330 metres.'])
  vi.restoreAllMocks()
  const last = watched.hops.findIndex((hop) => hop.includes('answer'))
  return { id: answer.conversation_id, hops: watched.hops.slice(0, last + 1) }
}

const realNow = Date.now
let later = 0

/** Lets every row in the isolate's memory expire. */
function expireRows(): void {
  later += LATER_MS
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + later)
}

beforeAll(async () => {
  await setStage()
  vi.spyOn(globalThis, 'fetch').mockImplementation(async () =>
    Response.json({ choices: [{ message: { content: 'yes' }, finish_reason: 'stop' }] }),
  )
  expect((await call('POST', '/conversations/models', { body: MODEL }))[0]).toBe(201)
  vi.restoreAllMocks()
  key = await makeKey({ actions: ['documents:search'] })
  await hopsOf({})
})
afterEach(() => vi.restoreAllMocks())

it('a first question waits for its conversation and its search', async () => {
  const { hops } = await hopsOf({})
  expect(hops).toEqual([['ask'], ['schema', 'search'], ['answer']])
})

it('a follow-up waits for its history, for its rewriting, and for one search after it', async () => {
  const { id } = await hopsOf({})
  const { hops } = await hopsOf({
    conversation_id: id,
    question: 'And how high is the gate in Berlin, then?',
  })
  expect(hops).toEqual([
    ['ask'],
    ['recentMessages'],
    ['rewrite', 'schema', 'search'],
    ['schema', 'search'],
    ['answer'],
  ])
})

/** What a first question waits for with nothing cached: one entry a hop, without repetitions. */
const coldHops = ({ hops }: { hops: string[][] }) => hops.map((hop) => [...new Set(hop)].join())

it('with nothing cached, a question waits for its key, its model, and the collections', async () => {
  expireRows()
  const query = { q: QUESTION, query_by: 'text', conversation: true, conversation_model_id: 'far' }
  const watched = watch()
  const [status] = await call('GET', `/collections/facts/documents/search${queryString(query)}`, { key })
  expect(status).toBe(200)
  expect(coldHops(watched).slice(0, 6)).toEqual(['D1', 'D1', 'D1', 'ask', 'schema,search', 'answer'])
})

it("on Parley's own route the model is read beside the fields of the collection", async () => {
  expireRows()
  expect(coldHops(await hopsOf({}))).toEqual(['D1', 'D1', 'D1,schema', 'ask', 'schema,search', 'answer'])
})
