import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { collectionPattern, fitsAnyName } from '../../src/auth/pattern'

describe('collection patterns', () => {
  it.each([
    ['*', 'anything', true],
    ['books', 'books', true],
    ['books', 'books2', false],
    ['books.*', 'books2', true],
    ['books.*', 'mybooks', false],
    ['org_\\d+_(docs|notes)', 'org_12_notes', true],
    ['org_\\d+_(docs|notes)', 'org_x_notes', false],
    ['^coll_[a-c]{2,3}$', 'coll_abc', true],
    ['^coll_[a-c]{2,3}$', 'coll_a', false],
    ['^coll_[a-c]{2,3}$', 'coll_abca', false],
    ['(a|b)*?c', 'ababc', true],
    ['[^x]+', 'abc', true],
    ['[^x]+', 'axc', false],
    ['caf.', 'café', true],
    ['a\\.b', 'axb', false],
    // no automaton: only the name itself
    ['(?=a)a', 'a', false],
    ['(?=a)a', '(?=a)a', true],
    ['a(b', 'a(b', true],
    ['[', '[', true],
    ['(.)\\1', 'aa', false],
  ])('%s on %s is %s', (pattern, name, expected) => {
    expect(collectionPattern(pattern)(name)).toBe(expected)
  })

  it('agrees with a backtracking matcher', () => {
    const atom = fc.constantFrom('a', 'b', '.', '[ab]', '[^a]', '\\w', '(a|b)', '(?:ab)', '(a|)', 'c')
    const quantifier = fc.constantFrom('', '', '*', '+', '?', '{2}', '{1,2}', '{1,}')
    const pattern = fc
      .array(fc.tuple(atom, quantifier), { maxLength: 5 })
      .map((parts) => parts.flat().join(''))
    const name = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 6 })
    fc.assert(
      fc.property(fc.array(pattern, { minLength: 1, maxLength: 2 }), name, (choices, text) => {
        const source = choices.join('|')
        expect(collectionPattern(source)(text)).toBe(new RegExp(`^(?:${source})$`).test(text))
      }),
      { numRuns: 2_000 },
    )
  })

  it('counts few states for patterns that a backtracking matcher needs exponential time for', () => {
    // 2^900 paths: this test ends at all only because there is no backtracking.
    expect(collectionPattern('(a+)+b')('a'.repeat(900))).toBe(false)
    expect(collectionPattern('(a|a)*b')('a'.repeat(900))).toBe(false)
  })

  it('matches no name that is longer than names are', () => {
    expect(collectionPattern('a*')('a'.repeat(1_000))).toBe(true)
    expect(collectionPattern('a*')('a'.repeat(1_001))).toBe(false)
  })

  it('takes a pattern that would grow too large as a name', () => {
    expect(collectionPattern('((a{99}){99}){99}')('aaa')).toBe(false)
    // No states at all, but a hundred million repetitions of nothing.
    expect(collectionPattern('((){9999}){9999}')('')).toBe(false)
    const deep = `${'('.repeat(50_000)}a${')'.repeat(50_000)}`
    expect(collectionPattern(deep)('a')).toBe(false)
    expect(collectionPattern(deep)(deep)).toBe(true)
  })
})

describe('a pattern that names no collection', () => {
  it.each([
    '*',
    '.*',
    '^.*$',
    '.+',
    '(.*)',
    '.{3,}',
    '[^x]+',
    '[^h].*',
    '\\w+',
    '[a-z]+',
    '[A-Z]*',
    '\\d+',
    '[a-m].*',
    'pub_x|.*',
    '.*.*',
    '(a|.)*',
  ])('is %s', (pattern) => {
    expect(fitsAnyName(pattern)).toBe(true)
  })

  it.each([
    'history',
    'hist.*',
    '.*_history',
    '.*story.*',
    '^pub_.*$',
    'pub_.+|priv_.+',
    'org_\\d+',
    'q.*',
    '',
  ])('is not %s', (pattern) => {
    expect(fitsAnyName(pattern)).toBe(false)
  })
})
