/** Options of a field that decide what its words are: stems, separators, symbols, and the length of a word. */
import { describe, expect, it } from 'vitest'
import { ApiError, unwrap } from '../../src/errors'
import { parseSchema } from '../../src/search/schema/schema'
import { idsOf, makeCollection } from './make-collection'
import { idsWhere } from './object'

const WHOLE = { prefix: 'false', num_typos: '0' }

describe('stem: true', () => {
  const texts = ['Running shoes', 'He runs', 'Ran away', 'An organization', 'An organ']
  const documents = texts.map((text) => ({ id: text, stemmed: text, plain: text }))
  const make = () =>
    makeCollection(
      [
        { name: 'stemmed', type: 'string', stem: true },
        { name: 'plain', type: 'string' },
      ],
      documents,
    )

  it('matches words by their stems in its field alone', async () => {
    const things = await make()
    const find = async (q: string, query_by: string, more = {}) =>
      idsOf(await things.search({ ...WHOLE, q, query_by, ...more })).sort()
    expect(await find('run', 'stemmed')).toEqual(['He runs', 'Running shoes'])
    expect(await find('running', 'stemmed')).toEqual(['He runs', 'Running shoes'])
    expect(await find('running', 'plain')).toEqual(['Running shoes'])
    expect(await find('runs', 'plain,stemmed')).toEqual(['He runs', 'Running shoes'])
    expect(await find('runs shoes', 'stemmed,plain')).toEqual(['Running shoes'])
    expect(await find('runnin', 'stemmed', { prefix: 'true' })).toEqual(['He runs', 'Running shoes'])
    expect(await find('"runs away"', 'stemmed', { drop_tokens_threshold: '0' })).toEqual([])
  })

  it('marks what it matches', async () => {
    const things = await make()
    const { hits } = await things.search({ ...WHOLE, q: 'runs', query_by: 'stemmed,plain' })
    const shoes = hits!.find(({ document }) => document.id === 'Running shoes')!
    expect(shoes.highlights).toMatchObject([
      { field: 'stemmed', snippet: '<mark>Running</mark> shoes', matched_tokens: ['Running'] },
    ])
  })

  it.each([
    ['de', 'die laufenden Häuser', 'laufende haus'],
    ['fr', 'les élèves abandonnés', 'eleve abandonner'],
    ['es', 'las canciones cantadas', 'canción cantado'],
    ['it', 'le canzoni abbandonate', 'canzone abbandonato'],
    ['ru', 'новые машины дороги', 'новая машина'],
    ['da', 'bilerne og hundene', 'bilen hunden'],
    ['nl', 'boeken en fietsen', 'boek fietsen'],
    ['no', 'bilene og hundene', 'bilen hund'],
    ['pt', 'os meninos cantam', 'menino'],
    ['sv', 'bilarna och flickorna', 'bilar flicka'],
  ])('%s: stems by the language of the field', async (locale, text, q) => {
    const fields = [{ name: 'text', type: 'string', stem: true, locale }]
    const things = await makeCollection(fields, [{ id: '1', text }])
    const all = { ...WHOLE, drop_tokens_threshold: '0' }
    expect(idsOf(await things.search({ ...all, q, query_by: 'text' }))).toEqual(['1'])
  })

  it('is refused for a language without a stemmer', () => {
    const schema = (locale: string) => ({
      name: 'x',
      fields: [{ name: 'a', type: 'string', stem: true, locale }],
    })
    expect(() => parseSchema(schema('el'))).toThrow(ApiError)
    expect(() => parseSchema(schema('xx'))).toThrow(
      'Set it to one of en, da, de, es, fr, it, nl, no, pt, ru, sv.',
    )
    expect(parseSchema(schema('de')).fields[0]).toMatchObject({ stem: true, locale: 'de' })
  })
})

describe('characters of a field', () => {
  it('separate and are indexed in their field alone', async () => {
    const text = 'C++ for t-shirt shops'
    const things = await makeCollection(
      [
        { name: 'code', type: 'string', symbols_to_index: ['+'], token_separators: ['-'] },
        { name: 'plain', type: 'string' },
      ],
      [
        { id: 'c++', code: text, plain: text },
        { id: 'c', code: 'C for tshirt shops', plain: 'C for shops' },
      ],
    )
    const find = async (q: string, query_by: string) =>
      idsOf(await things.search({ ...WHOLE, q, query_by, drop_tokens_threshold: '0' })).sort()
    expect(await find('c++', 'code')).toEqual(['c++'])
    expect(await find('c', 'code')).toEqual(['c'])
    expect(await find('c++', 'plain')).toEqual(['c', 'c++'])
    expect(await find('shirt', 'code')).toEqual(['c++'])
    expect(await find('shirt', 'plain')).toEqual([])
    expect(await find('tshirt', 'plain')).toEqual(['c++'])
    expect(await find('tshirt', 'code,plain')).toEqual(['c', 'c++'])
    const { fields } = unwrap(await things.object.summary())
    expect(fields).toMatchObject([{ symbols_to_index: ['+'], token_separators: ['-'] }, { name: 'plain' }])
  })

  it('count in filters of their field', async () => {
    const things = await makeCollection(
      [{ name: 'language', type: 'string', facet: true, symbols_to_index: ['+', '#'] }],
      ['C', 'C++', 'C#'].map((language) => ({ id: language, language })),
    )
    for (const language of ['C', 'C++', 'C#']) {
      expect(await idsWhere(things.object, `language:=${language}`)).toEqual([language])
    }
  })

  it('cut its words where it says', async () => {
    const things = await makeCollection(
      [
        { name: 'short', type: 'string', truncate_len: 4 },
        { name: 'long', type: 'string' },
      ],
      [{ id: '1', short: 'abcdefgh', long: 'abcdefgh' }],
    )
    const found = async (q: string, query_by: string) =>
      (await things.search({ ...WHOLE, q, query_by })).found
    expect(await found('abcdxyz', 'short')).toBe(1)
    expect(await found('abcdxyz', 'long')).toBe(0)
  })

  it('are refused when they are none', () => {
    const schema = (field: object) => ({ name: 'x', fields: [{ name: 'a', type: 'string', ...field }] })
    for (const wrong of ['-', [1], ['ab']]) {
      expect(() => parseSchema(schema({ token_separators: wrong }))).toThrow(
        'The `token_separators` must be an array of characters.',
      )
      expect(() => parseSchema(schema({ symbols_to_index: wrong }))).toThrow(
        'The `symbols_to_index` must be an array of characters.',
      )
    }
    for (const wrong of [0, -1, 1.5, '9']) {
      expect(() => parseSchema(schema({ truncate_len: wrong }))).toThrow('should be a positive integer')
    }
  })
})
