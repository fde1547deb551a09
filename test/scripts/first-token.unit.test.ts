/** What the pages say of a question's hops is what test/api/hops.worker.test.ts counts. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { HOPS, hopsTable, NEARBY_MS, OCEAN_MS, waitOf } from '../../bench/first-token/simulate.mjs'

it('the page shows what comes out: node bench/first-token/simulate.mjs', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/benchmarks.md'), 'utf8')
  expect(page).toContain(hopsTable())
})

it('calls made at once count as one, and the slowest counts', () => {
  expect(waitOf(['ask', 'search'], false)).toBe(2 * NEARBY_MS)
  expect(waitOf(['ask', 'rewrite,schema,search'], true)).toBe(NEARBY_MS + OCEAN_MS)
})

it('what is read ahead goes on while the question is on its way, and is waited for', () => {
  const near = ['budget,lookBack,registry', 'ask,recentMessages', 'rewrite']
  expect(waitOf(near, false)).toBe(3 * NEARBY_MS)
  expect(waitOf(near, true)).toBe(NEARBY_MS + OCEAN_MS + NEARBY_MS)
  expect(waitOf(['lookBack', 'ask,recentMessages'], true)).toBe(NEARBY_MS + OCEAN_MS)
})

it.each(Object.entries(HOPS))('%s waits for less than before, near and far', (_, { before, now }) => {
  for (const kind of ['first', 'followUp'] as const) {
    for (const isFar of [false, true]) {
      expect(waitOf(now[kind], isFar)).toBeLessThan(waitOf(before[kind], isFar))
    }
  }
})
