/**
 * No text makes a regular expression, or what goes through a text with several, take a time that grows with the square
 * of its length: a document, an answer or a parameter would stop the server for everybody.
 */
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { blocksOf } from '../src/models/extractive/blocks'
import { sentencesOf, splitSentences } from '../src/models/extractive/sentences'
import { wordsOf } from '../src/models/words'
import { matches } from '../src/search/documents/document'
import { questionsIn, SuggestionFilter } from '../src/turn/answer'
import { indexPassages, resolveCitations, supportOf } from '../src/turn/citations'
import { expressionsIn, growth, MOST_GROWTH, mayGrow, worstCases } from './regular-expressions'

const EXPRESSIONS = expressionsIn(join(import.meta.dirname, '../src'))
/** Each once, where it stands first: some are in several files. */
const DIFFERENT = [
  ...new Map(EXPRESSIONS.toReversed().map((each) => [`${each.source}/${each.flags}`, each])).values(),
].reverse()

/** Characters of the longest text that an expression meets, where that is short. */
const SHORT: Record<string, number> = {
  // Values of more than 60 characters are told apart otherwise (sentences.ts).
  '\\S+\\s+\\S+\\s+\\S+.*[.!?\\u3002\\uff01\\uff1f]\\s*$': 60,
}

const LENGTH = 1_000

/** Uses an expression as the sources use one with its flags. */
function use(pattern: RegExp, text: string): void {
  if (pattern.global) text.replace(pattern, '')
  else if (pattern.sticky) {
    for (let at = 0; at < text.length; ) {
      pattern.lastIndex = at
      pattern.test(text)
      at = Math.max(at + 1, pattern.lastIndex)
    }
  } else pattern.test(text)
}

// Each tries a run of characters again from every place in it.
it.each([
  ['\\s+$', ''],
  ['[ \\t]*\\n', 'g'],
  ['\\[[^\\]]*\\]\\(', 'g'],
  ['\\d+(?:\\.\\d+)?%', ''],
  ['\\p{Lu}[\\p{L}-]* \\(', 'gu'],
])(
  'an expression that takes a time that grows with the square is looked at closely: /%s/%s',
  (source, flags) => {
    const pattern = new RegExp(source, flags)
    const seen = [...worstCases({ source })].some((text) =>
      mayGrow((length) => use(pattern, text(length)), LENGTH),
    )
    expect(seen).toBe(true)
  },
)

describe('every regular expression of the sources', () => {
  const files = Map.groupBy(EXPRESSIONS, ({ file }) => file)

  it('is found', () => {
    expect(EXPRESSIONS.length).toBeGreaterThan(200)
    expect(files.get('models/words.ts')!.map(({ source }) => source)).toContain('^[a-z0-9]+$')
    expect(files.get('once.ts')).toBeUndefined()
  })

  it.each([...Map.groupBy(DIFFERENT, ({ file }) => file)])(
    'takes a time that grows with the length of the text: %s',
    (_, expressions) => {
      // Half a million texts: to expect something of each takes longer than the expressions do.
      const tooSlow: string[] = []
      for (const { line, source, flags } of expressions) {
        const pattern = new RegExp(source, flags)
        const length = (SHORT[source] ?? 8 * LENGTH) / 8
        for (const text of worstCases({ source })) {
          const work = (size: number) => use(pattern, text(size))
          if (!mayGrow(work, length)) continue
          const grown = growth(work, length)
          if (!(grown < MOST_GROWTH)) tooSlow.push(`line ${line}, ${JSON.stringify(text(10))}: ${grown}`)
        }
      }
      expect(tooSlow).toEqual([])
    },
    120_000,
  )
})

const filtered = (text: string): void => {
  const filter = new SuggestionFilter()
  for (const letter of text) filter.push(letter)
  filter.end()
}

const document = (text: string) => ({ collection: 'c', document: { id: '1', text } })

/** What goes through text of documents, of answers and of models. */
const WORK: Record<string, (text: string) => void> = {
  'the filter of suggestions, a character at a time': filtered,
  'the questions of a reply': questionsIn,
  'the words of a text': wordsOf,
  'the sentences of a text': splitSentences,
  'the blocks of a text': blocksOf,
  'the sentences of a document': (text) => sentencesOf({ id: '1', text }),
  'the citations of an answer': (text) => resolveCitations(text, [document('Alien is a film from 1979.')]),
  'the citations from a document': (text) => resolveCitations('Alien is a film from 1979.', [document(text)]),
  'the support of an answer': (text) =>
    supportOf(text, text, [], indexPassages([document('Alien is a film from 1979.')])),
  'the support of an answer by a document': (text) =>
    supportOf('Alien is a film from 1979.', '', [], indexPassages([document(text)])),
  'names of fields that a pattern may mean': (text) => matches('.*a.*a.*a.*a.*a.*b', text),
}

const UNITS = [
  ...[...' \n\t.,;:!?*_`~#|-+<>[]()"\'’1a漢'],
  ...[
    ' *a',
    ' _a',
    '*a ',
    '**a',
    '__a',
    '<<a',
    '<<a?',
    '<',
    '<!--',
    '![',
    '[a](',
    '[a](b(',
    '```\n',
    '~~~\n',
  ],
  ...[
    '# ',
    '\n# ',
    '| ',
    '|-|\n',
    '- ',
    '\n- ',
    'e.g. ',
    'a. ',
    'A. ',
    '1. ',
    '[1] ',
    '[a]',
    '"a" ',
    'a.b',
    '...',
  ],
]

const FIRSTS = ['', '# ', '<<', '- ']
const TAILS = ['', '!', 'a']

/** What stands around a unit: all of it with FULL, otherwise a beginning and an end, which are others from unit to unit. */
const drawn = (unit: number): [first: string, tail: string][] =>
  process.env.FULL
    ? FIRSTS.flatMap((first) => TAILS.map((tail): [string, string] => [first, tail]))
    : [[FIRSTS[unit % FIRSTS.length]!, TAILS[unit % TAILS.length]!]]

describe.each(Object.entries(WORK))('%s', (_, work) => {
  it('come in a time that grows with the length of the text', () => {
    for (const [at, unit] of UNITS.entries()) {
      for (const [first, tail] of drawn(at)) {
        const text = (length: number) => first + unit.repeat(Math.ceil(length / unit.length)) + tail
        const grown = growth((length) => work(text(length)), 2 * LENGTH)
        expect(grown, JSON.stringify(text(10))).toBeLessThan(MOST_GROWTH)
      }
    }
  }, 120_000)
})
