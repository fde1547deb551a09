/** Values of documents: which are taken, which are made to fit, and that nothing else comes through. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ApiError } from '../../src/errors'
import { checked, coerceDocument, coerced, INVALID, OVERFLOW } from '../../src/search/documents/document'
import type { StoredSchema } from '../../src/search/schema/layout'
import { type Kind, planOf } from '../../src/search/schema/plan'
import { parseSchema } from '../../src/search/schema/schema'
import { leaves, merge } from '../../src/search/schema/values'
import type { DirtyValues } from '../../src/search/types'
import { shortest } from '../../src/search/vectors/packed-vectors'

const planFor = (fields: Record<string, unknown>[], nested = false) => {
  const schema = parseSchema({ name: 'c', fields, enable_nested_fields: nested })
  return planOf({ ...schema, slots: {}, nextSlot: 0, nextText: 0, textColumns: 0 } as StoredSchema)
}

const KINDS: Kind[] = ['string', 'int32', 'int64', 'float', 'bool', 'geopoint']

describe('a value', () => {
  it.each<[Kind, unknown, unknown]>([
    ['string', 5, '5'],
    ['string', 1.5, '1.5'],
    ['string', true, 'true'],
    ['string', null, INVALID],
    ['string', {}, INVALID],
    ['int32', '17', 17],
    ['int32', '-17', -17],
    ['int32', 2.9, 2],
    ['int32', true, 1],
    ['int32', '1.5', INVALID],
    ['int32', '', INVALID],
    ['int32', '99999999999', OVERFLOW],
    ['int64', '99999999999', 99999999999],
    ['int64', '+1712345678901234567', 1712345678901234567n],
    ['int64', '9223372036854775808', INVALID],
    ['int64', '9'.repeat(400), INVALID],
    ['int32', 1712345678901234567n, OVERFLOW],
    ['string', 1712345678901234567n, '1712345678901234567'],
    ['float', '1.5', 1.5],
    ['float', '.5e2', 50],
    ['float', 'Infinity', INVALID],
    ['float', '0x10', INVALID],
    ['bool', 'TRUE', true],
    ['bool', 0, false],
    ['bool', 2, INVALID],
    ['geopoint', ['1.5', 2], [1.5, 2]],
    ['geopoint', ['north', 2], INVALID],
    ['geopoint', [1], INVALID],
  ])('for %s of %j is made %j', (kind, value, expected) => {
    expect(coerced(kind, value)).toEqual(expected)
  })

  it('that has been made to fit fits', () => {
    fc.assert(
      fc.property(fc.constantFrom(...KINDS), fc.jsonValue(), (kind, value) => {
        const made = coerced(kind, value)
        return made === INVALID || made === OVERFLOW || checked(kind, made) === made
      }),
    )
  })
})

describe('a document', () => {
  const modes: DirtyValues[] = ['reject', 'drop', 'coerce_or_reject', 'coerce_or_drop']

  it('has only fitting values once it is through, whatever it was', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...KINDS),
        fc.boolean(),
        fc.boolean(),
        fc.constantFrom(...modes),
        fc.jsonValue(),
        (kind, list, optional, dirty, value) => {
          const plan = planFor([{ name: 'f', type: list ? `${kind}[]` : kind, optional }])
          const draft: Record<string, unknown> = { f: value }
          try {
            coerceDocument(plan, draft, dirty, false)
          } catch (error) {
            // A refusal is one of the wire's sentences, never another error.
            return error instanceof ApiError && error.status === 400
          }
          if (!('f' in draft)) return optional
          const values = list ? (draft.f as unknown[]) : [draft.f]
          return values.every((each) => checked(kind, each) === each)
        },
      ),
    )
  })

  it('is left as it is when nothing is wrong with it', () => {
    const plan = planFor([
      { name: 's', type: 'string' },
      { name: 'n', type: 'int32[]' },
    ])
    const record = fc.record({ s: fc.string(), n: fc.array(fc.integer()), more: fc.jsonValue() })
    fc.assert(
      fc.property(record, (draft) => {
        const copy = structuredClone(draft)
        coerceDocument(plan, draft, 'reject', false)
        expect(draft).toEqual(copy)
      }),
    )
  })

  it.each<[Record<string, unknown>, unknown, string]>([
    [
      { type: 'string' },
      undefined,
      'Field `f` has been declared in the schema, but is not found in the document.',
    ],
    [{ type: 'string' }, null, 'Field `f` must be a string.'],
    [{ type: 'int64' }, 'x', 'Field `f` must be an int64.'],
    [{ type: 'float' }, 'x', 'Field `f` must be a float.'],
    [{ type: 'bool' }, 'x', 'Field `f` must be a bool.'],
    [{ type: 'float[]' }, ['x'], 'Field `f` must be a array of float.'],
    [{ type: 'geopoint' }, 5, 'Field `f` must be a 2 element array: [lat, lng].'],
    [{ type: 'geopoint' }, ['a', 'b'], 'Field `f` must be a geopoint.'],
    [{ type: 'geopoint[]' }, [5], 'Field `f` must contain 2 element arrays: [ [lat, lng],... ].'],
    [{ type: 'float[]', num_dim: 3 }, [1, 2], 'Field `f` must have 3 dimensions.'],
    [{ type: 'string[]' }, 'x', 'Field `f` must be an array.'],
  ])('with a field of %j and the value %j is refused', (field, value, message) => {
    const plan = planFor([{ name: 'f', ...field }])
    const draft = value === undefined ? {} : { f: value }
    expect(() => coerceDocument(plan, draft, 'reject', false)).toThrow(
      expect.objectContaining({ status: 400, message }),
    )
  })
})

describe('a vector', () => {
  it('comes back as the numbers that were sent, as far as a float32 holds them', () => {
    fc.assert(
      fc.property(fc.float({ noNaN: true, noDefaultInfinity: true }), (value) => {
        // JSON has no negative zero.
        expect(Math.fround(shortest(value)) + 0).toBe(value + 0)
      }),
    )
    fc.assert(
      fc.property(
        fc.integer({ min: -999_999, max: 999_999 }),
        fc.integer({ min: 0, max: 6 }),
        (digits, places) => {
          const value = Number((digits / 10 ** places).toFixed(places))
          expect(shortest(Math.fround(value))).toBe(value)
        },
      ),
    )
    expect([0.1, 0.2, 0.3, -0.7].map((value) => shortest(Math.fround(value)))).toEqual([0.1, 0.2, 0.3, -0.7])
  })
})

describe('a patch', () => {
  it('merges objects, replaces the rest, and removes by null', () => {
    const document = { a: { b: 1, c: [1, 2] }, d: 1, e: { f: 1 } }
    merge(document, { a: { b: 2, c: [3] }, d: null, e: 5, g: { h: null } })
    expect(document).toEqual({ a: { b: 2, c: [3] }, e: 5, g: { h: null } })
  })

  it('changes no prototype', () => {
    const document: Record<string, unknown> = {}
    merge(
      document,
      JSON.parse('{"__proto__":{"polluted":true},"constructor":{"prototype":{"polluted":true}}}'),
    )
    expect((document as { polluted?: unknown }).polluted).toBeUndefined()
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined()
  })
})

describe('a dotted name', () => {
  it('reaches through objects and arrays, and prefers a key of that very name', () => {
    const document = { a: [{ b: 1 }, { b: [2, 3] }, { c: 4 }], 'x.y': 5, x: { y: 6 } }
    expect(leaves(document, 'a.b', ['a', 'b']).map(({ value }) => value)).toEqual([1, [2, 3]])
    expect(leaves(document, 'x.y', ['x', 'y']).map(({ value }) => value)).toEqual([5])
    expect(leaves(document, 'toString', undefined)).toEqual([])
  })
})
