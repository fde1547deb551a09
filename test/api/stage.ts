/** Questions on every protocol, as requests to the Worker: the collection `films`, the assistant `guide`. */
import { env } from 'cloudflare:workers'
import { app } from '../../src/app'

export interface Sent {
  path: string
  body?: unknown
  headers?: Record<string, string>
}

export const send = async ({ path, body, headers = {} }: Sent): Promise<Response> =>
  app.fetch(
    new Request(`http://parley${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { 'x-typesense-api-key': 'xyz', 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }),
    env,
    { waitUntil: () => {}, passThroughOnException: () => {}, props: {} } as unknown as ExecutionContext,
  )

const conversing = (question: string, model: string, stream: boolean) =>
  new URLSearchParams({
    q: question,
    query_by: 'title,text',
    conversation: 'true',
    conversation_model_id: model,
    ...(stream && { conversation_stream: 'true' }),
  })

/** A question on each protocol, by the protocol's name. */
export const asked = (question: string, model: string, stream: boolean): Record<string, Sent> => {
  const messages = [{ role: 'user', content: question }]
  return {
    parley: {
      path: '/conversations',
      body: { question, model, collections: ['films'], stream },
    },
    'chat completions': { path: '/v1/chat/completions', body: { model: 'guide', messages, stream } },
    responses: { path: '/v1/responses', body: { model: 'guide', input: question, stream } },
    'ai chat': { path: stream ? '/a/guide/chat/stream' : '/a/guide/chat', body: { messages } },
    'ui stream': { path: '/ui/guide', body: { id: crypto.randomUUID(), messages } },
    'a search': { path: `/collections/films/documents/search?${conversing(question, model, stream)}` },
    'several searches': {
      path: `/multi_search?${conversing(question, model, stream)}`,
      body: { searches: [{ collection: 'films' }] },
    },
  }
}
