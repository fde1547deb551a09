import fc from 'fast-check'
import { expect, test } from 'vitest'
import { f1, ndcgAt, recallAt } from '../../../bench/metrics.mjs'
import { isDeclined, mean } from '../../../scripts/parley/eval/metrics.mjs'

test('recall counts each relevant document once', () => {
  expect(recallAt(['a', 'a', 'x'], new Set(['a', 'b']), 3)).toBe(0.5)
  expect(recallAt(['x', 'a'], new Set(['a']), 1)).toBe(0)
})

test('nDCG is what the formula gives', () => {
  // Relevant at ranks 1 and 3 of two relevant ones: (1 + 1/2) / (1 + 1/log2(3)).
  expect(ndcgAt(['a', 'x', 'b'], new Set(['a', 'b']), 10)).toBeCloseTo(1.5 / (1 + 1 / Math.log2(3)), 12)
  expect(ndcgAt(['x'], new Set(['a']), 10)).toBe(0)
})

test('nDCG lies between 0 and 1, and is 1 where all relevant ones come first', () => {
  const ids = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 3 }), { maxLength: 12 })
  fc.assert(
    fc.property(ids, ids, (relevant, others) => {
      const wanted = new Set(relevant)
      const found = [...relevant, ...others.filter((each) => !wanted.has(each))]
      if (relevant.length > 0) expect(ndcgAt(found, wanted, 20)).toBeCloseTo(1, 12)
      const turned = ndcgAt(found.toReversed(), wanted, 20)
      expect(turned).toBeGreaterThanOrEqual(0)
      expect(turned).toBeLessThanOrEqual(1 + 1e-12)
    }),
  )
})

test('F1 compares words, not their case, marks and articles', () => {
  expect(f1('The cat sat.', 'a CAT sat')).toBe(1)
  expect(f1('cat', 'cat sat')).toBeCloseTo(2 / 3, 12)
  expect(f1('dog', 'cat')).toBe(0)
})

test.each([
  ['I do not know.', true],
  ["The documents don't mention it.", true],
  ['I could not find an answer in the documents.', true],
  ['It is not known when Rome was founded, but the year 753 is told.', false],
  ['Set `ttl`.', false],
])('%j is a decline: %s', (answer, declined) => {
  expect(isDeclined({ answer, citations: declined ? [] : [{}] })).toBe(declined)
})

test('the mean of nothing is nothing', () => {
  expect(mean([])).toBeUndefined()
  expect(mean([1, 2])).toBe(1.5)
})
