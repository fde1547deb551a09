/** Runs `parley`, the command line, as a user does: a process of its own. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { KEY, url } from './harness'

const CLI = join(import.meta.dirname, '../../scripts/parley/cli.mjs')

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
