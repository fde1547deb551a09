/**
 * One Parley for all client and browser tests, started as a user starts it, on a free port, over data of its own.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** where the Parley under test answers */
    url: string
    /** where the Miniflare that serves it answers: it fires the cron trigger */
    entry: string
    /** the folder of the Worker's bundle that it serves */
    bundle: string
  }
}

export const START = join(import.meta.dirname, '../../scripts/start.mjs')

/**
 * A port that nobody listens on, below those that the system hands out: one of them could be gone, to any
 * connection of any process, by the time that it is used.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000)
    const server = createServer().listen(port, '127.0.0.1')
    const free = await once(server, 'listening').then(
      () => true,
      () => false,
    )
    if (!free) continue
    server.close()
    await once(server, 'close')
    return port
  }
}

export interface Started {
  child: ChildProcess
  /** everything it printed so far */
  output(): string
  /** Ends it as Ctrl-C's cousin does. @returns its exit code */
  stop(): Promise<number | null>
}

/** Runs scripts/start.mjs until it says that it is ready. @throws when it ends before that */
export const start = (...args: string[]): Promise<Started> => started(process.execPath, [START, ...args])

/** The same with another program that starts it. */
export async function started(
  program: string,
  args: string[],
  options: { cwd?: string } = {},
): Promise<Started> {
  const child = spawn(program, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (data) => {
        output += data
        if (output.includes('Ctrl-C stops it.')) resolve()
      })
    }
    child.once('error', reject)
    child.once('close', (code) => reject(new Error(`npm start ended with ${code}:\n${output}`)))
  })
  return {
    child,
    output: () => output,
    stop: async () => {
      if (child.exitCode !== null) return child.exitCode
      child.kill('SIGTERM')
      const [code] = await once(child, 'close')
      return code
    },
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  // Vitest sets it, and no user does. Bundles and pages are kept by it (scripts/bundle.mjs): with it they would all be made once more.
  delete process.env.NODE_ENV
  const folder = mkdtempSync(join(tmpdir(), 'parley-clients-'))
  const port = await freePort()
  const parley = await start('--port', String(port), '--persist-to', folder, '--no-sample')
  project.provide('url', `http://localhost:${port}`)
  const { entry } = JSON.parse(readFileSync(join(folder, 'in-use.json'), 'utf8'))
  project.provide('entry', entry)
  project.provide('bundle', join(folder, 'bundle'))
  parley.child.once('close', (code) => {
    // A server that ends by itself makes every later test fail: what it said is the first thing to know.
    if (!stopping) console.error(`The Parley under test ended with ${code}:\n${parley.output()}`)
  })
  let stopping = false
  return async () => {
    stopping = true
    await parley.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}
