/** What stands in the braces of MDX. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { literalOf, markdownList } from '../../../scripts/parley/read/mdx-values.mjs'

/** A value without what JSON calls null, which says nothing here. */
const withoutNull = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutNull)
  if (typeof value !== 'object' || value === null) return value ?? undefined
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withoutNull(each)]))
}

test('JSON is read as what it is', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.boolean(), (value, isSpaced) => {
      const plain = JSON.parse(JSON.stringify(value))
      expect(literalOf(JSON.stringify(plain, null, isSpaced ? 2 : 0))).toEqual(withoutNull(plain))
    }),
  )
})

test('nothing is refused, and nothing that is no value becomes one', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'[]{}(),:+<>/"\'`\\ab1.=$\n ') }), (text) => {
      expect(() => markdownList(literalOf(text))).not.toThrow()
    }),
  )
  for (const code of [
    'name',
    'f({ a: 1 })',
    '(a) => a',
    `\`a \${b}\``,
    '"a" + b',
    '...more',
    'a ? "b" : "c"',
  ])
    expect(literalOf(code)).toBeUndefined()
})

test('what is computed is left out of what is not', () => {
  expect(
    literalOf(
      "[{ a: f(1, { b: 2 }), 'b-c': 'd', e: [g, 2, `h`], ...rest, i: <I n={[1]} />, /* j */ k: !l, },]",
    ),
  ).toEqual([{ 'b-c': 'd', e: [undefined, 2, 'h'] }])
})

test('a long or deep expression takes no more than its length', () => {
  expect(markdownList(literalOf('['.repeat(100_000)))).toBe('')
  expect(markdownList(literalOf(`${'{a:['.repeat(20_000)}1`))).toBe('')
  expect(markdownList(literalOf(`[${"{ name: 'a' },".repeat(20_000)}]`))).toHaveLength(20_000 * 8 - 1)
})
