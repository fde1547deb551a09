/**
 * The hops of wires whose requests name the conversation in their body: by the client's own name for the chat, or by an id that
 * Parley gave out (hops.worker.test.ts has the others).
 */
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { beginAnew, expectInTable, hopsOf, setHopStage, waitedFor } from './counted-hops'
import { makeKey, QUESTION } from './parley/stage'
import { send } from './typesense/api'

const JSON_TYPE = { 'content-type': 'application/json' }

let key: string
let assistant = 'guide'
/** the client's name for the chat that it began last */
let chat = ''

const questionOf = (follows?: string): string =>
  `${follows === undefined ? QUESTION : 'And how high is the gate in Berlin, then?'} ${crypto.randomUUID()}`

const messages = (follows?: string) => [
  ...(follows === undefined
    ? []
    : [
        { role: 'user', content: QUESTION },
        { role: 'assistant', content: '330 metres.' },
      ]),
  { role: 'user', content: questionOf(follows) },
]

/** A name as most chat libraries make it. */
const random = (): string => `Chat${crypto.randomUUID().replaceAll('-', '')}`

/** The name of the chat: a new one where one begins. */
function nameOf(follows: string | undefined, make: () => string): string {
  if (follows === undefined) chat = make()
  return chat
}

const toA2a = (follows: string | undefined, contextId: string | undefined) => {
  const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: questionOf(follows) }], contextId }
  const body = { jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params: { message } }
  return send('POST', `/a2a/${assistant}`, { key, body })
}
const toResponses = (follows: string | undefined, more: Record<string, unknown>) =>
  send('POST', '/v1/responses', { key, body: { model: assistant, input: questionOf(follows), ...more } })

type Wire = (follows?: string) => Promise<Response>

const ui =
  (make: () => string): Wire =>
  (follows) =>
    send('POST', `/ui/${assistant}`, {
      key,
      body: { id: nameOf(follows, make), messages: messages(follows), trigger: 'submit-message' },
    })
const agui =
  (make: () => string): Wire =>
  (follows) =>
    send('POST', `/agui/${assistant}`, {
      key,
      body: { threadId: nameOf(follows, make), runId: 'r', messages: messages(follows) },
    })

/** Of a chat named by a UUID, the history says whether that is the id of a conversation, while the first question is searched. */
type Kind = 'named' | 'uuid' | 'ours' | 'continued'
const wires: [string, Kind, Wire][] = [
  ['the UI message stream', 'named', ui(random)],
  ['the UI message stream, in a chat named by a UUID', 'uuid', ui(() => crypto.randomUUID())],
  [
    'the UI message stream, from a client that does not say whether it asks again',
    'named',
    (follows) =>
      send('POST', `/ui/${assistant}`, {
        key,
        body: { threadId: nameOf(follows, random), messages: messages(follows) },
      }),
  ],
  [
    'the UI message stream, in a chat that only its last answer names',
    'ours',
    (follows) => {
      const [question, answer, ...rest] = messages(follows)
      const held = answer ? [question, { ...answer, id: `${follows}.1` }, ...rest] : [question]
      return send('POST', `/ui/${assistant}`, { key, body: { messages: held, trigger: 'submit-message' } })
    },
  ],
  ['AG-UI', 'named', agui(random)],
  ['AG-UI, in a thread named by a UUID', 'uuid', agui(() => crypto.randomUUID())],
  ['A2A, in a context that the client names', 'named', (follows) => toA2a(follows, nameOf(follows, random))],
  ['A2A, in a context that Parley named', 'ours', (follows) => toA2a(follows, follows)],
  [
    "n8n's chat",
    'named',
    (follows) =>
      send('POST', `/n8n/${assistant}`, {
        key,
        body: { action: 'sendMessage', sessionId: nameOf(follows, random), chatInput: questionOf(follows) },
      }),
  ],
  [
    'deep-chat',
    'named',
    (follows) =>
      send('POST', `/deep-chat/${assistant}`, {
        key,
        body: {
          messages: [{ role: 'user', text: questionOf(follows) }],
          conversation_id: nameOf(follows, random),
        },
      }),
  ],
  [
    'an AI Chat session',
    'continued',
    (follows) =>
      send('POST', `/a/${assistant}/chat`, {
        key,
        headers: JSON_TYPE,
        body: { messages: messages(), ...(follows !== undefined && { sessionState: follows }) },
      }),
  ],
  [
    "OpenAI's responses, after a previous one",
    'ours',
    (follows) =>
      toResponses(follows, follows === undefined ? {} : { previous_response_id: `resp_${follows}.1` }),
  ],
  [
    "OpenAI's responses, in a conversation",
    'ours',
    (follows) => toResponses(follows, follows === undefined ? {} : { conversation: follows }),
  ],
]

/** The wires that the table of docs/benchmarks.md has. */
const TABLE: Record<string, Parameters<typeof expectInTable>[0]> = {
  'the UI message stream': 'the UI message stream',
  'AG-UI, in a thread named by a UUID': 'AG-UI, thread named by a UUID',
  "OpenAI's responses, after a previous one": "OpenAI's responses",
}

beforeAll(async () => {
  await setHopStage()
  key = await makeKey({ actions: ['documents:search', 'conversations:create'] })
})
beforeEach(() => {
  assistant = 'guide'
})
afterEach(() => vi.restoreAllMocks())

describe.each(wires)('%s', (name, kind, ask) => {
  const isNamed = kind === 'named' || kind === 'uuid'
  const registry = (looksBack: boolean) => ['budget', ...(looksBack ? ['lookBack'] : []), 'registry'].join()
  const judged = kind === 'uuid' ? ['recentMessages'] : []
  const rewritten = ['rewrite,schema,search', 'schema,search', 'answer']
  const embedded = ['rewrite,schema,search', 'embed,schema,search', 'embed', 'answer']

  it.each([
    { where: 'with the built-in embedder', followUpHops: 6, asked: 'ask', searched: [], after: rewritten },
    {
      where: 'where an embedder has to be called',
      followUpHops: 7,
      asked: 'ask,embedAhead',
      searched: ['embed'],
      after: embedded,
    },
  ])(
    `asks a first question from a cold isolate in 5 hops, a follow-up in $followUpHops, $where`,
    async ({ asked, searched, after }) => {
      if (searched.length > 0) assistant = 'meaning'
      beginAnew()
      const first = await hopsOf(ask)
      beginAnew()
      const followUp = await hopsOf(() => ask(first.id))
      expect(waitedFor(first)).toEqual([
        'key,owner',
        registry(isNamed),
        asked,
        [...searched, ...judged, 'schema', 'search'].join(),
        'answer',
      ])
      expect(waitedFor(followUp)).toEqual([
        'key,owner',
        registry(true),
        expect.stringMatching(/^ask,recentMessages(,wholeTurns)?$/),
        ...after,
      ])
      const [one, two] = [waitedFor(first), waitedFor(followUp)]
      expectInTable(
        TABLE[name],
        searched.length > 0 ? { embedded: one, embeddedFollowUp: two } : { first: one, followUp: two },
      )
    },
  )

  // Of wires that the table has not, the next test says as much.
  if (TABLE[name])
    it('waits for no row that is in the memory of the isolate', async () => {
      await hopsOf(ask)
      const first = await hopsOf(ask)
      const followUp = await hopsOf(() => ask(first.id))
      expectInTable(TABLE[name], { warm: waitedFor(first), warmFollowUp: waitedFor(followUp) })
      expect([...first.calls, ...followUp.calls]).not.toContain('registry')
    })

  it('asks them in at most 5 and 7, named chats in 4 and 6, where the rows are in the memory of the isolate', async () => {
    assistant = 'meaning'
    await hopsOf(ask)
    const first = await hopsOf(ask)
    const followUp = await hopsOf(() => ask(first.id))
    expect(first.hops.length).toBeLessThanOrEqual(isNamed ? 4 : 5)
    expect(followUp.hops.length).toBeLessThanOrEqual(isNamed ? 6 : 7)
    if (isNamed) expect(followUp.calls.filter((call) => call === 'recentMessages')).toHaveLength(1)
    expect([...first.calls, ...followUp.calls]).not.toContain('registry')
  })
})
