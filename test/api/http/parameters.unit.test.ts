import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fill, listed, override, parameterValue, parseQuery } from '../../../src/api/http/body'

describe('query strings', () => {
  it.each([
    ['?q=a+b', { q: 'a b' }],
    ['q=a%2Bb', { q: 'a+b' }],
    ['q=caf%C3%A9', { q: 'café' }],
    ['q=%F0%9F%98%80', { q: '😀' }],
    ['q=100%', { q: '100%' }],
    ['q=%zz%41', { q: '%zzA' }],
    ['q=%FF', { q: '\ufffd' }],
    ['q=a=b', { q: 'a=b' }],
    ['q', { q: '' }],
    ['q=', { q: '' }],
    ['q=1&q=2', { q: '2' }],
    ['%71=1', { '%71': '1' }],
    ['filter_by=a:1&filter_by=b:2', { filter_by: 'a:1&&b:2' }],
    ['filter_by=a:1 && b:2&q=x', { filter_by: 'a:1 && b:2', q: 'x' }],
    ['filter_by=a:1&&b:2&q=x', { filter_by: 'a:1&&b:2', q: 'x' }],
    ['filter_by=a:%3E1%20%26%26%20b:2', { filter_by: 'a:>1 && b:2' }],
    ['&q=x&', { q: 'x' }],
    ['__proto__=x', {}],
    ['', {}],
    ['?', {}],
  ])('%s', (query, expected) => {
    expect(parseQuery(query)).toEqual(expected)
  })

  it('gives back what a client encoded', () => {
    const value = fc.string({ unit: 'binary' }).filter((text) => text.isWellFormed())
    const name = fc.stringMatching(/^[a-z][a-z_]{0,8}$/)
    fc.assert(
      fc.property(fc.dictionary(name, value), (parameters) => {
        const query = Object.entries(parameters)
          .map(([key, text]) => `${key}=${encodeURIComponent(text)}`)
          .join('&')
        expect(parseQuery(query)).toEqual({ ...parameters })
      }),
    )
  })

  it('agrees with URLSearchParams on forms', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        const form = new URLSearchParams({ q: text }).toString()
        expect(parseQuery(form).q).toBe(new URLSearchParams(form).get('q'))
      }),
    )
  })
})

describe('joining parameters', () => {
  it('fills gaps only, and keeps both filters', () => {
    expect(fill({ q: 'a', filter_by: 'x:1' }, { q: 'b', per_page: '5', filter_by: 'y:2 || z:3' })).toEqual({
      q: 'a',
      per_page: '5',
      filter_by: '(x:1) && (y:2 || z:3)',
    })
  })

  it('overrides, and keeps both filters, for pinned documents too', () => {
    expect(override({ q: 'a', filter_by: 'x:1' }, { q: 'b', filter_by: 'y:2' })).toEqual({
      q: 'b',
      filter_by: '(x:1) && (y:2)',
      filter_curated_hits: 'true',
    })
  })

  it('takes the one filter there is', () => {
    expect(override({ filter_by: '' }, { filter_by: 'y:2' }).filter_by).toBe('y:2')
    expect(override({ filter_by: 'x:1' }, {})).toEqual({ filter_by: 'x:1' })
  })

  it.each(['x:1) || (y:2', 'x:`1', 'x:[1', 'x:1)', '(x:1', 'x:[(1])', 'x:=`a` `', 'a`:1 && b:`2'])(
    'refuses a filter that reaches over the seam: %s',
    (filter) => {
      expect(() => override({ filter_by: filter }, { filter_by: 'tenant:=`7`' })).toThrow(
        'Could not parse the filter query',
      )
    },
  )

  it.each(['x:=`a)b`', 'loc:(1, 2, 3 km)', 'x:[a,b] && (y:1 || z:2)'])(
    'accepts a closed filter: %s',
    (filter) => {
      expect(override({ filter_by: filter }, { filter_by: 't:1' }).filter_by).toBe(`(${filter}) && (t:1)`)
    },
  )
})

describe('values of a JSON body', () => {
  it.each([
    ['a', 'a'],
    [5, '5'],
    [0.25, '0.25'],
    [true, 'true'],
    [null, undefined],
    [[], undefined],
    [{}, undefined],
  ])('%j', (value, expected) => {
    expect(parameterValue(value)).toBe(expected)
  })
})

describe('lists of names', () => {
  it.each([
    [undefined, []],
    [' a , b,', ['a', 'b']],
    // The commas of a join are its own.
    ['$authors(name, bio), title', ['$authors(name, bio)', 'title']],
    ['$a($b(x, y), z),$a(w)', ['$a($b(x, y), z)', '$a(w)']],
  ])('%j', (text, names) => {
    expect(listed(text)).toEqual(names)
  })
})
