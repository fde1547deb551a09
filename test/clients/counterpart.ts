/** A provider that misbehaves, in ways that a mock of a working one cannot. The model's name says how. */
import type { ServerResponse } from 'node:http'
import { serve } from '../serve'

export interface Counterpart {
  url: string
  /** model names as they were asked, greetings left out */
  asked: string[]
  /** Authorization headers, greetings included */
  authorizations: string[]
  stop(): Promise<void>
}

const chunk = (content: string, finish: string | null = null): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}\n\n`

const completion = (content: string): string =>
  JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }] })

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

/** Letters of two, three and four bytes. */
export const WIDE = 'Füße im Café: 日本語, 🎬 and 👩‍🚀.'

/** How long `slow` keeps silent: longer than the client's own patience of five seconds. */
export const SILENCE_MS = 6_500

const streamHead = (response: ServerResponse): void => {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
}

const behaviours: Record<string, (response: ServerResponse, stream: boolean) => Promise<void> | void> = {
  'server-error': (response) => {
    response.writeHead(500, { 'content-type': 'application/json' })
    response.end('{"error":{"message":"the model is out of order"}}')
  },
  /** not asked again, so that its caller hears of it at once */
  refusal: (response) => {
    response.writeHead(400, { 'content-type': 'application/json' })
    response.end('{"error":{"message":"the model is out of order"}}')
  },
  garbage: (response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end('{"choices": [')
  },
  'no-choices': (response) => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end('{}')
  },
  /** the connection breaks in the middle of an answer */
  cut: async (response) => {
    streamHead(response)
    response.write(chunk('The first half '))
    await sleep(50)
    response.destroy()
  },
  /** the stream ends in order, but before the model said that it had finished */
  unfinished: (response) => {
    streamHead(response)
    response.write(chunk('The first half '))
    response.end()
  },
  slow: async (response, stream) => {
    await sleep(SILENCE_MS)
    if (!stream) return void response.end(completion('At last.'))
    streamHead(response)
    response.end(`${chunk('At ')}${chunk('last.', 'stop')}data: [DONE]\n\n`)
  },
  /** every byte in a write of its own, so that letters and events come in pieces */
  wide: async (response) => {
    streamHead(response)
    for (const byte of Buffer.from(`${chunk(WIDE)}${chunk('', 'stop')}data: [DONE]\n\n`)) {
      response.write(Buffer.of(byte))
      if (byte >= 0x80) await sleep(1)
    }
    response.end()
  },
  /** usage, nulls and reasoning between the words */
  chatty: (response) => {
    streamHead(response)
    const events = [
      { choices: [{ delta: { role: 'assistant', content: null } }] },
      { choices: [{ delta: { reasoning_content: 'thinking aloud' } }] },
      { choices: [{ delta: { content: 'Plain ' } }] },
      { choices: [{ delta: { content: null } }] },
      { choices: [{ delta: { content: 'words.' }, finish_reason: 'stop' }] },
      { choices: [], usage: { prompt_tokens: 7, completion_tokens: 2 } },
    ]
    response.end(`${events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`)
  },
}

export async function startCounterpart(): Promise<Counterpart> {
  const asked: string[] = []
  const authorizations: string[] = []
  const served = await serve(async (request, response) => {
    let body = ''
    for await (const piece of request) body += piece
    authorizations.push(request.headers.authorization ?? '')
    const { model, messages, stream } = JSON.parse(body)
    if (model === 'unwelcoming') {
      response.writeHead(401, { 'content-type': 'application/json' })
      response.end('{"error":{"message":"Incorrect API key provided"}}')
    } else if (messages.at(-1).content === 'hello') {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(completion('Hello.'))
    } else {
      asked.push(model)
      await behaviours[model]?.(response, stream === true)
    }
  })
  return { ...served, asked, authorizations }
}
