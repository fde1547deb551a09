/** Words of many scripts, and words with signs in them, as people type them: what is the same word and what is not. */
import { describe, expect, it } from 'vitest'
import { idsOf, makeCollection, type TestCollection } from './make-collection'

const FIELDS = [{ name: 'text', type: 'string' }]
const WHOLE = { query_by: 'text', prefix: 'false', num_typos: '0' }

const made = new Map<string, Promise<TestCollection>>()

/** A collection of these texts; each is its own id. */
function textsIn(texts: string[]): Promise<TestCollection> {
  const key = texts.join('\n')
  const known =
    made.get(key) ??
    makeCollection(
      FIELDS,
      texts.map((text) => ({ id: text, text })),
    )
  made.set(key, known)
  return known
}

const found = async (texts: string[], q: string, more = {}): Promise<string[]> =>
  idsOf(await (await textsIn(texts)).search({ ...WHOLE, q, ...more }))

describe('signs inside a word', () => {
  const SHOP = ['A t-shirt', 'The tshirt', "Mr O'Neill", 'Item AB-123', 'wi‑fi at home', 'a shirt']

  it.each([
    ['tshirt', ['A t-shirt', 'The tshirt']],
    ['t-shirt', ['A t-shirt', 'The tshirt']],
    ['T-SHIRT', ['A t-shirt', 'The tshirt']],
    ['oneill', ["Mr O'Neill"]],
    ['O’Neill', ["Mr O'Neill"]],
    ['ab123', ['Item AB-123']],
    ['ab-123', ['Item AB-123']],
    ['wifi', ['wi‑fi at home']],
    ['wi-fi', ['wi‑fi at home']],
    ['shirt', ['a shirt']],
  ])('%s', async (q, ids) => {
    expect((await found(SHOP, q)).sort()).toEqual([...ids].sort())
  })

  it('are marked with their word', async () => {
    const { hits } = await (await textsIn(SHOP)).search({ ...WHOLE, q: 'tshirt' })
    expect(hits!.map(({ highlights }) => highlights[0]!.snippet).sort()).toEqual([
      'A <mark>t-shirt</mark>',
      'The <mark>tshirt</mark>',
    ])
  })

  it('part it where the collection says so', async () => {
    const texts = [{ id: '1', text: 'A t-shirt, cotton/silk' }]
    const things = await makeCollection(FIELDS, texts, { token_separators: ['-', '/'] })
    for (const q of ['shirt', 't-shirt', 'silk', '"cotton silk"']) {
      expect(idsOf(await things.search({ ...WHOLE, q }))).toEqual(['1'])
    }
    // Where nothing has the word, it is split.
    expect(idsOf(await things.search({ ...WHOLE, q: 'tshirt' }))).toEqual(['1'])
    const whole = { ...WHOLE, split_join_tokens: 'off' }
    expect(idsOf(await things.search({ ...whole, q: 'tshirt' }))).toEqual([])
  })
})

describe('scripts', () => {
  it.each<[string, string[], string, string[]]>([
    ['Hindi vowel signs make words', ['किताब यहाँ', 'कीताब यहाँ', 'कताब यहाँ'], 'किताब', ['किताब यहाँ']],
    ['Thai tone marks make words', ['ไม้ สวย', 'ไม่ สวย'], 'ไม้', ['ไม้ สวย']],
    ['a voiced sign makes a kana', ['かき', 'がき'], 'がき', ['がき']],
    ['й is not и', ['йога дома', 'иога дома'], 'йога', ['йога дома']],
    ['ё is written е', ['ёлка дома'], 'елка', ['ёлка дома']],
    ['Arabic is written without vowels', ['كِتَابٌ جديد'], 'كتاب', ['كِتَابٌ جديد']],
    ['Hebrew is written without points', ['שָׁלוֹם לך'], 'שלום', ['שָׁלוֹם לך']],
    ['Greek is written without accents', ['Η Ελλάδα'], 'ΕΛΛΑΔΑ', ['Η Ελλάδα']],
    ['a Turkish i', ['İstanbul', 'ISTANBUL', 'ıstanbul'], 'istanbul', ['ıstanbul', 'ISTANBUL', 'İstanbul']],
    ['ß and æ', ['Straße', 'strasse', 'STRASSE'], 'straße', ['STRASSE', 'strasse', 'Straße']],
    ['full width', ['ＡＢＣ１２３'], 'abc123', ['ＡＢＣ１２３']],
    ['an emoji is a word', ['love🍕much', 'love🍔much'], '🍕', ['love🍕much']],
    ['an emoji in any colour', ['well done 👍🏽'], '👍', ['well done 👍🏽']],
    ['Korean words carry endings', ['한국어를 배워요'], '한국어', ['한국어를 배워요']],
  ])('%s', async (_, texts, q, ids) => {
    expect(await found(texts, q)).toEqual(ids)
  })

  it.each<[string, string[], string]>([
    ['Chinese', ['中华人民共和国', '国和共民人华中', '人民中华'], '中华人民'],
    ['Japanese', ['東京都の天気', '京都東の気天', '都京東'], '東京都'],
    ['Thai', ['ภาษาไทยง่าย', 'ไทภายษาง่าย'], 'ภาษาไทย'],
    ['Korean', ['대한민국 만세', '국민한대 만세'], '대한민국'],
  ])('%s: scrambled characters are not the word', async (_, texts, q) => {
    expect((await found(texts, q))[0]).toBe(texts[0])
    expect(await found(texts, q, { drop_tokens_threshold: '0' })).toEqual([texts[0]])
    const whole = await (await textsIn(texts)).search({ ...WHOLE, q })
    expect(whole.hits![0]!.highlights[0]!.snippet).toContain(`<mark>${q}</mark>`)
  })

  it('without spaces: a text is found by any part of it, to the single character', async () => {
    const text = '中华人民共和国'
    const characters = [...text]
    for (let from = 0; from < characters.length; from++) {
      for (let to = from + 1; to <= characters.length; to++) {
        expect(await found([text], characters.slice(from, to).join(''))).toEqual([text])
      }
    }
  })

  it('without spaces: a phrase in quotes goes across spaces', async () => {
    const texts = ['東京 大阪 名古屋', '大阪 東京']
    expect(await found(texts, '"東京 大阪"', { drop_tokens_threshold: '0' })).toEqual(['東京 大阪 名古屋'])
    expect(await found(texts, '"大阪 名"', { drop_tokens_threshold: '0' })).toEqual(['東京 大阪 名古屋'])
  })
})
