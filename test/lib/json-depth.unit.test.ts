import fc from 'fast-check'
import { expect, it } from 'vitest'
import { MAX_JSON_DEPTH, requireShallow } from '../../src/lib/json'

const isShallow = (json: string): boolean => {
  try {
    requireShallow(json)
    return true
  } catch (error) {
    expect(error).toMatchObject({ status: 400 })
    return false
  }
}

const depthOf = (value: unknown): number =>
  typeof value === 'object' && value !== null ? 1 + Math.max(0, ...Object.values(value).map(depthOf)) : 0

it.each([
  ['['.repeat(100) + ']'.repeat(100), true],
  ['['.repeat(101) + ']'.repeat(101), false],
  [`${'{"a":'.repeat(101)}1${'}'.repeat(101)}`, false],
  ['['.repeat(101), false],
  [JSON.stringify(Array(10_000).fill([])), true],
  [JSON.stringify('['.repeat(1_000)), true],
  [JSON.stringify([`\\"${'{'.repeat(1_000)}`, '\\', '['.repeat(200)]), true],
])('counts levels and not brackets (%#)', (json, shallow) => {
  expect(isShallow(json)).toBe(shallow)
})

it('agrees with the parser', () => {
  const text = fc.string({ unit: fc.constantFrom('{', '[', '"', '\\', ']', 'x') })
  const value = fc.letrec((tie) => ({
    any: fc.oneof({ maxDepth: 20 }, text, fc.array(tie('any')), fc.dictionary(text, tie('any'))),
  })).any
  fc.assert(
    fc.property(value, fc.nat(120), (inner, levels) => {
      let whole: unknown = inner
      for (let level = 0; level < levels; level++) whole = level % 2 ? [whole, '[['] : { '{"': whole }
      expect(isShallow(JSON.stringify(whole))).toBe(depthOf(whole) <= MAX_JSON_DEPTH)
    }),
  )
})
