/** A Parley of these sources, and a model, to be compared with a real OpenSearch (nodes.mjs). */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const READY_MS = 180_000

/** @param {import('node:http').Server} server @returns {number} */
const portOf = (server) => /** @type {import('node:net').AddressInfo} */ (server.address()).port

/** A port that nobody uses now. */
export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const port = portOf(server)
  server.close()
  return port
}

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

/** An empty Parley of these sources. @returns {Promise<{ url: string, stop(): Promise<void> }>} */
export async function startParley() {
  const folder = mkdtempSync(join(tmpdir(), 'parley-reference-'))
  const port = await freePort()
  const start = fileURLToPath(new URL('../start.mjs', import.meta.url))
  const child = spawn(
    process.execPath,
    [start, '--port', String(port), '--persist-to', folder, '--no-sample'],
    {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, PARLEY_API_KEY: 'xyz' },
    },
  )
  const stop = async () => {
    if (child.exitCode === null) {
      child.kill('SIGTERM')
      await once(child, 'exit')
    }
    rmSync(folder, { recursive: true, force: true })
  }
  const url = `http://localhost:${port}`
  try {
    await ready(`${url}/health`, child)
  } catch (error) {
    await stop()
    throw error
  }
  return { url, stop }
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
  return {
    host: `127.0.0.1:${portOf(server)}`,
    stop() {
      server.closeAllConnections()
      server.close()
    },
  }
}
