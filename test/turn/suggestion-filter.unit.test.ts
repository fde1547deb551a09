import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { questionsIn, SuggestionFilter } from '../../src/turn/answer'

/** What becomes of a text that comes in these pieces. */
function filtered(...pieces: string[]): { text: string; questions: string[] } {
  const filter = new SuggestionFilter()
  const text = pieces.map((piece) => filter.push(piece)).join('') + filter.end()
  return { text, questions: filter.questions }
}

/** Texts in which much could be the beginning of a suggestion, and some is one. */
const texts = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '<',
        '<<',
        '>',
        '>>',
        '?',
        '?>>',
        ' ',
        '\n',
        '\n\n',
        '<<Why?>>',
        '<< And who? >>',
        '<<no>>',
      ),
      fc.string({ maxLength: 6 }),
      fc.constant('x'.repeat(150)),
    ),
    { maxLength: 25 },
  )
  .map((parts) => parts.join(''))

/** Whether the letters of one text stand in the other in their order, so that nothing was made up or turned round. */
function isWithin(part: string, whole: string): boolean {
  let at = 0
  for (const unit of part.split('')) {
    at = whole.indexOf(unit, at) + 1
    if (at === 0) return false
  }
  return true
}

function cut(text: string, places: number[]): string[] {
  const at = [...new Set(places.map((place) => place % (text.length + 1)))].sort((a, b) => a - b)
  return [0, ...at].map((from, index) => text.slice(from, at[index] ?? text.length))
}

describe('whatever pieces a text comes in', () => {
  it('it is the same text, with the same questions', () => {
    fc.assert(
      fc.property(texts, fc.array(fc.nat(), { maxLength: 30 }), (text, places) => {
        const pieces = cut(text, places)
        expect(pieces.join('')).toBe(text)
        expect(filtered(...pieces)).toEqual(filtered(text))
        expect(filtered(...text)).toEqual(filtered(text))
      }),
      { numRuns: 500 },
    )
  })

  it('nothing but suggestions and the white space before them goes', () => {
    fc.assert(
      fc.property(texts, (text) => {
        const { text: left, questions } = filtered(text)
        if (questions.length === 0) expect(left).toBe(text)
        expect(isWithin(left, text)).toBe(true)
      }),
      { numRuns: 500 },
    )
  })
})

describe('a text', () => {
  it.each([
    ['Yes.\n\n<<Why?>>\n<<Who?>>\n', 'Yes.', ['Why?', 'Who?']],
    ['Yes. <<Why?>><<Why?>> <<A?>><<B?>><<C?>>', 'Yes.', ['Why?', 'A?', 'B?']],
    ['<< Why? >> And no.', ' And no.', ['Why?']],
    ['<<<Why?>>>', '<>', ['Why?']],
    ['それは何ですか <<なぜですか？>>', 'それは何ですか', ['なぜですか？']],
    ['1 << 3, cout << "x" >> y, a<<b>>', '1 << 3, cout << "x" >> y, a<<b>>', []],
    ['vector<vector<int>> v; // why?', 'vector<vector<int>> v; // why?', []],
    ['cut off <<Wh', 'cut off <<Wh', []],
    [`<<${'x'.repeat(300)}?>>`, `<<${'x'.repeat(300)}?>>`, []],
    ['two\n<<li\nnes?>>', 'two\n<<li\nnes?>>', []],
    ['ends with space  \n', 'ends with space  \n', []],
  ])('%j is %j with %j', (text, left, questions) => {
    expect(filtered(text)).toEqual({ text: left, questions })
  })

  it('is shown as soon as it cannot be a suggestion', () => {
    const filter = new SuggestionFilter()
    expect([filter.push('One'), filter.push(' '), filter.push('two <'), filter.push('3')]).toEqual([
      'One',
      '',
      ' two',
      ' <3',
    ])
  })

  it('is gone through in a time that its length alone decides', () => {
    for (const text of [' '.repeat(200_000), '<'.repeat(200_000), `${'<<a'.repeat(70_000)}`]) {
      expect(filtered(text).text).toBe(text)
    }
  })
})

describe('a reply that holds nothing but questions', () => {
  it.each([
    ['<<Why?>>\n<<Who?>>', ['Why?', 'Who?']],
    ['1. Why?\n2) Who?\n- Where?\n* When?', ['Why?', 'Who?', 'Where?']],
    ['Here are some:\nWhy?', ['Why?']],
    ['Nothing else was found.', []],
  ])('%j', (reply, questions) => {
    expect(questionsIn(reply)).toEqual(questions)
  })
})
