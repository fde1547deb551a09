/** A Parley over a data folder that another version left, for the tests of one file. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { freePort, type Started, start } from './global-setup'
import { KEY } from './harness'

export interface OpenFolder {
  /** the copy that is served, once the tests of the file begin */
  folder: string
  /** where it is served */
  url: string
  /** A request as JSON. `body` goes as it is when it is a string: a retry is known by its bytes. */
  send(
    method: string,
    path: string,
    body?: object | string,
    headers?: Record<string, string>,
  ): Promise<{ status: number; text: string }>
}

/**
 * Serves a copy of a folder while the tests of this file run.
 * @param name of its archive in test/fixtures, without the end
 */
export function openFolder(name: string): OpenFolder {
  let parley: Started | undefined
  const open: OpenFolder = {
    folder: '',
    url: '',
    send: async (method, path, body, headers) => {
      const response = await fetch(open.url + path, {
        method,
        headers: { 'x-typesense-api-key': KEY, 'content-type': 'application/json', ...headers },
        ...(body && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      })
      return { status: response.status, text: await response.text() }
    },
  }
  beforeAll(async () => {
    open.folder = mkdtempSync(join(tmpdir(), `parley-${name}-`))
    const archive = join(import.meta.dirname, '../fixtures', `${name}.tar.gz`)
    execFileSync('tar', ['xzf', archive, '-C', open.folder])
    const port = await freePort()
    open.url = `http://localhost:${port}`
    parley = await start('--port', String(port), '--persist-to', open.folder, '--no-sample')
  }, 120_000)
  afterAll(async () => {
    await parley?.stop()
    if (open.folder !== '') rmSync(open.folder, { recursive: true, force: true })
  })
  return open
}
