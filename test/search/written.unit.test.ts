import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { WrittenWords, wordAnalyzer } from '../../src/search/text/analyzer'
import { WordMatcher } from '../../src/search/text/matcher'
import { parseQuery } from '../../src/search/text/query'
import { comparedTokens, comparedWords, normalForm } from '../../src/search/text/terms'

const PLAIN = { token_separators: [], symbols_to_index: [] }
const wordsOf = (text: string, rules = {}): string[] =>
  new WrittenWords({ ...PLAIN, ...rules }).words(text).map((word) => word.text)

describe('words as they are written', () => {
  it.each<[string, string[]]>([
    ["A T-Shirt, O’Neill & O'Neill", ['a', 'tshirt', 'oneill', 'oneill']],
    ['AB-123 wi-fi (C++)', ['ab123', 'wifi', 'c']],
    ['one—two … three', ['one', 'two', 'three']],
    [
      'Straße STRASSE ægis ÆGIS œuvre Łódź smørrebrød',
      ['strasse', 'strasse', 'aegis', 'aegis', 'oeuvre', 'lodz', 'smorrebrod'],
    ],
    [
      'İstanbul ISPARTA ışık Ångström Tiếng Việt đường',
      ['istanbul', 'isparta', 'isik', 'angstrom', 'tieng', 'viet', 'duong'],
    ],
    ['Ｆｕｌｌ ｗｉｄｔｈ １２３ ﬁne', ['full', 'width', '123', 'fine']],
    ['Ελλάδα ΕΛΛΑΔΑ Οδυσσέας ΟΔΥΣΣΕΑΣ', ['ελλαδα', 'ελλαδα', 'οδυσσεασ', 'οδυσσεασ']],
    ['Йогурт иогурт Ёлка елка за́мок', ['йогурт', 'иогурт', 'елка', 'елка', 'замок']],
    ['كِتَابٌ كتاب كـتـاب أحمد احمد', ['كتاب', 'كتاب', 'كتاب', 'احمد', 'احمد']],
    ['שָׁלוֹם שלום', ['שלום', 'שלום']],
    ['किताब कीताब हिन्दी', ['किताब', 'कीताब', 'हिन्दी']],
    ['🍕 pizza🍕 👍🏽👍 ❤️ ❤ 👨‍👩‍👧 🇫🇷', ['🍕', 'pizza', '🍕', '👍', '👍', '❤', '❤', '👨‍👩‍👧', '🇫🇷']],
    ['wow!👍great', ['wow', '👍', 'great']],
    ['100€ 20% ©2024', ['100', '20', '2024']],
    ['東京都', ['東京', '京都', '都']],
    ['iPhone手机 新款', ['iphone', '手机', '机', '新款', '款']],
    ['한국 음식', ['한국', '국', '음식', '식']],
    ['がっこう か', ['がっ', 'っこ', 'こう', 'う', 'か']],
    ['ＧＵＩＴＡＲ ｷﾞﾀｰ', ['guitar', 'ギタ', 'ター', 'ー']],
    ['ไม้ ไม่', ['ไม้', 'ม้', 'ไม่', 'ม่']],
  ])('%s', (text, words) => {
    expect(wordsOf(text)).toEqual(words)
  })

  it.each<[string, string]>([
    ["  A T-Shirt,\tO’Neill & O'Neill! ", 'a tshirt oneill oneill'],
    ['Century-Fox / AB_123\0x', 'centuryfox ab123 x'],
    ['Æon Straße Łódź İstanbul', 'aeon strasse lodz istanbul'],
    ['東京都 abc京', '東 京 都 abc 京'],
    ['서울특별시 서울 시', '서울특별시 서울 시'],
    ['🎉 party', '🎉 party'],
    ['wow!👍great', 'wow 👍 great'],
    ['a ـ b', 'a b'],
    ['--', ''],
  ])('are compared by filters and orders: %s', (text, form) => {
    expect(normalForm(text, PLAIN)).toBe(form)
  })

  it('that were written together are looked for together', () => {
    expect(comparedWords('東京 x-y abc京', PLAIN)).toEqual(['東 京', 'xy', 'abc 京'])
  })

  it('of any length are compared whole', () => {
    const rules = { ...PLAIN, truncate_len: 5 }
    expect(normalForm(`${'a'.repeat(150)}-b`, rules)).toBe(`${'a'.repeat(150)}b`)
    expect(normalForm('Ångström', rules)).toBe('angstrom')
  })

  it('are parted at the separators of their field, and keep its symbols', () => {
    expect(wordsOf('wi-fi a/b', { token_separators: ['-'] })).toEqual(['wi', 'fi', 'ab'])
    expect(wordsOf('C++ c# -x', { symbols_to_index: ['+', '#'] })).toEqual(['c++', 'c#', 'x'])
    expect(wordsOf('Café Inc.|Berlin', { token_separators: ['|'] })).toEqual(['cafe', 'inc', 'berlin'])
    expect(wordsOf('é-é ＋', { token_separators: ['é'] })).toEqual([])
  })

  it('are cut where their field says', () => {
    const long = 'a'.repeat(150)
    expect(wordsOf(`${long} b`)).toEqual(['a'.repeat(100), 'b'])
    expect(wordsOf('abcdefgh', { truncate_len: 3 })).toEqual(['abc'])
    expect(new WrittenWords(PLAIN).prepare(long)).toBe('a'.repeat(100))
  })

  it('say where they stand', () => {
    const { words } = { words: new WrittenWords(PLAIN).words('(T-shirt)! 東京') }
    expect(words.map(({ start, end }) => [start, end])).toEqual([
      [1, 8],
      [11, 13],
      [12, 13],
    ])
  })

  const text = fc
    .array(
      fc.constantFrom(
        'a',
        'B',
        '9',
        '-',
        "'",
        ' ',
        '\n',
        '\t',
        '\0',
        '"',
        '+',
        '.',
        '|',
        'é',
        'ـ',
        '東',
        'が',
        '🍕',
        '\u{fe0f}',
        'ß',
        '١',
        'ि',
        'क',
        '。',
        '\u200d',
      ),
      { maxLength: 30 },
    )
    .map((parts) => parts.join(''))
  const rules = fc.record({
    token_separators: fc.subarray(['-', '+', "'", '|']),
    symbols_to_index: fc.subarray(['+', '"', '-']),
  })

  it('are the same for the index as one by one', () => {
    fc.assert(
      fc.property(text, rules, (given, some) => {
        const written = new WrittenWords(some)
        const indexed = written
          .prepare(given)
          .toLowerCase()
          .split(/[\s\0]+/)
          .filter((word) => word !== '')
        expect(indexed).toEqual(written.words(given).map((word) => word.text))
      }),
      { numRuns: 2000 },
    )
  })

  it('have the same form as a text and one by one', () => {
    fc.assert(
      fc.property(text, rules, (given, some) => {
        const one = comparedTokens(given, some).map((word) => word.text)
        expect(normalForm(given, some)).toBe(one.join(' '))
        expect(comparedWords(given, some).join(' ')).toBe(one.join(' '))
      }),
      { numRuns: 2000 },
    )
  })

  it('of a text are found in it by a query of the same', () => {
    fc.assert(
      fc.property(text, rules, (given, some) => {
        const analyzer = wordAnalyzer(some)
        const plain = given.replaceAll('"', ' ').replaceAll('-', '')
        const { terms } = parseQuery(plain, analyzer, false)
        const { marks } = new WordMatcher(terms, analyzer).read(plain)
        expect(marks.length > 0).toBe(terms.length > 0)
      }),
      { numRuns: 2000 },
    )
  })
})
