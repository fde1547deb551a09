/** Words as people type them, through Typesense's own client. */
import { expect, test } from 'vitest'
import { client, makeCollection } from './harness'

const make = (texts: string[], field: object = {}, schema: object = {}): Promise<string> =>
  makeCollection(
    'words',
    [{ name: 'text', type: 'string', ...field }],
    texts.map((text) => ({ id: text, text })),
    schema,
  )

async function found(name: string, q: string, more: object = {}): Promise<string[]> {
  const { hits } = await client()
    .collections<{ id: string }>(name)
    .documents()
    .search({ q, query_by: 'text', prefix: false, num_typos: 0, ...more })
  return hits!.map(({ document }) => document.id).sort()
}

test('words are found as they are written, with signs or without', async () => {
  const name = await make([
    'an organ',
    'an organization',
    'a t-shirt',
    'a tshirt',
    "O'Neill",
    'AB-123',
    'Wi-Fi',
  ])
  expect(await found(name, 'organ')).toEqual(['an organ'])
  expect(await found(name, 'organizations')).toEqual([])
  for (const q of ['t-shirt', 'tshirt', 'T-Shirt'])
    expect(await found(name, q)).toEqual(['a t-shirt', 'a tshirt'])
  for (const q of ["O'Neill", 'oneill', 'O’Neill']) expect(await found(name, q)).toEqual(["O'Neill"])
  for (const q of ['AB-123', 'ab123']) expect(await found(name, q)).toEqual(['AB-123'])
  for (const q of ['wifi', 'wi-fi']) expect(await found(name, q)).toEqual(['Wi-Fi'])
})

test('a field is stemmed where it asks, and describes itself', async () => {
  const name = await make(['running', 'runs', 'organ', 'organs'], { stem: true })
  expect(await found(name, 'run')).toEqual(['running', 'runs'])
  expect(await found(name, 'organ')).toEqual(['organ', 'organs'])
  const { fields } = await client().collections(name).retrieve()
  expect(fields).toMatchObject([{ name: 'text', stem: true }])
})

test('a field has separators and symbols of its own', async () => {
  const name = await make(['c++ t-shirt', 'c tshirt'], { symbols_to_index: ['+'], token_separators: ['-'] })
  expect(await found(name, 'c++')).toEqual(['c++ t-shirt'])
  expect(await found(name, 'shirt')).toEqual(['c++ t-shirt'])
  const { fields } = await client().collections(name).retrieve()
  expect(fields).toMatchObject([{ symbols_to_index: ['+'], token_separators: ['-'] }])
})

test('a minus excludes a word, except where it is a symbol of the index', async () => {
  const texts = ['y = -x + 3', 'x + 3']
  const excluding = await make(texts)
  expect(await found(excluding, '-y x')).toEqual(['x + 3'])
  const indexed = await make(texts, {}, { symbols_to_index: ['-'] })
  expect(await found(indexed, '-x 3')).toEqual(['y = -x + 3'])
})

test('a text without spaces is found by its parts in their order', async () => {
  const name = await make(['東京都の天気', '京都東の気天', '中华人民共和国'])
  expect(await found(name, '東京都')).toEqual(['東京都の天気'])
  expect(await found(name, '人民')).toEqual(['中华人民共和国'])
  expect(await found(name, '国')).toEqual(['中华人民共和国'])
  const { hits } = await client().collections(name).documents().search({ q: '東京都', query_by: 'text' })
  expect(hits![0]!.highlights![0]).toMatchObject({
    snippet: '<mark>東京都</mark>の天気',
    matched_tokens: ['東京都'],
  })
})

// Each text differs from the one that is found by one mark, or by one letter's form.
test.each<[string, string, string[], string[]]>([
  ['Hindi', 'बल', ['बल', 'बाल', 'बोल'], ['बल']],
  ['Tamil', 'கல்', ['கல்', 'கலை', 'கள்'], ['கல்']],
  ['Thai', 'ไม้', ['ไม้ สวย', 'ไม่ สวย', 'ไม สวย'], ['ไม้ สวย']],
  ['Japanese', 'はか', ['はか', 'ばか', 'ぱか'], ['はか']],
  ['Russian й', 'йод', ['йод', 'иод'], ['йод']],
  ['Russian ё', 'елка', ['ёлка', 'елка', 'иглка'], ['елка', 'ёлка']],
  ['Arabic vowels', 'محمد', ['مُحَمَّد', 'محمد', 'محمود'], ['محمد', 'مُحَمَّد']],
  ['Hebrew points', 'שלום', ['שָׁלוֹם', 'שלום', 'שלוים'], ['שלום', 'שָׁלוֹם']],
  ['Greek accents', 'ομορφος', ['όμορφος', 'ομορφος', 'ομορφη'], ['ομορφος', 'όμορφος']],
  [
    'Turkish',
    'istanbul',
    ['İstanbul', 'ISTANBUL', 'ıstanbul', 'istanbol'],
    ['ISTANBUL', 'ıstanbul', 'İstanbul'],
  ],
  ['German', 'straße', ['Straße', 'STRASSE', 'Strase'], ['STRASSE', 'Straße']],
  ['Danish', 'aesir', ['Æsir', 'aesir', 'asir'], ['aesir', 'Æsir']],
  ['French', 'cafe', ['café', 'CAFÉ', 'cafés'], ['CAFÉ', 'café']],
  ['full width', 'full', ['ＦＵＬＬ', 'ＦＵＬ'], ['ＦＵＬＬ']],
  ['emoji', '🍕', ['pizza 🍕 party', 'party 🍔'], ['pizza 🍕 party']],
])(
  '%s: words that differ by one mark are told apart, or are one where the mark is not written',
  async (_, q, texts, ids) => {
    expect(await found(await make(texts), q, { drop_tokens_threshold: 0 })).toEqual([...ids].sort())
  },
)

test.each([
  ['Chinese', '中华人民', ['中华人民共和国', '国和共民人华中', '人民中华']],
  ['Japanese', '東京都', ['東京都の天気', '京都東の気天', '都京東']],
  ['Korean', '대한민국', ['대한민국 만세', '국민한대 만세']],
  ['Thai', 'ภาษาไทย', ['ภาษาไทยง่าย', 'ไทภายษาง่าย']],
])('%s: scrambled characters are not the word', async (_, q, texts) => {
  expect(await found(await make(texts), q, { drop_tokens_threshold: 0 })).toEqual([texts[0]])
})

test.each<[string, string, string[]]>([
  ['the first letter', 'parry potter', ['Harry Potter']],
  ['a letter too few, and an unfinished word', 'hary pott', ['Harry Potter']],
  ['a letter too many in front', 'uharry', ['Harry Potter']],
  ['neighbours swapped', 'hrary', ['Harry Potter']],
  ['Cyrillic', 'смартфн', ['смартфон Самсунг']],
  ['Cyrillic, swapped', 'кнгиа', ['книга']],
  ['a number', '4713', ['Model 4711']],
  ['two words in one', 'skateboard', ['skate board']],
  ['one word in two', 'power bank', ['powerbank']],
])('as people type: %s', async (_, q, ids) => {
  const texts = [
    'Harry Potter',
    'смартфон Самсунг',
    'книга',
    'Model 4711',
    'skate board',
    'powerbank',
    'Hobbit',
  ]
  const { hits } = await client()
    .collections<{ id: string }>(await make(texts))
    .documents()
    .search({ q, query_by: 'text' })
  expect(hits!.map(({ document }) => document.id)).toEqual(ids)
})

test('words are dropped from the right, from the left or from both, and never where a number sorts', async () => {
  const name = await make(['red leather shoe', 'red shoe', 'leather bag', 'blue bag'])
  const bags = (more: object = {}) => found(name, 'red leather bag', more)
  expect(await bags()).toEqual(['red leather shoe'])
  expect(await bags({ drop_tokens_mode: 'left_to_right' })).toEqual(['leather bag'])
  expect(await bags({ drop_tokens_mode: 'both_sides:3' })).toHaveLength(4)
  expect(await bags({ drop_tokens_threshold: 0 })).toEqual([])
  const priced = await make(['red shoe', 'red hat', 'blue shoe'], {}, {})
  expect(await found(priced, 'red shoe', { sort_by: '_seq_id:desc' })).toEqual(['red shoe'])
})
