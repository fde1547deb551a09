/** `npm run first-account` against a running Parley, with little of everything. */
import { execFile } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadSample } from '../../scripts/sample.mjs'
import { KEY } from './harness'
import { OwnParley } from './own-parley'

const run = promisify(execFile)
const PROGRAM = join(import.meta.dirname, '../../scripts/first-account.mjs')

const parley = new OwnParley()
beforeAll(() => parley.boot())
afterAll(() => parley.remove())

const collections = async () => {
  const response = await fetch(`${parley.url}/collections`, { headers: { 'x-typesense-api-key': KEY } })
  return ((await response.json()) as { name: string }[]).map(({ name }) => name)
}

test('writes down each step, names those that fail, and leaves nothing behind', {
  timeout: 60_000,
}, async () => {
  await loadSample(parley.url, KEY)
  const folder = mkdtempSync(join(tmpdir(), 'parley-first-'))
  const report = join(folder, 'report.md')
  const start = (...args: string[]) =>
    run(process.execPath, [
      PROGRAM,
      '--url',
      parley.url,
      '--documents',
      '60',
      '--sleep',
      '0',
      '--report',
      report,
      ...args,
    ])
  try {
    const before = await collections()
    const { stdout } = await start('--key', KEY)
    expect(stdout).toContain('All steps are done')
    const written = readFileSync(report, 'utf8')
    expect(written.match(/^\| (?!Step|---)/gm)).toHaveLength(18)
    expect(written).toMatch(/\| A first question \| \d+ \| first word after \d+ ms, [1-9]\d* citations/)
    expect(written).toContain('60 documents, 0 failed')
    expect(written).toContain('came back whole')
    expect(written).not.toContain(KEY)
    expect(await collections()).toEqual(before)
    const refused = await start('--key', 'wrong').catch((error) => error)
    expect([refused.code, refused.stdout]).toEqual([1, expect.stringMatching(/failed .*A first question/)])
    expect(readFileSync(report, 'utf8')).toContain('**failed**: The key may not')
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
