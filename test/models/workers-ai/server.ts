/**
 * Workers AI before the double, over HTTP: its REST API (POST /accounts/:account/ai/run/@cf/...), and the other side of
 * its binding.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type Served, serve } from '../../serve'
import { ERRORS, InferenceUpstreamError } from './errors'
import type { WorkersAi } from './workers-ai'

/** the only API token that the server takes */
export const TOKEN = 'workers-ai-token'

const RUN = /^(?:\/client\/v4)?\/accounts\/[^/]+\/ai\/run\/(.+)$/

async function read(request: IncomingMessage): Promise<Record<string, unknown> | undefined> {
  let text = ''
  for await (const piece of request) text += piece
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function reply(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

const failed = (code: number, message: string) => ({
  result: null,
  success: false,
  errors: [{ code, message }],
  messages: [],
})

async function pass(stream: ReadableStream<Uint8Array>, response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const reader = stream.getReader()
  response.once('close', () => void reader.cancel().catch(() => {}))
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return void response.end()
    response.write(value)
  }
}

/**
 * What the binding's own code in the runtime asks of the platform (`cloudflare-internal:ai-api` in workerd), as it comes
 * through Miniflare's proxy for remote bindings: the URL in a header, and headers behind a prefix.
 */
async function answerBinding(
  ai: WorkersAi,
  url: URL,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { inputs, options } = (await read(request)) as {
    inputs: Record<string, unknown>
    options: { gateway?: { id: string } }
  }
  if (url.pathname !== (options.gateway ? '/ai-gateway/run' : '/run')) return reply(response, 404, {})
  try {
    const result = await ai.run(String(request.headers['mf-header-cf-consn-model-id']), inputs, options)
    if (result instanceof ReadableStream) await pass(result, response)
    else reply(response, 200, result)
  } catch (error) {
    if (!(error instanceof InferenceUpstreamError)) throw error
    const internalCode = InferenceUpstreamError.codeOf(error)
    const { name } = error
    reply(response, ERRORS[internalCode]?.status ?? 500, {
      internalCode,
      description: descriptionOf(error),
      name,
    })
  }
}

const descriptionOf = ({ message }: Error): string => message.slice(message.indexOf(': ') + 2)

async function handle(ai: WorkersAi, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { 'mf-url': asked } = request.headers
  if (asked !== undefined) return answerBinding(ai, new URL(String(asked)), request, response)
  const inputs = await read(request)
  const path = RUN.exec(new URL(request.url ?? '', 'http://localhost').pathname)
  if (request.headers.authorization !== `Bearer ${TOKEN}`) {
    return reply(response, 401, failed(10000, 'Authentication error'))
  }
  if (request.method !== 'POST' || !path) return reply(response, 404, failed(7000, 'No route for that URI'))
  if (!inputs) return reply(response, 400, failed(3003, ERRORS[3003]!.description))
  try {
    const result = await ai.run(decodeURIComponent(path[1]!), inputs)
    if (result instanceof ReadableStream) await pass(result, response)
    else reply(response, 200, { result, success: true, errors: [], messages: [] })
  } catch (error) {
    if (!(error instanceof InferenceUpstreamError)) throw error
    const code = InferenceUpstreamError.codeOf(error)
    reply(response, ERRORS[code]?.status ?? 500, failed(code, `AiError: AiError: ${descriptionOf(error)}`))
  }
}

/** Its `url` is for `cloudflare_url`. */
export const serveWorkersAi = (ai: WorkersAi): Promise<Served> =>
  serve((request, response) => {
    handle(ai, request, response).catch((error) => {
      console.error('the double of Workers AI failed', error)
      response.destroy()
    })
  })
