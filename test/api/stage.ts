/** Questions on every protocol, as requests to the Worker: the collection `films`, the assistant `guide`. */
import { env } from 'cloudflare:workers'
import { vi } from 'vitest'
import { app } from '../../src/app'
import { putAssistant } from '../../src/registry/assistants'
import { createModel } from '../../src/registry/models'
import { setStage, speaking } from '../conversation/stage'

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

/** The collections of a conversation's stage, a model `remote` of a provider, and an assistant `guide` that asks it. */
export async function setRemoteStage(): Promise<void> {
  await setStage()
  const fetching = vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Hello.'))
  await createModel(env, {
    id: 'remote',
    model_name: 'openai/gpt',
    openai_url: 'https://llm.test',
    api_key: 'sk-1234567890',
    history_collection: 'talk',
    max_bytes: 16_384,
  })
  fetching.mockRestore()
  await putAssistant(env, 'guide', {
    model: 'remote',
    collections: ['films'],
    questions: [],
    overrides: [],
    followups: false,
    category_field: 'category',
    followup_style: 'list',
    strict: false,
  } as never)
}

/** A provider that says what it is told to; null ends its answer. */
export function spoken(): (text: string | null) => void {
  const bytes = new TextEncoder()
  const said: (string | null)[] = []
  // An object may not wait for a promise of its test.
  const next = async (): Promise<string | null> => {
    while (said.length === 0) await new Promise((resolve) => setTimeout(resolve, 1))
    return said.shift()!
  }
  const answer = (): ReadableStream<Uint8Array> =>
    new ReadableStream({
      async pull(controller) {
        const text = await next()
        const piece =
          text === null ? '[DONE]' : JSON.stringify({ choices: [{ delta: { content: `${text} ` } }] })
        controller.enqueue(bytes.encode(`data: ${piece}\n\n`))
        if (text === null) controller.close()
      },
    })
  vi.spyOn(globalThis, 'fetch').mockImplementation(
    async () => new Response(answer(), { headers: { 'content-type': 'text/event-stream' } }),
  )
  return (text) => void said.push(text)
}
