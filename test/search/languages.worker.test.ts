import { beforeAll, describe, expect, it } from 'vitest'
import { idsOf, makeCollection, type TestCollection } from './make-collection'
import { idsWhere } from './object'

// A word of each text, as it stands there or as people type it.
const TEXTS: Record<string, { text: string; typed: string[]; whole: string }> = {
  russian: { text: 'Чай и йогурт', typed: ['йогурт', 'ЧАЙ', 'йог'], whole: 'чай и йогурт' },
  greek: { text: 'Η Ελλάδα το πρωί', typed: ['ελλάδα', 'πρω'], whole: 'η ελλάδα το πρωί' },
  japanese: { text: '東京の桜がきれい', typed: ['東京', '桜が', 'がきれ'], whole: '東京の桜がきれい' },
  korean: { text: '한국 음식', typed: ['한국', '음'], whole: '한국 음식' },
  chinese: { text: '中华人民共和国', typed: ['人民', '共和'], whole: '中华人民共和国' },
  thai: { text: 'ภาษาไทย', typed: ['ไทย'], whole: 'ภาษาไทย' },
  hindi: { text: 'हिन्दी भाषा', typed: ['हिन्दी', 'भाषा'], whole: 'हिन्दी भाषा' },
  hebrew: { text: 'שלום עולם', typed: ['שלום', 'עול'], whole: 'שלום עולם' },
  arabic: { text: 'مرحبا بالعالم', typed: ['مرحبا'], whole: 'مرحبا بالعالم' },
  vietnamese: { text: 'Tiếng Việt', typed: ['tiếng', 'viet', 'TIENG'], whole: 'tieng viet' },
  german: { text: 'Straße über Łódź', typed: ['straße', 'uber', 'Über'], whole: 'straße über łodz' },
  turkish: { text: 'İstanbul ışık', typed: ['istanbul', 'ışık'], whole: 'istanbul ışık' },
}

let texts: TestCollection

beforeAll(async () => {
  texts = await makeCollection(
    [
      { name: 'text', type: 'string' },
      { name: 'label', type: 'string', facet: true },
    ],
    Object.entries(TEXTS).map(([id, { text }]) => ({ id, text, label: text })),
  )
})

const cases = Object.entries(TEXTS).flatMap(([id, { typed }]) => typed.map((q) => [id, q] as const))

it('finds Thai words with an `am` of one character or of two', async () => {
  const words = await makeCollection(
    [{ name: 'text', type: 'string' }],
    [
      { id: 'one', text: '\u0e19\u0e49\u0e33\u0e21\u0e31\u0e19' },
      { id: 'two', text: '\u0e19\u0e49\u0e4d\u0e32\u0e21\u0e31\u0e19' },
    ],
  )
  for (const am of ['\u0e33', '\u0e4d\u0e32']) {
    const q = `\u0e19\u0e49${am}\u0e21\u0e31\u0e19`
    expect(idsOf(await words.search({ q, query_by: 'text', num_typos: '0' })).sort()).toEqual(['one', 'two'])
  }
})

describe('texts of many languages', () => {
  it.each(cases)('%s: %s is found and marked', async (id, q) => {
    const result = await texts.search({ q, query_by: 'text', num_typos: '0' })
    expect(idsOf(result)).toEqual([id])
    expect(result.hits![0]!.highlights[0]?.snippet).toContain('<mark>')
  })

  it.each(Object.entries(TEXTS))('%s: filters compare words', async (id, { whole, typed }) => {
    for (const field of ['text', 'label']) {
      expect(await idsWhere(texts.object, `${field}:=${whole}`)).toEqual([id])
      expect(await idsWhere(texts.object, `${field}:${typed[0]}`)).toEqual([id])
      expect(await idsWhere(texts.object, `${field}:=${whole.slice(0, 3)}*`)).toEqual([id])
    }
  })
})
