/** The servers that are compared: a real OpenSearch, a Parley, and the model behind both. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { assemble, cache } from './assemble.mjs'

const READY_MS = 180_000
const here = fileURLToPath(new URL('.', import.meta.url))
const note = join(cache, 'server.json')

/** @param {import('node:http').Server} server @returns {number} */
const portOf = (server) => /** @type {import('node:net').AddressInfo} */ (server.address()).port

/** A port that nobody uses now. */
async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const port = portOf(server)
  server.close()
  return port
}

/** Waits until a server answers. @param {string} url @param {import('node:child_process').ChildProcess} child */
async function ready(url, child) {
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
 * Starts an empty OpenSearch that goes on after this process.
 * @returns {Promise<{ url: string, pid: number, without?: string }>}
 */
export async function startReference() {
  const { classPath, plugins, without } = await assemble()
  const home = join(cache, 'home')
  rmSync(home, { recursive: true, force: true })
  for (const folder of ['config', 'modules', 'plugins', 'logs'])
    mkdirSync(join(home, folder), { recursive: true })
  const logging = join(home, 'config', 'log4j2.properties')
  writeFileSync(
    logging,
    'status = error\nappender.c.type = Console\nappender.c.name = c\nrootLogger.level = warn\nrootLogger.appenderRef.c.ref = c\n',
  )
  const port = await freePort()
  const log = openSync(join(cache, 'server.log'), 'w')
  const options = ['-Xms512m', '-Xmx1g', `-Dlog4j2.configurationFile=${logging}`, '-Dlog4j2.disable.jmx=true']
  const program = [join(here, 'Reference.java'), home, String(port), plugins.join()]
  const child = spawn('java', [...options, '-cp', classPath, ...program], {
    detached: true,
    stdio: ['ignore', log, log],
  })
  const url = `http://127.0.0.1:${port}`
  const pid = /** @type {number} */ (child.pid)
  writeFileSync(note, JSON.stringify({ pid, url }))
  try {
    await ready(url, child)
  } catch (error) {
    stopReference()
    throw new Error(`${/** @type {Error} */ (error).message} Its log: ${join(cache, 'server.log')}`)
  }
  child.unref()
  return { url, pid, ...(without !== undefined && { without }) }
}

/** Ends the OpenSearch that was started last. @returns {boolean} whether there was one */
export function stopReference() {
  try {
    process.kill(JSON.parse(readFileSync(note, 'utf8')).pid)
    rmSync(note)
    return true
  } catch {
    return false
  }
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
