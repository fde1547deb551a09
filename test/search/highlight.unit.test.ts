import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { HighlightOptions } from '../../src/search/request/request'
import { countMatches, highlightDocument, highlightFacet } from '../../src/search/run/hits'
import type { StoredSchema } from '../../src/search/schema/layout'
import { stemAnalyzer, wordAnalyzer } from '../../src/search/text/analyzer'
import { Matchers } from '../../src/search/text/matcher'
import { parseQuery } from '../../src/search/text/query'
import type { Document } from '../../src/search/types'
import { field } from './field'

const RULES = { token_separators: [], symbols_to_index: [] }

const SCHEMA: StoredSchema = {
  name: 'things',
  fields: [
    field('title', 'string'),
    field('tags', 'string[]'),
    field('year', 'int32'),
    field('author.name', 'string'),
    field('parts.text', 'string[]'),
    field('parts.names', 'string[]'),
  ],
  default_sorting_field: '',
  enable_nested_fields: true,
  ...RULES,
  slots: {},
  nextSlot: 0,
  nextText: 0,
  textColumns: 0,
}

const OPTIONS: HighlightOptions = {
  fields: undefined,
  fullFields: [],
  startTag: '<mark>',
  endTag: '</mark>',
  affixTokens: 4,
  snippetThreshold: 30,
  v1: true,
}

const STEMS = stemAnalyzer(RULES)
const WORDS = wordAnalyzer(RULES)

const matcherOf = (q: string, analyzer = WORDS): Matchers =>
  new Matchers(parseQuery(q, analyzer, true).terms, () => ({ analyzer, prefix: true }))

function highlight(
  document: Record<string, unknown>,
  q: string,
  options: Partial<HighlightOptions> = {},
  analyzer = WORDS,
) {
  const fields = Object.keys(document).flatMap((name) =>
    name === 'author' ? ['author.name'] : name === 'parts' ? ['parts.text', 'parts.names'] : [name],
  )
  return highlightDocument({ id: '1', ...document } as Document, fields, matcherOf(q, analyzer), SCHEMA, {
    ...OPTIONS,
    ...options,
  })
}

const snippet = (
  text: string,
  q: string,
  options: Partial<HighlightOptions> = {},
  analyzer = WORDS,
): string | undefined => highlight({ title: text }, q, options, analyzer).highlights[0]?.snippet

describe('highlights', () => {
  it('mark words by stem, case and accents aside', () => {
    expect(highlight({ title: 'Streaming, Éclairs & <b>' }, 'streams eclair x', {}, STEMS)).toEqual({
      highlight: {
        title: {
          matched_tokens: ['Streaming', 'Éclairs'],
          snippet: '<mark>Streaming</mark>, <mark>Éclairs</mark> & <b>',
        },
      },
      highlights: [
        {
          field: 'title',
          matched_tokens: ['Streaming', 'Éclairs'],
          snippet: '<mark>Streaming</mark>, <mark>Éclairs</mark> & <b>',
        },
      ],
    })
  })

  it('mark words as they are written, where words are searched', () => {
    expect(snippet('Streaming streams, Éclairs', 'STREAMS eclairs x')).toBe(
      'Streaming <mark>streams</mark>, <mark>Éclairs</mark>',
    )
    expect(snippet('an organization', 'organ x')).toBeUndefined()
  })

  it('mark the beginning that an unfinished word matches, and the last word alone', () => {
    expect(snippet('Platinum plates', 'plat')).toBe('<mark>Plat</mark>inum <mark>plat</mark>es')
    expect(snippet('Platinum plates', 'plat x')).toBeUndefined()
    expect(snippet('document', 'documentati')).toBeUndefined()
    expect(snippet('document', 'documentati', {}, STEMS)).toBe('<mark>document</mark>')
    expect(snippet('Ångström', 'angs')).toBe('<mark>Ångs</mark>tröm')
  })

  it('say nothing where nothing matches', () => {
    expect(highlight({ title: 'nothing', year: 5 }, 'fox')).toEqual({ highlight: {}, highlights: [] })
  })

  it('show a field that is asked for by name, in the new form alone', () => {
    const long = Array.from({ length: 40 }, (_, index) => `w${index}`).join(' ')
    const named = highlight({ title: long, tags: ['red', 'hen'] }, 'fox', { fields: ['title', 'tags'] })
    const [red, hen] = ['red', 'hen'].map((snippet) => ({ matched_tokens: [], snippet }))
    expect(named).toEqual({
      highlight: {
        title: { matched_tokens: [], snippet: long.slice(0, long.indexOf(' w30')) },
        tags: [red, hen],
      },
      highlights: [],
    })
  })

  it('cut long texts around the window with the most words', () => {
    const filler = (from: number) => Array.from({ length: 20 }, (_, index) => `w${from + index}`).join(' ')
    const text = `${filler(0)} fox ${filler(20)} quick brown fox, ${filler(40)}.`
    expect(snippet(text, 'quick fox')).toBe(
      'w36 w37 w38 w39 <mark>quick</mark> brown <mark>fox</mark>, w40 w41 w42 w43',
    )
    expect(snippet(text, 'quick fox', { affixTokens: 0 })).toBe('<mark>quick</mark> brown <mark>fox</mark>')
    expect(snippet(`fox ${filler(0)} ${filler(20)}`, 'fox')).toBe('<mark>fox</mark> w0 w1 w2 w3')
    expect(snippet(`(${filler(0)} ${filler(20)} fox)!`, 'fox')).toBe('w36 w37 w38 w39 <mark>fox</mark>)!')
    expect(snippet(text, 'quick fox', { snippetThreshold: 100 })).toHaveLength(
      text.length + 3 * '<mark></mark>'.length,
    )
  })

  it('show a window of eleven words, and no word of it twice', () => {
    const filler = (count: number) => Array.from({ length: count }, (_, index) => `w${index}`).join(' ')
    const cut = (text: string) => snippet(`${text} ${filler(30)}`, 'quick fox', { affixTokens: 0 })
    expect(cut(`quick ${filler(9)} fox`)).toBe(`<mark>quick</mark> ${filler(9)} <mark>fox</mark>`)
    expect(cut(`quick ${filler(10)} fox`)).toBe('<mark>quick</mark>')
    expect(cut('quick fox and a quick one')).toBe('<mark>quick</mark> <mark>fox</mark>')
    expect(cut('quick old fox quick fox')).toBe('<mark>fox</mark> <mark>quick</mark>')
    expect(cut('fox and fox')).toBe('<mark>fox</mark>')
  })

  it('give the whole value where it is asked for, with tags of the caller', () => {
    const options = { fullFields: ['title'], startTag: '[', endTag: ']', snippetThreshold: 2, affixTokens: 1 }
    expect(highlight({ title: 'a quick fox runs by' }, 'fox', options).highlights[0]).toEqual({
      field: 'title',
      matched_tokens: ['fox'],
      snippet: 'quick [fox] runs',
      value: 'a quick [fox] runs by',
    })
  })

  it('tell which elements of a list match', () => {
    expect(highlight({ tags: ['red fox', 'hen', 'foxes'] }, 'fox', { fullFields: ['tags'] }, STEMS)).toEqual({
      highlight: {
        tags: [
          { matched_tokens: ['fox'], snippet: 'red <mark>fox</mark>', value: 'red <mark>fox</mark>' },
          { matched_tokens: [], snippet: 'hen', value: 'hen' },
          { matched_tokens: ['foxes'], snippet: '<mark>foxes</mark>', value: '<mark>foxes</mark>' },
        ],
      },
      highlights: [
        {
          field: 'tags',
          indices: [0, 2],
          matched_tokens: [['fox'], ['foxes']],
          snippets: ['red <mark>fox</mark>', '<mark>foxes</mark>'],
          values: ['red <mark>fox</mark>', '<mark>foxes</mark>'],
        },
      ],
    })
  })

  it('have the shape of nested documents', () => {
    const document = {
      author: { name: 'A. Fox', age: 3 },
      parts: [{ text: 'fox one', names: ['fox', 'hen'] }, { other: 1 }, { text: 'two' }],
    }
    const hit = { matched_tokens: ['fox'], snippet: '<mark>fox</mark>' }
    expect(highlight(document, 'fox').highlight).toEqual({
      author: { name: { matched_tokens: ['Fox'], snippet: 'A. <mark>Fox</mark>' } },
      parts: [
        {
          text: { matched_tokens: ['fox'], snippet: '<mark>fox</mark> one' },
          names: [hit, { matched_tokens: [], snippet: 'hen' }],
        },
        {},
        { text: { matched_tokens: [], snippet: 'two' } },
      ],
    })
  })

  it('have the shape of lists within lists', () => {
    const parts = [[{ text: 'one needle' }, {}], { text: 'two needles' }]
    expect(highlight({ parts }, 'needle').highlight).toEqual({
      parts: [
        [{ text: { matched_tokens: ['needle'], snippet: 'one <mark>needle</mark>' } }, {}],
        { text: { matched_tokens: ['needle'], snippet: 'two <mark>needle</mark>s' } },
      ],
    })
  })

  it('put nothing on the prototype of all objects', () => {
    const schema = { ...SCHEMA, fields: [...SCHEMA.fields, field('__proto__.text', 'string')] }
    const document = JSON.parse('{"id":"1","__proto__":{"text":"a needle"}}')
    highlightDocument(document, ['__proto__.text'], matcherOf('needle'), schema, OPTIONS)
    const { text } = {} as { text?: unknown }
    expect(text).toBeUndefined()
  })

  it('leave the old form out on request', () => {
    const { highlight: nested, highlights } = highlight({ title: 'fox' }, 'fox', { v1: false })
    expect([Object.keys(nested), highlights]).toEqual([['title'], []])
  })

  it('change nothing in a text but the tags', () => {
    const text = fc.array(
      fc.constantFrom('fox', 'Foxes', 'quick', '東京', 'é', 'a-b', '  ', '<i>', '.', '🦊'),
      {
        maxLength: 80,
      },
    )
    fc.assert(
      fc.property(text, fc.constantFrom('fox', 'qui', '東', 'quick fox', 'b e'), (words, q) => {
        const original = words.join(' ')
        const result = highlight({ title: original }, q, { fullFields: ['title'] }).highlights[0]
        if (result === undefined) return
        const plain = (marked: string) => marked.replaceAll('<mark>', '').replaceAll('</mark>', '')
        expect(plain(result.value!)).toBe(original)
        expect(original).toContain(plain(result.snippet!))
        expect(result.snippet).toContain('<mark>')
      }),
    )
  })
})

describe('countMatches', () => {
  it('counts fields and different words', () => {
    const document = { id: '1', title: 'quick quick fox', tags: ['fox', 'dog'] }
    expect(countMatches(document, ['title', 'tags', 'year'], matcherOf('quick fox dog'))).toEqual({
      fields: 2,
      words: 3,
      bestField: 0,
    })
    expect(countMatches(document, ['tags'], matcherOf('hen'))).toEqual({
      fields: 0,
      words: 0,
      bestField: -1,
    })
  })
})

describe('highlightFacet', () => {
  it('marks the beginnings of words', () => {
    expect(highlightFacet('FINE PLATINUM', ['fine', 'platin'], RULES, OPTIONS)).toBe(
      '<mark>FINE</mark> <mark>PLATIN</mark>UM',
    )
    expect(highlightFacet('Omega', [], RULES, OPTIONS)).toBe('Omega')
    expect(highlightFacet("(Sam) O'Neill", ['onei'], RULES, OPTIONS)).toBe("(Sam) <mark>O'Nei</mark>ll")
    expect(highlightFacet('Æon Łódź', ['ae', 'lod'], RULES, OPTIONS)).toBe(
      '<mark>Æon</mark> <mark>Łód</mark>ź',
    )
    expect(highlightFacet('東京都', ['京'], RULES, OPTIONS)).toBe('東<mark>京</mark>都')
  })
})

describe('the order of the old form', () => {
  it('puts the field first that has more of the words, closer to each other', () => {
    const document = {
      title: 'harbour lights',
      tags: ['quiet place', 'lights of a quiet harbour', 'quiet harbour'],
    }
    const { highlights } = highlight(document, 'quiet harbour')
    expect(highlights.map(({ field: name }) => name)).toEqual(['tags', 'title'])
    expect(highlights[0]).toMatchObject({
      indices: [1, 2, 0],
      snippets: [
        'lights of a <mark>quiet</mark> <mark>harbour</mark>',
        '<mark>quiet</mark> <mark>harbour</mark>',
        '<mark>quiet</mark> place',
      ],
    })
  })

  it('keeps the order of the fields where they fit alike', () => {
    const { highlights } = highlight({ title: 'harbour', tags: ['a harbour', 'harbour harbour'] }, 'harbour')
    expect(highlights.map(({ field: name }) => name)).toEqual(['title', 'tags'])
    expect(highlights[1]!.indices).toEqual([0, 1])
  })
})

describe('a beginning of a word with signs', () => {
  it.each([
    [
      'Too much clutter: use readability.js',
      'readability',
      'Too much clutter: use <mark>readability</mark>.js',
    ],
    ["O'Neill's", 'onei', "<mark>O'Nei</mark>ll's"],
    ['T-Shirt', 't-shirt', '<mark>T-Shirt</mark>'],
    ['AB-1234', 'ab12', '<mark>AB-12</mark>34'],
  ])('%s, %s', (title, q, snippet) => {
    expect(highlight({ title }, q).highlights[0]!.snippet).toBe(snippet)
  })
})
