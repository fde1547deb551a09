/** Runs `parley`, the command line. */
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { KEY, request, url } from './harness'

const CLI = join(import.meta.dirname, '../../scripts/parley/bin.mjs')

interface Ran {
  code: number | null
  out: string
  err: string
  /** biome-ignore lint/suspicious/noExplicitAny: checked field by field */
  json: any
}

const withJson = (ran: { code: number | null; out: string; err: string }): Ran => {
  try {
    return { ...ran, json: JSON.parse(ran.out) }
  } catch {
    return { ...ran, json: undefined } // read as text
  }
}

const variables = (env: Record<string, string>) => ({ PARLEY_URL: url, PARLEY_API_KEY: KEY, ...env })

/**
 * A process of its own, as a user starts it: it has to end by itself, too.
 * @param folder where it runs @param env variables beside the server's address and key
 */
export async function spawnParley(
  folder: string,
  args: string[],
  env: Record<string, string> = {},
): Promise<Ran> {
  const child = spawn(process.execPath, [CLI, ...args], {
    cwd: folder,
    env: { ...process.env, ...variables(env) },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ran = { code: null as number | null, out: '', err: '' }
  child.stdout.on('data', (data) => {
    ran.out += data
  })
  child.stderr.on('data', (data) => {
    ran.err += data
  })
  ;[ran.code] = await once(child, 'close')
  return withJson(ran)
}

let host: ChildProcess | undefined
const ended = () => Promise.reject(new Error('The process that runs commands has ended.'))
/** Ends with the command that was asked for last: the host does one at a time. */
let last: Promise<unknown> = Promise.resolve()

/** The same in a process that all commands of a file share, one after the other (parley-host.mjs). */
export function runParley(folder: string, args: string[], env: Record<string, string> = {}): Promise<Ran> {
  host ??= fork(join(import.meta.dirname, 'parley-host.mjs'), {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  host.setMaxListeners(0)
  const ran = last.then(async () => {
    host!.send({ args, folder, env: variables(env) })
    const [done] = await Promise.race([once(host!, 'message'), once(host!, 'exit').then(ended)])
    return withJson(done)
  })
  last = ran
  return ran
}

/** Writes a file below a folder. @returns its path */
export function writeIn(folder: string, path: string, text: string | Uint8Array): string {
  const file = join(folder, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  return file
}

/** The documents of a collection, by their ids, without vectors. */
export const exported = async (collection: string) => {
  const { text } = await request(
    'GET',
    `/collections/${collection}/documents/export?exclude_fields=embedding`,
  )
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))
    .sort((a, b) => (a.id < b.id ? -1 : 1))
}
