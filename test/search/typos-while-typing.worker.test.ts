/** How many typos a search goes to, and where in a word they may be. */
import { beforeAll, describe, expect, it } from 'vitest'
import { idsOf, makeCollection, type TestCollection } from './make-collection'

let things: TestCollection

beforeAll(async () => {
  things = await makeCollection(
    [{ name: 'title', type: 'string' }],
    [
      { id: 'near', title: 'convenient' },
      { id: 'far', title: 'conxeniant' },
      { id: 'thunder', title: 'thunderstorm' },
      { id: 'other', title: 'understory' },
      { id: 'short', title: 'bigger' },
      { id: 'greek', title: '\u03b8\u03ac\u03bb\u03b1\u03c3\u03c3\u03b1' },
    ],
  )
})

const found = async (q: string, more = {}) =>
  idsOf(await things.search({ q, query_by: 'title', prefix: 'false', drop_tokens_threshold: '0', ...more }))

describe('typo_tokens_threshold', () => {
  it('goes on to words with more typos until so many documents are found', async () => {
    expect(await found('convenient')).toEqual(['near'])
    expect(await found('convenjent')).toEqual(['near'])
    expect(await found('convenient', { typo_tokens_threshold: '10' })).toEqual(['near', 'far'])
    expect(await found('convenient', { typo_tokens_threshold: '10', num_typos: '1' })).toEqual(['near'])
  })
})

describe('two typos', () => {
  it.each([
    ['txumderstorm', 'in the first half'],
    ['tundxerstorm', 'one of them a missing letter'],
    ['hutnderstorm', 'swapped letters'],
    ['thunderstxrx', 'in the second half'],
  ])('%s: %s', async (q) => {
    expect(await found(q)).toEqual(['thunder'])
    expect(await found(q, { num_typos: '1' })).toEqual([])
  })

  it('are found in an unfinished word', async () => {
    expect(await found('txumderst', { prefix: 'true' })).toEqual(['thunder'])
    expect(await found('txumderst')).toEqual([])
  })

  it('are as many as the length of the word allows', async () => {
    expect(await found('bxxger')).toEqual([])
    expect(await found('bxxger', { min_len_2typo: '6' })).toEqual(['short'])
  })

  it('are found in other scripts', async () => {
    expect(await found('\u03b2\u03b2\u03bb\u03b1\u03c3\u03c3\u03b1')).toEqual(['greek'])
  })
})

describe('words that stand in other fields alone', () => {
  it('neither take the place of a correction nor count as found', async () => {
    const books = await makeCollection(
      [
        { name: 'title', type: 'string' },
        { name: 'text', type: 'string' },
      ],
      [
        { id: 'gardens', title: 'gardenias', text: 'flowers' },
        { id: 'other', title: 'hedges', text: 'gardenia gardenia, flewers' },
        { id: 'third', title: 'flowers', text: 'none' },
        ...Array.from({ length: 12 }, (_, n) => ({ id: `f${n}`, title: 'filler', text: 'flewers' })),
      ],
    )
    const search = async (q: string, query_by: string) =>
      idsOf(await books.search({ q, query_by, prefix: 'false', drop_tokens_threshold: '0' }))
    // One typo leads to a word of texts, two to one of titles.
    expect(await search('gardinia', 'text')).toEqual(['other'])
    expect(await search('gardinia', 'title')).toEqual(['gardens'])
    // Many texts have the typed word, and no title has it.
    expect(await search('flewers', 'title')).toEqual(['third'])
  })
})
