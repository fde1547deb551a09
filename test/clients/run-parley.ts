/** Runs `parley`, the command line, as a user does: a process of its own. */
import { spawn } from 'node:child_process'
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

/** @param folder where it runs @param env variables beside the server's address and key */
export const runParley = (folder: string, args: string[], env: Record<string, string> = {}): Promise<Ran> =>
  new Promise((resolve) => {
    const child = spawn(process.execPath, [CLI, ...args], {
      cwd: folder,
      env: { ...process.env, PARLEY_URL: url, PARLEY_API_KEY: KEY, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let [out, err] = ['', '']
    child.stdout.on('data', (data) => {
      out += data
    })
    child.stderr.on('data', (data) => {
      err += data
    })
    child.on('close', (code) => {
      let json: unknown
      try {
        json = JSON.parse(out)
      } catch {
        // read as text
      }
      resolve({ code, out, err, json })
    })
  })

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
