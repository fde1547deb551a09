/**
 * A provider that goes wrong at a given place of its reply, in a given way. The question names both, as in
 * `[answer: cut in a letter]`; a question without such a name is answered well.
 */
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { isStandalone, questionIn } from './llm'

/** Where in a reply: before its status line, after its headers, after half of the answer, within a letter's bytes. */
export const PLACES = [
  'before the headers',
  'before the first byte',
  'between chunks',
  'in a letter',
] as const
export type Place = (typeof PLACES)[number]

/** stall: silence, the socket open. cut: the socket destroyed. end: over, in order. garble: noise, then over. */
export const WAYS = ['stall', 'cut', 'end', 'garble'] as const
export type Way = (typeof WAYS)[number]

/** Replies that are another status from the beginning. */
export const STATUSES: Record<string, { status: number; body: string; headers?: Record<string, string> }> = {
  'bad request': {
    status: 400,
    body: '{"error":{"message":"too many tokens","type":"invalid_request_error"}}',
  },
  unauthorized: { status: 401, body: '{"error":{"message":"Incorrect API key provided"}}' },
  'not found': { status: 404, body: '{"error":{"message":"The model does not exist"}}' },
  'rate limit': { status: 429, body: '{"error":{"message":"Rate limit reached","type":"tokens"}}' },
  'rate limit of a second': {
    status: 429,
    body: '{"error":{"message":"Rate limit reached, try again in 1s","type":"tokens"}}',
    headers: { 'retry-after': '1' },
  },
  'request timeout': {
    status: 408,
    body: '{"error":{"message":"Timed out"}}',
    headers: { 'retry-after': '1' },
  },
  'server error': { status: 500, body: '{"error":{"message":"The server had an error"}}' },
  'bad gateway': { status: 502, body: '<html>Bad gateway</html>', headers: { 'content-type': 'text/html' } },
  unavailable: { status: 503, body: '' },
  redirect: { status: 302, body: '', headers: { location: 'http://127.0.0.1:1/' } },
}

/** What a good answer says. The fault in a letter is between the two bytes of its `ü`. */
export const [FIRST, SECOND] = ['The first half, ', 'Füße and 日本語.'] as const

export interface Faulty {
  url: string
  /** how often each question came, by what it came for (`answer`, `rewriting`) and its text */
  asked: Map<string, number>
  stop(): Promise<void>
}

const chunk = (content: string, finish: string | null = null): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}\n\n`

const completion = (content: string): string =>
  JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }] })

/** @returns how many bytes of a reply go out before its fault */
function bytesUntil(place: Place, body: string): number {
  if (place === 'between chunks') {
    const blank = body.indexOf('\n\n')
    return blank < 0 ? Buffer.byteLength(body) >> 1 : blank + 2
  }
  return place === 'in a letter' ? Buffer.byteLength(body.slice(0, body.indexOf('ü'))) + 1 : 0
}

/** Sends a reply as far as the place of its fault, and then does what the fault is. */
function fail(response: ServerResponse, type: string, body: string, way: string, place: Place): void {
  const { socket } = response
  if (place === 'before the headers') {
    if (way === 'cut') socket?.destroy()
    else if (way === 'end') socket?.end()
    else if (way === 'garble') socket?.end('SSH-2.0-OpenSSH_9.6\r\n\xff\xfe\r\n\r\n')
    return
  }
  response.writeHead(200, { 'content-type': type })
  response.flushHeaders()
  const end = () => {
    if (way === 'cut') response.destroy()
    else if (way === 'end') response.end()
    else if (way === 'garble') response.end(Buffer.from('\xff\xc3<html>\ndata: {"choices": [\n\n', 'latin1'))
    else if (way === 'error') response.end('data: {"error":{"message":"overloaded","code":529}}\n\n')
  }
  const sent = Buffer.from(body).subarray(0, bytesUntil(place, body))
  // The fault goes out after the bytes before it have, not together with them.
  if (sent.length > 0) response.write(sent, () => setTimeout(end, 30))
  else setTimeout(end, 30)
}

function reply(response: ServerResponse, content: string, stream: boolean, fault: string | undefined): void {
  const type = stream ? 'text/event-stream' : 'application/json'
  const body = stream
    ? `${chunk(FIRST)}${chunk(SECOND)}${chunk('', 'stop')}data: [DONE]\n\n`
    : completion(content)
  const status = STATUSES[fault ?? '']
  if (status) {
    response.writeHead(status.status, { 'content-type': 'application/json', ...status.headers })
    response.end(status.body)
    return
  }
  const [way, place] = PLACES.flatMap((place) =>
    fault?.endsWith(place) ? [fault.slice(0, -place.length - 1), place] : [],
  ) as [string, Place] | []
  if (way !== undefined && place !== undefined) {
    fail(response, type, body, way, place)
    return
  }
  response.writeHead(200, { 'content-type': type })
  response.end(body)
}

export async function startFaulty(): Promise<Faulty> {
  const asked = new Map<string, number>()
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const piece of request) body += piece
    const { messages, stream } = JSON.parse(body)
    const content = String(messages.at(-1).content)
    if (content === 'hello') return reply(response, 'Hello.', false, undefined)
    const purpose = isStandalone(content) ? 'rewriting' : 'answer'
    const question = questionIn(content)
    const key = `${purpose}: ${question}`
    asked.set(key, (asked.get(key) ?? 0) + 1)
    const [, wanted, fault] = /\[(\w+): ([^\]]+)\]/.exec(question) ?? []
    // A rewritten question has a letter of two bytes too: its fault can be in one.
    const said = purpose === 'rewriting' ? `${question} ü` : FIRST + SECOND
    reply(response, said, stream === true, wanted === purpose ? fault : undefined)
  })
  server.on('clientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    stop: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
