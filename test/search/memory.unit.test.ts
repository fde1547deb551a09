/** What the collections of an isolate keep in memory together. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Kept, Memory } from '../../src/search/memory'

const MOST = 100

const step = fc.record({
  kind: fc.constantFrom('set', 'set', 'get', 'delete', 'clear'),
  of: fc.nat({ max: 2 }),
  key: fc.nat({ max: 9 }),
  bytes: fc.integer({ min: 0, max: MOST + 20 }),
})

test('takes no more than the budget, and what was used last is there', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 80 }), (steps) => {
      const memory = new Memory(MOST)
      const all = Array.from({ length: 3 }, () => new Kept<number, string>(memory))
      /** by collection and key, the one that was used longest ago first */
      let model: { of: number; key: number; bytes: number }[] = []
      for (const [at, { kind, of, key, bytes }] of steps.entries()) {
        const one = all[of]!
        const isIt = (other: { of: number; key: number }) => other.of === of && other.key === key
        const known = model.find(isIt)
        if (kind === 'get') {
          expect(one.get(key) !== undefined).toBe(known !== undefined)
          if (known) model = [...model.filter((other) => other !== known), known]
        } else if (kind === 'clear') {
          one.clear()
          model = model.filter((other) => other.of !== of)
        } else {
          model = model.filter((other) => !isIt(other))
          if (kind === 'delete') one.delete(key)
          else {
            one.set(key, `value ${at}`, bytes)
            if (bytes <= MOST) model.push({ of, key, bytes })
          }
        }
        const sum = () => model.reduce((total, each) => total + each.bytes, 0)
        while (sum() > MOST) model.shift()
        expect(memory.bytes).toBe(sum())
        for (const [number, each] of all.entries())
          for (let other = 0; other < 10; other++)
            expect(each.has(other)).toBe(model.some((kept) => kept.of === number && kept.key === other))
      }
    }),
  )
})
