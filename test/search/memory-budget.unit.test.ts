import fc from 'fast-check'
import { expect, test } from 'vitest'
import { MemoryBudget } from '../../src/search/memory-budget'

const MOST = 100

/** Collections that load a matrix when they are searched. */
class Loaded {
  bytes = 0
  evictions = 0
  readonly #budget: MemoryBudget
  constructor(budget: MemoryBudget) {
    this.#budget = budget
  }
  search(bytes: number): void {
    this.#budget.use(this, bytes)
    this.bytes = bytes
  }
  clear(): void {
    this.bytes = 0
    this.#budget.release(this)
  }
  evict(): void {
    this.bytes = 0
    this.evictions++
  }
}

const step = fc.record({
  of: fc.nat({ max: 4 }),
  bytes: fc.integer({ min: 1, max: MOST }),
  clears: fc.boolean(),
})

test('all matrices together take no more than the budget, and the one in use is there', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const budget = new MemoryBudget(MOST)
      const all = Array.from({ length: 5 }, () => new Loaded(budget))
      for (const { of, bytes, clears } of steps) {
        const one = all[of]!
        if (clears) one.clear()
        else one.search(bytes)
        expect(one.bytes).toBe(clears ? 0 : bytes)
        expect(all.reduce((sum, each) => sum + each.bytes, 0)).toBeLessThanOrEqual(MOST)
      }
    }),
  )
})

test('the one that was searched longest ago makes room, and no more of them than have to', () => {
  const budget = new MemoryBudget(MOST)
  const [a, b, c] = [new Loaded(budget), new Loaded(budget), new Loaded(budget)]
  a!.search(40)
  b!.search(40)
  a!.search(40)
  c!.search(60)
  expect([a!.bytes, b!.bytes, c!.bytes]).toEqual([40, 0, 60])
  b!.search(30)
  expect([a!.evictions, b!.evictions, c!.evictions]).toEqual([1, 1, 0])
})

test('one that is larger than the budget stays alone', () => {
  const budget = new MemoryBudget(MOST)
  const [a, b] = [new Loaded(budget), new Loaded(budget)]
  a!.search(50)
  b!.search(150)
  expect([a!.bytes, b!.bytes]).toEqual([0, 150])
})
