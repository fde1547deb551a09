import fc from 'fast-check'
import { expect, it } from 'vitest'
import { sourceFilter } from '../../../src/api/opensearch/source'

const without = (excludes: string[], source: Record<string, unknown>) => sourceFilter({ excludes })?.(source)

it('shows an object or list of which everything is left out as empty', () => {
  const source = { a: { b: 1 }, list: [{ b: 2 }, { b: 3 }], deep: { of: { b: 4 } }, none: {}, c: 5 }
  expect(without(['*.b'], source)).toEqual({ a: {}, list: [], deep: { of: {} }, none: {}, c: 5 })
  expect(without(['a.b', 'deep.of.b'], source)).toEqual({ ...source, a: {}, deep: { of: {} } })
})

it('shows nothing of a path that is left out', () => {
  const name = fc.constantFrom('a', 'b', 'c')
  const { source } = fc.letrec<{ source: Record<string, unknown>; value: unknown }>((tie) => ({
    source: fc.dictionary(name, tie('value'), { maxKeys: 3 }),
    value: fc.oneof(
      { maxDepth: 3 },
      fc.constant('secret'),
      tie('source'),
      fc.array(tie('source'), { maxLength: 2 }),
    ),
  }))
  const path = fc.array(name, { minLength: 1, maxLength: 3 })
  /** The values at a path, through lists. */
  const at = (value: unknown, [first, ...rest]: string[]): unknown[] => {
    if (Array.isArray(value))
      return value.flatMap((each) => at(each, first === undefined ? [] : [first, ...rest]))
    if (first === undefined) return [value]
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, first)) return []
    return at((value as Record<string, unknown>)[first], rest)
  }
  fc.assert(
    fc.property(source, path, (given, names) => {
      expect(at(without([names.join('.')], given), names)).toEqual([])
    }),
  )
})
