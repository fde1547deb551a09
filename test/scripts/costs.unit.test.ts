import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  DIMENSIONS,
  HELD_VECTORS,
  idleCosts,
  importCosts,
  includedConversations,
  MANY_VECTORS,
  modelCosts,
  PRICES,
  platformCosts,
  RATES,
  SPENT_REMEMBERED,
  STORED_VECTORS,
  vectorizeCosts,
  worstDay,
} from '../../scripts/costs/model.mjs'
import {
  costsArithmetic,
  costsSentence,
  costsTable,
  earlierTable,
  idleTable,
  importTable,
  keptTable,
  vectorizeSentence,
  worstDayTable,
} from '../../scripts/costs/table.mjs'

import { vectorBytes } from '../../src/search/vectors/packed-vectors'
import { BYTES } from '../../src/vectorize/vectorize-index'

const read = (name: string) => readFileSync(join(import.meta.dirname, '../..', name), 'utf8')

test('the page on costs and the README show what comes out: node scripts/costs.mjs', () => {
  expect(read('docs/costs.md')).toContain(costsTable())
  expect(read('docs/costs.md').replaceAll('\n', ' ')).toContain(vectorizeSentence())
  expect(read('README.md')).toContain(costsSentence())
  for (const table of [costsArithmetic(), earlierTable(), importTable(), idleTable(), keptTable()]) {
    expect(read('docs/costs.md')).toContain(table)
  }
})

test('a thousand conversations cost less than $0.45 without the model, on a collection that Vectorize is not asked for', () => {
  expect(platformCosts(1_000).reduce((total, { cost }) => total + cost, 0)).toBeLessThan(0.45)
  expect(HELD_VECTORS).toBe(Math.floor(BYTES.held / vectorBytes(1, DIMENSIONS)))
  expect(STORED_VECTORS).toBeLessThan(HELD_VECTORS)
  expect(MANY_VECTORS).toBeGreaterThan(HELD_VECTORS)
})

test('the page on keys shows the worst day of a bound key, at the rates that are deployed', () => {
  expect(read('docs/keys.md')).toContain(worstDayTable())
  const limits = [...read('wrangler.toml').matchAll(/simple = \{ limit = (\d+), period = (\d+) \}/g)]
  expect(limits.map(([, limit, period]) => [Number(limit), Number(period)])).toEqual([
    [RATES.requests.limit, RATES.requests.period],
    [RATES.turns.limit, RATES.turns.period],
    // Analytics events: a bound key may send none.
    [300, 60],
    // Text generations of the whole account.
    [300, 60],
  ])
  expect(read('src/db/turns.ts')).toContain(`SPENT_CACHE_MS = ${SPENT_REMEMBERED}_000`)
  expect(read('docs/keys.md')).toContain('1,000 turns and 5,000,000 tokens a day')
})

test('the sentences on the worst day and on a full database say what the figures come to', () => {
  const page = read('docs/costs.md').replaceAll('\n', ' ')
  const { models, platform } = worstDay()
  const rest = platform.reduce((total, { cost }) => total + cost, 0)
  const [least, most] = models.map(({ cost }) => Math.round(cost + rest)).sort((a, b) => a - b)
  expect(page).toContain(`About $${least} to $${most} with the default budget`)
  const [, small, large] = /its trace: (\d+) to (\d+) KB/.exec(page)!
  const turns = (kilobytes?: string) => Math.floor(1_000_000 / Number(kilobytes)) * 10
  for (const each of [turns(small), turns(large)]) {
    // Rounded down to ten thousand.
    expect(page).toContain(`${(Math.floor(each / 10_000) * 10_000).toLocaleString('en-US')}`)
  }
})

test('costs grow in proportion, but for what is stored', () => {
  const fixed = platformCosts(0)
  expect(fixed.filter(({ amount }) => amount > 0).map(({ what }) => what)).toEqual([
    'Vectorize dimensions stored',
  ])
  fc.assert(
    fc.property(fc.nat({ max: 1_000_000 }), (count) => {
      const one = platformCosts(1)
      for (const [index, line] of platformCosts(count).entries()) {
        const base = fixed[index]!.amount
        expect(line.amount).toBeCloseTo(base + count * (one[index]!.amount - base), 3)
        expect(line.cost).toBeCloseTo((line.amount * line.price) / 1e6, 9)
      }
      for (const [index, line] of modelCosts(count).entries()) {
        expect(line.cost).toBeCloseTo(count * modelCosts(1)[index]!.cost, 6)
      }
    }),
  )
})

test('Vectorize is charged as its price list works it out', () => {
  // Its own example: 10,000 vectors of 768 dimensions and 30,000 queries are $0.31 a month.
  const { dimensionsQueried, dimensionsStored } = PRICES
  const cost =
    ((30_000 + 10_000) * 768 * dimensionsQueried.price + 10_000 * 768 * dimensionsStored.price) / 1e6
  expect(cost).toBeCloseTo(0.31, 2)
})

test('what the plan includes lasts for as many conversations as it says, and for no more', () => {
  const { conversations, what } = includedConversations()
  const within = (count: number) =>
    platformCosts(count).every(({ included, amount }) => included === 0 || amount <= included)
  expect(within(conversations)).toBe(true)
  expect(within(conversations + 1)).toBe(false)
  const line = platformCosts(conversations + 1).find((each) => each.what === what)!
  expect(line.amount).toBeGreaterThan(line.included)
})

test('each amount is what its working comes to', () => {
  const quotient = (factor: string) =>
    factor
      .split(' / ')
      .map(Number)
      .reduce((left, right) => left / right)
  const value = (working: string): number => {
    const [, before, inner, after] = /^(.*)\(([^()]*)\)(.*)$/.exec(working) ?? []
    if (inner !== undefined) return value(`${before}${value(inner)}${after}`)
    return working
      .split(' + ')
      .map((summand) => summand.split(' × ').reduce((product, factor) => product * quotient(factor), 1))
      .reduce((total, summand) => total + summand, 0)
  }
  const { models, platform } = worstDay()
  const lines = [
    ...platformCosts(1_000),
    ...vectorizeCosts(1_000),
    ...modelCosts(1_000).flatMap((model) => [model.in, model.out]),
    ...models,
    ...platform,
    ...importCosts(),
    ...idleCosts(),
  ]
  for (const { what, working, amount } of lines) {
    expect(value(working.replaceAll(',', '')), what).toBeCloseTo(amount, 6)
  }
})
