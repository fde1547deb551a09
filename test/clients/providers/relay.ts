/**
 * What lies between Parley and a provider, and can go wrong: a relay before a counterpart that speaks the
 * provider's wire. The counterpart answers well; the relay keeps its answer back, stops in the middle of it, or
 * hangs up. So each wire has the same faults, at a place of its own bytes.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { serve } from '../../serve'

/** silence: no answer at all. stall, cut, end: half of it, and then silence, a broken connection, an orderly end. */
export type Fault = 'silence' | 'stall' | 'cut' | 'end'

export interface Relay {
  url: string
  /** how often Parley went before it had the whole answer */
  left: number
  /** answers that Parley is still connected to */
  open: number
  stop(): Promise<void>
}

export async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece)
  return Buffer.concat(pieces)
}

export function headersOf({ headers }: IncomingMessage): Headers {
  const passed = new Headers()
  for (const [name, value] of Object.entries(headers)) {
    if (!['host', 'connection', 'content-length', 'accept-encoding'].includes(name)) {
      passed.set(name, String(value))
    }
  }
  return passed
}

/** @param faultOf says by the body of a request what is to go wrong with its answer */
export async function startRelay(
  target: string,
  faultOf: (body: string) => Fault | undefined,
): Promise<Relay> {
  const counts = { left: 0, open: 0 }

  const relay = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await bodyOf(request)
    const left = () => {
      if (!response.writableFinished) counts.left += 1
    }
    response.once('close', left)
    counts.open += 1
    response.once('close', () => {
      counts.open -= 1
    })
    const interrupt = () => {
      response.off('close', left)
      if (fault === 'cut') response.destroy()
      else response.end()
    }
    const fault = faultOf(body.toString())
    if (fault === 'silence') return
    const answer = await fetch(target + request.url, {
      method: request.method ?? 'GET',
      headers: headersOf(request),
      ...(body.length > 0 && { body: new Uint8Array(body) }),
    })
    const bytes = Buffer.from(await answer.arrayBuffer())
    response.writeHead(answer.status, { 'content-type': answer.headers.get('content-type') ?? '' })
    if (fault === undefined) return void response.end(bytes)
    const half = bytes.subarray(0, bytes.length >> 1)
    // The fault goes out after the bytes before it have, not together with them.
    response.write(half, () => {
      if (fault !== 'stall') setTimeout(interrupt, 30)
    })
  }

  const served = await serve((request, response) => {
    relay(request, response).catch(() => response.destroy())
  })
  // Miniflare's proxy for a remote binding opens a WebSocket beside each call, for methods that Workers AI has none of.
  served.server.on('upgrade', (_, socket) => socket.destroy())
  return Object.assign(counts, served)
}
