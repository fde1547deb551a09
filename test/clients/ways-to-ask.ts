/** One question through each protocol, by the bytes that its clients send. */
import { url } from './harness'

export interface Stage {
  model: string
  shows: string
  assistant: string
}

export interface Asking {
  key: string
  question: string
  /** the conversation to go on with, or the chat's name */
  conversation?: string | undefined
  headers?: Record<string, string>
  /** true: the visitor's secret is not sent in a header, but in the address */
  inAddress?: true
}

export interface Asked {
  status: number
  conversation: string
  /** what the client knows it by: its id, or the chat's own name */
  chat: string
  text: string
}

/** The same client in every request, as two visitors behind one proxy have it. */
const CLIENT = { 'user-agent': 'a browser', 'accept-language': 'en', 'content-type': 'application/json' }

export async function send(path: string, asking: Asking, body?: unknown): Promise<Asked> {
  const { key, inAddress } = asking
  const { 'x-parley-visitor': visitor, ...others } = asking.headers ?? {}
  const address = new URL(url + path)
  if (inAddress && visitor !== undefined) address.searchParams.set('x-parley-visitor', visitor)
  const headers = inAddress ? others : asking.headers
  const response = await fetch(address, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { ...CLIENT, 'x-typesense-api-key': key, ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const named = /"(?:conversation_id|contextId)": ?"([^"]+)"/.exec(text)?.[1] ?? ''
  const conversation = response.headers.get('x-parley-conversation-id') ?? named
  return { status: response.status, conversation, chat: conversation, text }
}

export type Ask = (asking: Asking) => Promise<Asked>

const conversing = (model: string, { question, conversation }: Asking) =>
  new URLSearchParams({
    q: question,
    conversation: 'true',
    conversation_model_id: model,
    ...(conversation !== undefined && { conversation_id: conversation }),
  })

/** Every way to ask. */
export const waysToAsk = (stage: () => Stage): [name: string, ask: Ask][] => [
  [
    'search',
    (asking) =>
      send(
        `/collections/${stage().shows}/documents/search?query_by=title&${conversing(stage().model, asking)}`,
        asking,
      ),
  ],
  [
    'multi_search',
    (asking) =>
      send(`/multi_search?${conversing(stage().model, asking)}`, asking, {
        searches: [{ collection: stage().shows, query_by: 'title' }],
      }),
  ],
  [
    '/conversations',
    (asking) =>
      send('/conversations', asking, {
        question: asking.question,
        model: stage().model,
        collections: [stage().shows],
        conversation_id: asking.conversation,
      }),
  ],
  [
    '/v1/chat/completions',
    (asking) =>
      send('/v1/chat/completions', asking, {
        model: stage().assistant,
        messages: [{ role: 'user', content: asking.question }],
        metadata: asking.conversation && { conversation_id: asking.conversation },
      }),
  ],
  [
    '/v1/responses',
    (asking) =>
      send('/v1/responses', asking, {
        model: stage().assistant,
        input: asking.question,
        previous_response_id: asking.conversation && `resp_${asking.conversation}.1`,
      }),
  ],
  [
    '/a/ASSISTANT/chat',
    (asking) =>
      send(`/a/${stage().assistant}/chat`, asking, {
        messages: [{ role: 'user', content: asking.question }],
        session_state: asking.conversation,
      }),
  ],
  [
    '/ui/ASSISTANT',
    (asking) =>
      send(`/ui/${stage().assistant}`, asking, {
        id: asking.conversation,
        message: { role: 'user', content: asking.question },
      }),
  ],
  [
    '/ui/ASSISTANT/text',
    (asking) =>
      send(`/ui/${stage().assistant}/text`, asking, {
        id: asking.conversation,
        message: { role: 'user', content: asking.question },
      }),
  ],
  [
    '/mcp/ASSISTANT',
    (asking) =>
      send(`/mcp/${stage().assistant}`, asking, {
        jsonrpc: '2.0',
        id: 1,
        method: 'tools/call',
        params: {
          name: 'ask',
          arguments: { question: asking.question, conversation_id: asking.conversation },
        },
      }),
  ],
  [
    '/a2a/ASSISTANT',
    (asking) =>
      send(`/a2a/${stage().assistant}`, asking, {
        jsonrpc: '2.0',
        id: 1,
        method: 'SendMessage',
        params: {
          message: {
            messageId: 'message-1',
            contextId: asking.conversation,
            role: 'ROLE_USER',
            parts: [{ text: asking.question }],
          },
        },
      }),
  ],
  [
    '/deep-chat/ASSISTANT',
    (asking) =>
      send(`/deep-chat/${stage().assistant}`, asking, {
        messages: [{ role: 'user', text: asking.question }],
        conversation_id: asking.conversation,
      }),
  ],
]

/** Asks in the chat of this name, or of a new one. */
const inNamedChat =
  (ask: (asking: Asking, chat: string) => Promise<Asked>): Ask =>
  async (asking) => {
    const chat = asking.conversation ?? crypto.randomUUID()
    return { ...(await ask(asking, chat)), chat }
  }

/** Protocols in which each request names its chat. */
export const waysToAskInNamedChats = (stage: () => Stage): [name: string, ask: Ask][] => [
  [
    '/agui/ASSISTANT',
    inNamedChat((asking, threadId) =>
      send(`/agui/${stage().assistant}`, asking, {
        threadId,
        runId: 'run-1',
        messages: [{ id: '1', role: 'user', content: asking.question }],
      }),
    ),
  ],
  [
    '/n8n/ASSISTANT',
    inNamedChat((asking, sessionId) =>
      send(`/n8n/${stage().assistant}`, asking, {
        action: 'sendMessage',
        sessionId,
        chatInput: asking.question,
      }),
    ),
  ],
]
