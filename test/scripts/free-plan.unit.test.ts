import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { FREE, freeSentence, freeTable, freeTurns, neuronsOf } from '../../scripts/costs/free-plan.mjs'
import { LANGUAGE_MODELS } from '../../scripts/costs/language-models.mjs'
import { CONVERSATION, platformCosts } from '../../scripts/costs/model.mjs'
import { CHECKED, modelsTable, WORKERS_AI_MODELS } from '../../scripts/costs/workers-ai.mjs'

const read = (name: string) => readFileSync(join(import.meta.dirname, '../..', name), 'utf8')

test('the pages show what comes out: node scripts/free-plan.mjs', () => {
  expect(read('docs/free-plan.md')).toContain(freeTable())
  expect(read('docs/free-plan.md')).toContain(freeSentence())
  expect(read('docs/models.md')).toContain(modelsTable())
  expect(read('docs/models.md')).toContain(CHECKED)
})

test('as many turns as are stated, and not one more, fit into a day', () => {
  for (const { what, day, each, turns } of freeTurns()) {
    expect([what, turns * each.value <= day, (turns + 1) * each.value > day]).toEqual([what, true, true])
  }
})

test('a turn takes what the page on costs says', () => {
  const used = (what: string) => platformCosts(1).find((line) => line.what === what)!.amount
  const each = (what: string) => freeTurns().find((line) => line.what.startsWith(what))!.each.value
  for (const what of ['Durable Object requests', 'Durable Object duration', 'Durable Object rows written']) {
    expect([what, each(what)]).toEqual([what, expect.closeTo(used(what) / CONVERSATION.turns, 6)])
  }
  expect(each('D1 rows written')).toBeCloseTo(used('D1 rows written') / CONVERSATION.turns, 6)
})

test('neurons are what the price of tokens says', () => {
  // The price list has both: $0.293 and $2.253 a million tokens are 26,668 and 204,805 neurons.
  const price = WORKERS_AI_MODELS['@cf/meta/llama-3.3-70b-instruct-fp8-fast']!
  const { read: sent, written, neurons } = neuronsOf(price)
  expect(neurons).toBeCloseTo((sent * 26_668 + written * 204_805) / 1e6, 0)
  expect(FREE.neurons).toBe(10_000)
})

test('the page on costs has the same prices', () => {
  for (const [name, price] of Object.entries(LANGUAGE_MODELS)) {
    const listed = Object.entries(WORKERS_AI_MODELS).find(([model]) => model.endsWith(`/${name}`))?.[1]
    expect([name, listed]).toEqual([name, expect.objectContaining(price)])
  }
})
