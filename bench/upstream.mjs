/**
 * A provider that streams a given number of chunks at a given pace, in its own process. How many, and how fast, is
 * in the query (`?chunks=2000&gap=5&wait=50`) or, for adapters that make the query themselves, the first part of
 * the path (`/chunks=2000&gap=5&wait=50/...`). The rest of the path says which wire it speaks.
 */
import { createServer } from 'node:http'
import { WIRES } from './wires.mjs'

const server = createServer(async (request, response) => {
  let body = ''
  for await (const bytes of request) body += bytes
  const url = new URL(request.url, 'http://localhost')
  const [, first = '', rest = ''] = /^\/(chunks=[^/]*)(\/.*)$/.exec(url.pathname) ?? []
  const settings = first ? new URLSearchParams(first) : url.searchParams
  const chunks = Number(settings.get('chunks') ?? 2000)
  const gap = Number(settings.get('gap') ?? 0)
  const wait = Number(settings.get('wait') ?? 0)
  const wire = Object.values(WIRES).find(({ path }) => path.test(rest || url.pathname))
  if (request.method === 'GET') {
    response.setHeader('content-type', 'application/json')
    return response.end(JSON.stringify({ data: [{ id: 'bench' }] }))
  }
  // The live check of a new model does not stream.
  if (!wire.byPath && JSON.parse(body).stream !== true) {
    response.setHeader('content-type', 'application/json')
    const message = { role: 'assistant', content: 'hello' }
    return response.end(
      JSON.stringify({ candidates: [], choices: [{ index: 0, message, finish_reason: 'stop' }] }),
    )
  }
  response.writeHead(200, { 'content-type': wire.type })
  response.flushHeaders()
  if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
  const started = performance.now()
  for (const piece of wire.begin) response.write(piece)
  for (let n = 0; n < chunks; n++) {
    response.write(wire.chunk(`word${n} `))
    // Paced against the clock: a timer a chunk would be a millisecond late each time.
    for (let early = n * gap; gap > 0 && early > 0; ) {
      early = n * gap - (performance.now() - started)
      if (early > 0) await new Promise((resolve) => setTimeout(resolve, Math.max(1, early - 1)))
    }
    if (response.writableNeedDrain) await new Promise((resolve) => response.once('drain', resolve))
  }
  for (const piece of wire.end) response.write(piece)
  response.end()
})

// Between two measurements connections idle. Node would close them after 5 s, perhaps under a request on its way.
server.keepAliveTimeout = 120_000
server.listen(0, '127.0.0.1', () => process.send?.(server.address().port))
