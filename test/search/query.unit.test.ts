import fc from 'fast-check'
import { stemmer } from 'stemmer'
import { describe, expect, it } from 'vitest'
import { type Analyzer, completions, stemAnalyzer, wordAnalyzer } from '../../src/search/text/analyzer'
import { informativeWords, matchExpression, parseQuery, relax, type Term } from '../../src/search/text/query'

const PLAIN = { token_separators: [], symbols_to_index: [] }
const STEMS = stemAnalyzer(PLAIN)

const term = (...tokens: string[]): Term => ({ tokens, written: tokens, prefix: false, corrections: [] })
const quoted = (...tokens: string[]): Term => ({ ...term(...tokens), quoted: true })
const unfinished = (...tokens: string[]): Term => ({ ...term(...tokens), prefix: true })

describe('parseQuery', () => {
  it.each<[string, Term[], Term[]]>([
    ['quick fox', [term('quick'), unfinished('fox')], []],
    ['quick ', [unfinished('quick')], []],
    ['the the fox', [{ ...term('the'), repeats: 'the' }, unfinished('fox')], []],
    ['"quick fox" runs', [quoted('quick', 'fox'), unfinished('runs')], []],
    ['runs "quick fox"', [term('runs'), quoted('quick', 'fox')], []],
    ['fox -lazy', [unfinished('fox')], [term('lazy')]],
    ['fox "lazy dog" -sleeps', [term('fox'), quoted('lazy', 'dog')], [term('sleeps')]],
    ['-"lazy dog" fox', [unfinished('fox')], [quoted('lazy', 'dog')]],
    ['state-of-the-art', [{ ...unfinished('state', 'of', 'the', 'art'), text: 'state-of-the-art' }], []],
    ['--x', [{ ...unfinished('x'), text: '--x' }], []],
    ['?? ! "" -', [], []],
    ['東京 x', [{ ...term('東', '京'), text: '東京' }, unfinished('x')], []],
    ['Élan', [{ ...unfinished('elan'), written: ['Élan'] }], []],
    ['say "half open', [term('say'), { ...term('half'), text: '"half' }, unfinished('open')], []],
  ])('%s', (q, terms, excluded) => {
    expect(parseQuery(q, STEMS, true)).toEqual({ terms, excluded })
  })

  it('has no unfinished word where there are none', () => {
    expect(parseQuery('fox', STEMS, false).terms).toEqual([term('fox')])
  })
})

describe('relax', () => {
  it('drops stopwords and takes phrases apart', () => {
    expect(relax([term('what'), term('is'), term('open', 'source'), term('of')])).toEqual([
      term('open', 'source'),
      term('open'),
      term('source'),
    ])
  })

  it('keeps stopwords when there is nothing else', () => {
    expect(relax([term('to'), term('be')])).toEqual([term('to'), term('be')])
    expect(informativeWords([term('to'), term('be'), term('king')])).toBe(1)
  })
})

describe('matchExpression', () => {
  const column = (name: string, prefix: boolean, analyzer: Analyzer = STEMS) => ({
    column: name,
    prefix,
    analyzer,
  })
  const title = column('t0', true)
  const text = column('t1', false)

  it('quotes every word and names its columns', () => {
    expect(matchExpression([term('a'), term('b', 'c')], [], [title, text], 'AND')).toBe(
      '{t0 t1} : ("a" AND "b c")',
    )
    expect(matchExpression([term('a')], [term('b')], [text], 'OR')).toBe('{t1} : (("a") NOT ("b"))')
  })

  it('takes a beginning only where it may', () => {
    expect(matchExpression([unfinished('do')], [], [title], 'AND')).toBe('{t0} : ("do"*)')
    expect(matchExpression([unfinished('do')], [], [text], 'AND')).toBe('{t1} : ("do")')
    expect(matchExpression([unfinished('do')], [], [title, text], 'AND')).toBe(
      '{t0 t1} : (({t0} : ("do"*) OR {t1} : ("do")))',
    )
  })

  it('asks each column in the form of its words', () => {
    const written = column('t2', true, wordAnalyzer(PLAIN))
    const term = { ...unfinished('documentati'), written: ['Documentati'] }
    expect(matchExpression([term], [], [written], 'AND')).toBe('{t2} : ("documentati"*)')
    const { analyzer } = written
    expect(matchExpression([term], [], [text, column('t2', false, analyzer)], 'AND')).toBe(
      '{t1 t2} : (({t1} : ("Documentati") OR {t2} : ("documentati")))',
    )
  })

  it('offers corrections beside the word', () => {
    const corrected = { ...term('foks'), corrections: ['fox', 'folk'] }
    expect(matchExpression([corrected], [], [text], 'AND')).toBe('{t1} : (("foks" OR "fox" OR "folk"))')
  })

  it('carries indexed symbols as the index does', () => {
    const analyzer = stemAnalyzer({ token_separators: [], symbols_to_index: ['+'] })
    const { terms } = parseQuery('c++', analyzer, false)
    expect(matchExpression(terms, [], [column('t1', false, analyzer)], 'AND')).toBe(
      '{t1} : ("c\ue02b\ue02b")',
    )
  })

  it('never lets anything but quoted words through', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 40 }), (q) => {
        const { terms, excluded } = parseQuery(q, STEMS, true)
        if (terms.length === 0) return
        const bare = matchExpression(terms, excluded, [text], 'AND').replace(/"[^"]*"\*?/g, 'W')
        expect(bare).toMatch(/^\{t1\} : \((W| AND | OR | NOT |\(|\))+\)$/)
      }),
      { numRuns: 1000 },
    )
  })
})

describe('completions', () => {
  it.each([
    'documentation',
    'university',
    'streaming',
    'relational',
    'happiness',
    'stopped',
    'embedding',
    'vectorization',
  ])('lead from every beginning of %s to its stem', (word) => {
    for (let length = 3; length <= word.length; length++) {
      const typed = word.slice(0, length)
      const stems = completions(typed).map((completion) => stemmer(completion))
      const isFound = stemmer(word).startsWith(stemmer(typed)) || stems.includes(stemmer(word))
      expect(isFound, typed).toBe(true)
    }
  })

  it('begin with what was typed', () => {
    const word = fc.stringMatching(/^[a-z]{1,14}$/)
    fc.assert(
      fc.property(word, (typed) => {
        for (const completion of completions(typed)) expect(completion.startsWith(typed)).toBe(true)
      }),
    )
  })

  it('do not shorten a word to a different one', () => {
    expect(completions('planet')).toEqual([])
    expect(completions('abc1')).toEqual([])
  })
})
