/** A Parley of a script's own: on a free port, in a folder that goes with it. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/**
 * Calls the API as an administrator.
 * @param {string} url
 * @param {string} key
 */
export const client =
  (url, key) =>
  /**
   * @param {string} method
   * @param {string} path
   * @param {unknown} [body] what is no string is sent as JSON
   * @returns {Promise<any>} the answer's JSON
   * @throws Error with what the server answered
   */
  async (method, path, body) => {
    const response = await fetch(url + path, {
      method,
      headers: { 'x-typesense-api-key': key },
      signal: AbortSignal.timeout(120_000),
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    if (!response.ok) throw new Error(`${method} ${path.split('?')[0]} answered ${response.status}: ${text}`)
    return JSON.parse(text)
  }

const READY_MS = 300_000

/** @returns {Promise<number>} a port that nobody uses now */
export async function freePort() {
  const probe = createServer().listen(0)
  await once(probe, 'listening')
  const { port } = /** @type {import('node:net').AddressInfo} */ (probe.address())
  probe.close()
  await once(probe, 'close')
  return port
}

/**
 * Starts one as `npm start` does.
 * @param {string[]} [more] options of `npm start`, such as `--no-sample`
 * @returns {Promise<{ url: string, stop: () => Promise<void> }>}
 * @throws Error with what it said, when it does not come up
 */
export async function startOwnServer(more = []) {
  const folder = mkdtempSync(join(tmpdir(), 'parley-own-'))
  const port = await freePort()
  const start = fileURLToPath(new URL('start.mjs', import.meta.url))
  const { npm_lifecycle_event: _, ...env } = process.env
  const child = spawn(process.execPath, [start, '--port', String(port), '--persist-to', folder, ...more], {
    env: { ...env, PARLEY_API_KEY: 'xyz' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let said = ''
  const ready = new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`Parley did not start:\n${said}`)), READY_MS)
    child.stdout.setEncoding('utf8').on('data', (text) => {
      said += text
      if (!said.includes('Ctrl-C stops it')) return
      clearTimeout(timer)
      resolve(undefined)
    })
    child.once('close', () => {
      clearTimeout(timer)
      reject(new Error(`Parley did not start:\n${said}`))
    })
  })
  const stop = async () => {
    if (child.exitCode === null) {
      child.kill('SIGTERM')
      await once(child, 'close')
    }
    rmSync(folder, { recursive: true, force: true })
  }
  try {
    await ready
  } catch (error) {
    await stop()
    throw error
  }
  return { url: `http://localhost:${port}`, stop }
}
