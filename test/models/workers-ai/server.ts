/** Workers AI's REST API before the double: POST /accounts/:account/ai/run/@cf/... */
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

const descriptionOf = ({ message }: Error): string => message.slice(message.indexOf(': ') + 2)

async function handle(ai: WorkersAi, request: IncomingMessage, response: ServerResponse): Promise<void> {
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
