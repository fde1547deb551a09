import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ApiError } from '../../../src/errors'
import { during, type FilterNode, parseFilter, printFilter } from '../../../src/search/filter/parse'

const clause = (
  field: string,
  operator: ':' | ':=' | ':!=' | ':!',
  ...values: (string | { quoted: string })[]
): FilterNode => ({
  kind: 'clause',
  field,
  operator,
  list: false,
  values: values.map((value) =>
    typeof value === 'string' ? { text: value, quoted: false } : { text: value.quoted, quoted: true },
  ),
})

const list = (...args: Parameters<typeof clause>): FilterNode =>
  ({ ...clause(...args), list: true }) as FilterNode

const messageOf = (filter: string): string => {
  try {
    parseFilter(filter)
  } catch (error) {
    if (error instanceof ApiError && error.status === 400) return error.message
    throw error
  }
  return 'parsed'
}

describe('parseFilter', () => {
  const a = clause('a', ':', '1')
  const b = clause('b', ':', '2')
  const c = clause('c', ':', '3')

  it.each<[string, FilterNode | undefined]>([
    ['', undefined],
    ['  ', undefined],
    ['a:1', a],
    [' a : 1 ', a],
    ['title:=the matrix', clause('title', ':=', 'the matrix')],
    ['title := the matrix ', clause('title', ':=', 'the matrix')],
    ['title: != x', clause('title', ':!=', 'x')],
    ['title:!x', clause('title', ':!', 'x')],
    ['a:>=5', clause('a', ':', '>=5')],
    ['a:=[1,2 , 3]', list('a', ':=', '1', '2', '3')],
    ['a:![x y,z]', list('a', ':!', 'x y', 'z')],
    ['a:[1..3,7]', list('a', ':', '1..3', '7')],
    ['a:[]', { ...list('a', ':') } as FilterNode],
    ['a:', clause('a', ':', '')],
    ['a:=`x && (y` && b:2', { kind: 'and', children: [clause('a', ':=', { quoted: 'x && (y' }), b] }],
    ['a:[`x, y`, z]', list('a', ':', { quoted: 'x, y' }, 'z')],
    ['a:x`,`y', clause('a', ':', 'x,y')],
    ['a:foo (bar) && b:2', { kind: 'and', children: [clause('a', ':', 'foo (bar)'), b] }],
    ['loc:(48.9, 2.3, 5 km)', clause('loc', ':', '(48.9, 2.3, 5 km)')],
    ['loc:[(1,2,3 km), (4,5,6 mi)]', list('loc', ':', '(1,2,3 km)', '(4,5,6 mi)')],
    ['a.b.c:1', clause('a.b.c', ':', '1')],
    ['time:12:30', clause('time', ':', '12:30')],
    ['a:1 && b:2 && c:3', { kind: 'and', children: [a, b, c] }],
    ['a:1 || b:2 && c:3', { kind: 'and', children: [{ kind: 'or', children: [a, b] }, c] }],
    ['a:1 && b:2 || c:3', { kind: 'or', children: [{ kind: 'and', children: [a, b] }, c] }],
    ['a:1 && (b:2 || c:3)', { kind: 'and', children: [a, { kind: 'or', children: [b, c] }] }],
    [
      'a:"x, y"',
      {
        ...clause('a', ':', ''),
        values: [{ text: '"x, y"', quoted: false, phrase: true }],
      } as FilterNode,
    ],
    ['a:`"x`', clause('a', ':', { quoted: '"x' })],
    ['a:`x\\` || b:2`', clause('a', ':', { quoted: 'x` || b:2' })],
    ['a:`x\\\\` || b:2`', clause('a', ':', { quoted: 'x\\` || b:2' })],
    ['a:`\\``', clause('a', ':', { quoted: '`' })],
    ['a:x\\`y && b:2', { kind: 'and', children: [clause('a', ':', 'x`y'), b] }],
    ['(a:`x\\`)`)', clause('a', ':', { quoted: 'x`)' })],
    [
      '$other(a:`\\`) || (b:2`) && b:2',
      {
        kind: 'and',
        children: [{ kind: 'join', negated: false, collection: 'other', filter: 'a:`\\`) || (b:2`' }, b],
      },
    ],
    ['a:5"', clause('a', ':', '5"')],
    ['a:x" y"', clause('a', ':', 'x" y"')],
    ['o.{a:1}', { kind: 'object', field: 'o', child: a }],
    [
      'o.p.{ a:1 && b:2 } || c:3',
      {
        kind: 'or',
        children: [{ kind: 'object', field: 'o.p', child: { kind: 'and', children: [a, b] } }, c],
      },
    ],
    ['a:x}', clause('a', ':', 'x}')],
    ['((a:1))&&(b:2)', { kind: 'and', children: [a, b] }],
  ])('%s', (text, tree) => {
    expect(parseFilter(text)).toEqual(tree)
  })

  const malformed = 'Could not parse the filter query.'
  const unbalanced = 'Could not parse the filter query: unbalanced parentheses.'
  it.each([
    ['points', malformed],
    ['foo && age:>30', malformed],
    ['a:1 &&', malformed],
    ['&& a:1', malformed],
    [':1', malformed],
    ['a:1 && || b:2', malformed],
    ['()', malformed],
    ['a:[1,2', malformed],
    ['a:`x', malformed],
    ['a:`x\\`', malformed],
    ['a:`x\\` && b:`y`', malformed],
    ['a:"x', malformed],
    ['o.{a:1', 'Could not parse the object filter: unbalanced curly braces.'],
    ['o.{a:1)', 'Could not parse the object filter: unbalanced curly braces.'],
    ['(a:1', unbalanced],
    ['a:1)', unbalanced],
    ['(a:1 && (b:2)', unbalanced],
    ['(a:1))', unbalanced],
    ['a:(1', unbalanced],
    ['$other(id:1', 'Could not parse the reference filter: `$other(id:1`.'],
    ['$other', 'Could not parse the reference filter: `$other`.'],
    ['a:1 && $other(b)', malformed],
    ['$other(a:1) b', unbalanced],
    [`${'$a('.repeat(6)}id:1${')'.repeat(6)}`, 'Joins are nested too deeply: at most 5 levels are allowed.'],
    [
      `$a(${Array(4000).fill('a:1').join('||')})`,
      'The filter has too many clauses: at most 4000 are allowed.',
    ],
    [Array(4001).fill('a:1').join('||'), 'The filter has too many clauses: at most 4000 are allowed.'],
    [
      `${'('.repeat(101)}a:1${')'.repeat(101)}`,
      'The filter is nested too deeply: at most 100 levels are allowed.',
    ],
    [`a:1${' && b:1 || c:1'.repeat(51)}`, 'The filter is nested too deeply: at most 100 levels are allowed.'],
    [
      `${'lines.{'.repeat(101)}a:1${'}'.repeat(101)}`,
      'The filter is nested too deeply: at most 100 levels are allowed.',
    ],
  ])('refuses %.40s', (text, message) => {
    expect(messageOf(text)).toBe(message)
  })

  it('counts each level of objects once', () => {
    const objects = (levels: number) => `${'lines.{'.repeat(levels)}a:1${'}'.repeat(levels)} && b:1`
    expect(() => parseFilter(objects(98))).not.toThrow()
    expect(messageOf(objects(101))).toContain('nested too deeply')
  })

  it('takes 4000 clauses of one operator', () => {
    const tree = parseFilter(Array(4000).fill('a:1').join(' || '))
    expect(tree?.kind === 'or' && tree.children.length).toBe(4000)
  })

  it('reads back what it printed', () => {
    const name = fc.stringMatching(/^[a-z_][a-z0-9_.]{0,8}$/)
    const plain = fc
      .stringMatching(/^[a-z0-9.*<>][a-z0-9 .*<>-]{0,8}$/)
      .map((text) => text.trim())
      .map((text) => ({ text, quoted: false }))
    const quoted = fc
      .string({ unit: 'grapheme', maxLength: 12 })
      .filter((text) => !text.includes('`'))
      .map((text) => ({ text, quoted: true }))
    const value = fc.oneof(plain, quoted)
    const operator = fc.constantFrom(':' as const, ':=' as const, ':!=' as const, ':!' as const)
    const anyClause = fc.oneof(
      fc.record({ field: name, operator, value }).map(
        ({ field, operator, value }): FilterNode => ({
          kind: 'clause',
          field,
          operator,
          list: false,
          values: [value],
        }),
      ),
      fc.record({ field: name, operator, values: fc.array(value, { maxLength: 4 }) }).map(
        ({ field, operator, values }): FilterNode => ({
          kind: 'clause',
          field,
          operator,
          list: true,
          values,
        }),
      ),
    )
    const tree = fc.letrec<{ node: FilterNode }>((tie) => ({
      node: fc.oneof(
        { maxDepth: 4, withCrossShrink: true },
        anyClause,
        fc
          .record({
            kind: fc.constantFrom('and' as const, 'or' as const),
            children: fc.array(tie('node'), { minLength: 2, maxLength: 4 }),
          })
          .filter(({ kind, children }) => children[0]?.kind !== kind),
      ),
    })).node
    fc.assert(
      fc.property(tree, (node) => {
        expect(parseFilter(printFilter(node))).toEqual(node)
      }),
    )
  })

  const noise = fc.string({
    unit: fc.constantFrom(...'ab:=!&|()[]{}"`,.*<> 1'.split('')),
    maxLength: 40,
  })

  const whole = fc
    .string({ unit: fc.constantFrom(...'ab:=!&|()[]{}"`,.*<> 1'.split('')), maxLength: 10 })
    .map((text) => `a:${text}`)
    .filter((text) => messageOf(text) === 'parsed')

  it('reads joined filters as each was read alone', () => {
    fc.assert(
      fc.property(whole, whole, (left, right) => {
        const [a, b] = [parseFilter(left), parseFilter(right)]
        const children = a!.kind === 'and' ? [...a!.children, b!] : [a!, b!]
        expect(parseFilter(`(${left}) && (${right})`)).toEqual({ kind: 'and', children })
      }),
      { numRuns: 500 },
    )
  })

  it('answers any text with a tree or a message', () => {
    fc.assert(
      fc.property(noise, (text) => {
        expect(messageOf(text)).not.toBe('')
      }),
      { numRuns: 2000 },
    )
  })
})

describe('values of OpenSearch', () => {
  it.each([
    ['a:"quick bro"*', { text: '"quick bro"', quoted: false, phrase: true, open: true }],
    ['a:"quick bro"', { text: '"quick bro"', quoted: false, phrase: true }],
    [`a:=${during(-Infinity, 1_700_000_000_000)}`, { quoted: true, times: [-Infinity, 1_700_000_000_000] }],
  ])('reads and prints %j', (filter, value) => {
    const tree = parseFilter(filter)!
    expect(tree).toMatchObject({ values: [value] })
    expect(printFilter(tree)).toBe(filter)
  })
})
