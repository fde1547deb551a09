/**
 * What a question waits for before its model is asked: reads of D1, calls to objects, calls to the model. Calls made at
 * once are one hop. Timings vary with the machine; this does not.
 */
import { afterEach, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest'
import HOPS from '../../bench/first-token/hops.json'
import * as collections from '../../src/search/collection/handle'
import { beginAnew, embedding, hopsOf, setHopStage, watch } from './counted-hops'
import { makeKey, QUESTION } from './parley/stage'
import { queryString, send } from './typesense/api'

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

let key: string
const pageKeys: Record<string, string> = {}

beforeAll(async () => {
  await setHopStage()
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
