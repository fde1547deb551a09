/** `npm run bench start`, over few pages. `npm run test:all` runs it. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { ROOT } from './guide-reader'

test('the benchmark of a start imports a folder and a website, asks both, and prints their times', async () => {
  const { stdout } = await promisify(execFile)(process.execPath, [join(ROOT, 'bench/run.mjs'), 'start'], {
    env: { ...process.env, BENCH_PAGES: '30', BENCH_SITE_PAGES: '20' },
  })
  const times = String.raw`( \d+\.\d s \|){4} ≤ 120 s`
  expect(stdout).toMatch(new RegExp(`^\\| 30 Markdown pages \\|${times}`, 'm'))
  expect(stdout).toMatch(new RegExp(`^\\| 20 pages of a website \\|${times}`, 'm'))
}, 240_000)
