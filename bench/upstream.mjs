/** An OpenAI-compatible server that streams a given number of chunks at a given pace, in its own process. */
import { createServer } from 'node:http'

const chunk = (content) =>
  `data: ${JSON.stringify({ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 1, model: 'bench', choices: [{ index: 0, delta: { content }, finish_reason: null }] })}\n\n`

const server = createServer(async (request, response) => {
  let body = ''
  for await (const bytes of request) body += bytes
  const url = new URL(request.url, 'http://localhost')
  const chunks = Number(url.searchParams.get('chunks') ?? 2000)
  const gap = Number(url.searchParams.get('gap') ?? 0)
  const wait = Number(url.searchParams.get('wait') ?? 0)
  // The live check of a new model does not stream.
  if (JSON.parse(body).stream !== true) {
    response.setHeader('content-type', 'application/json')
    const message = { role: 'assistant', content: 'hello' }
    return response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }] }))
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.flushHeaders()
  if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
  const started = performance.now()
  for (let n = 0; n < chunks; n++) {
    response.write(chunk(`word${n} `))
    // Paced against the clock: a timer a chunk would be a millisecond late each time.
    for (let early = n * gap; gap > 0 && early > 0; ) {
      early = n * gap - (performance.now() - started)
      if (early > 0) await new Promise((resolve) => setTimeout(resolve, Math.max(1, early - 1)))
    }
    if (response.writableNeedDrain) await new Promise((resolve) => response.once('drain', resolve))
  }
  response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\n`)
  response.end('data: [DONE]\n\n')
})

// Between two measurements connections idle. Node would close them after 5 s, perhaps under a request on its way.
server.keepAliveTimeout = 120_000
server.listen(0, '127.0.0.1', () => process.send?.(server.address().port))
