/** A key's filter beside the asked one, as a cluster reads them. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { requireNoJoin, scopedFilter } from '../../src/engines/cluster'
import { ApiError } from '../../src/errors'
import { parseFilter } from '../../src/search/filter/parse'

const OWN = 'tenant:=a'

describe('the filter of a key', () => {
  test.each([
    'title:zzz`) || (tenant:=b`',
    'title:`x`y`) || (tenant:=b`',
    'title:[a`] || tenant:=[b`]',
    'title:x(a:1 || tenant:=b)',
  ])('stays around %s', (asked) => {
    expect(parseFilter(scopedFilter(asked, OWN))).toMatchObject({
      kind: 'and',
      children: [parseFilter(OWN), { kind: 'clause', field: 'title' }],
    })
  })

  test.each([
    ['a phrase: Typesense reads no double quotes', 'title:"x) || (tenant:=b"'],
    ['a name with a backtick', 'x`:`) || (tenant:=b`'],
  ])('refuses signs in %s', (_, asked) => {
    expect(() => scopedFilter(asked, OWN)).toThrow('signs')
  })

  test.each([
    'place:(48.9, 2.3, 5 km)',
    'place:(48.9, 2.3, 5 mi, exact_filter_radius: false)',
    'points:[1..3, 5]',
    'points:>=5',
    'title:a b*',
    'title:"two words, at AT&T"',
    'title:`(a), b`',
  ])('leaves %s as it is', (asked) => {
    expect(scopedFilter(asked, OWN)).toBe(`(${OWN}) && (${asked})`)
  })

  test('stays around every filter that parses', () => {
    const text = fc.string({ unit: fc.constantFrom(...'ab:=!&|()[]`,.*<> 1"'.split('')), maxLength: 40 })
    fc.assert(
      fc.property(text, (asked) => {
        let both: string
        try {
          if (parseFilter(asked) === undefined) return
          both = scopedFilter(asked, OWN)
        } catch (error) {
          expect(error).toBeInstanceOf(ApiError)
          return
        }
        const read = parseFilter(both)
        expect(read).toMatchObject({ kind: 'and' })
        expect((read as { children: unknown[] }).children[0]).toEqual(parseFilter(OWN))
      }),
    )
  })
})

test.each(['$other(id:*)', '!$other (id:*)', '$ other(id:*)', '$my notes(id:*)', 'a:1 && $other(*)'])(
  'a join is found in %s',
  (text) => expect(() => requireNoJoin(text)).toThrow('Joins'),
)

test.each(['price:$5', 'title:`costs $5` && (a:1)', 'title,overview', '$score:1 && (b:2)'])(
  'no join is found in %s',
  (text) => requireNoJoin(text),
)
