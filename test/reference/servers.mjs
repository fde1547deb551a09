/** What a real OpenSearch (nodes.mjs) is waited for with, and a model for both sides. */
import { once } from 'node:events'
import { createServer } from 'node:http'

const READY_MS = 180_000

/** Waits until a server answers. @param {string} url @param {import('node:child_process').ChildProcess} child */
export async function ready(url, child) {
  const until = Date.now() + READY_MS
  while (Date.now() < until) {
    if (child.exitCode !== null) throw new Error(`It ended at once; ${url} never answered.`)
    const answered = await fetch(url).then(
      (response) => response.status < 500,
      () => false,
    )
    if (answered) return
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
  throw new Error(`${url} did not answer.`)
}

/**
 * A model with chat completions that always says the same, or fails where the question says `fail`.
 * @returns {Promise<{ host: string, stop(): void }>}
 */
export async function startModel() {
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const part of request) text += part
    const failed = text.includes('please fail')
    response.writeHead(failed ? 429 : 200, { 'content-type': 'application/json' })
    response.end(
      JSON.stringify(
        failed
          ? { error: { message: 'Too many requests' } }
          : {
              choices: [
                { message: { role: 'assistant', content: 'Lincoln was. [1]' }, finish_reason: 'stop' },
              ],
              usage: { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 },
            },
      ),
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  return {
    host: `127.0.0.1:${port}`,
    stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}
