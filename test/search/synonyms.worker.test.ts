/** Searches with synonym sets. */
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it } from 'vitest'
import { unwrap } from '../../src/errors'
import { putSet, SYNONYMS } from '../../src/registry/named-sets'
import { forQuestion } from '../../src/search/request/question'
import type { SearchParameters } from '../../src/search/types'
import { idsOf, makeCollection, refusal, type TestCollection } from './make-collection'

const CLOTHES = [
  { id: '1', title: 'A warm coat for winter' },
  { id: '2', title: 'A warm jacket for winter' },
  { id: '3', title: 'Trousers of wool' },
  { id: '4', title: 'The chief executive officer wears a suit' },
  { id: '5', title: 'Our CEO' },
  { id: '6', title: 'An officer of the executive board' },
  { id: '7', title: 'Hotels in New York' },
]

const FIELDS = [{ name: 'title', type: 'string' }]

let clothes: TestCollection

const ids = async (params: SearchParameters): Promise<string[]> =>
  idsOf(await clothes.search({ query_by: 'title', ...params })).sort()

beforeAll(async () => {
  const items = [
    { id: 'coat', synonyms: ['coat', 'jacket'] },
    { id: 'trousers', synonyms: ['trousers', 'pants'] },
    { id: 'ceo', root: 'ceo', synonyms: ['chief executive officer'] },
    { id: 'ny', root: 'nyc', synonyms: ['new york'] },
  ]
  await putSet(env, SYNONYMS, 'clothes', { items })
  clothes = await makeCollection(FIELDS, CLOTHES, { synonym_sets: ['clothes'] })
})

describe('a search of a collection with a synonym set', () => {
  it.each<[string, SearchParameters, string[]]>([
    ['finds either word', { q: 'coat' }, ['1', '2']],
    ['beside other words', { q: 'warm jacket' }, ['1', '2']],
    ['needs all words of a synonym', { q: 'ceo' }, ['4', '5']],
    ['replaces one way', { q: 'chief executive officer' }, ['4']],
    ['finds several words for one', { q: 'hotels nyc' }, ['7']],
    ['leaves quotes alone', { q: '"coat"' }, ['1']],
    ['switched off', { q: 'coat', enable_synonyms: 'false' }, ['1']],
    ['takes no beginnings', { q: 'pan' }, []],
    ['takes beginnings if asked', { q: 'pan', synonym_prefix: 'true' }, ['3']],
    ['takes typos if asked', { q: 'patns', synonym_num_typos: '1' }, ['3']],
    ['leaves excluded words alone', { q: 'warm -coat' }, ['2']],
    ['counts them in a relaxed query', { q: 'jacket pants', drop_tokens_threshold: '9' }, ['1', '2', '3']],
  ])('%s', async (_, params, expected) => {
    const exact = { drop_tokens_threshold: '0', num_typos: '0' }
    expect(await ids({ ...exact, ...params })).toEqual(expected)
  })

  it('marks synonyms', async () => {
    const { hits } = await clothes.search({ q: 'ceo', query_by: 'title' })
    const marked = Object.fromEntries(
      hits!.map(({ document, highlights }) => [document.id, highlights[0]?.snippet]),
    )
    expect(marked).toEqual({
      '4': 'The <mark>chief</mark> <mark>executive</mark> <mark>officer</mark> wears a suit',
      '5': 'Our <mark>CEO</mark>',
    })
  })

  it('puts synonyms last if asked', async () => {
    for (const q of ['coat', 'jacket', 'ceo']) {
      const { hits } = await clothes.search({ q, query_by: 'title', demote_synonym_match: 'true' })
      expect(String(hits![0]!.document.title).toLowerCase()).toContain(q)
      expect(hits![0]!.text_match).toBeGreaterThan(hits![1]!.text_match!)
    }
  })

  it('ranks a synonym as the words for which it stands', async () => {
    const scoreOf = async (q: string) => {
      const { hits } = await clothes.search({ q, query_by: 'title', prefix: 'false' })
      return new Map(hits!.map(({ document, text_match }) => [document.id, text_match!]))
    }
    // A word for a word, and words for a word.
    const [coats, chiefs] = [await scoreOf('coat'), await scoreOf('ceo')]
    expect(coats.get('1')).toBe(coats.get('2'))
    expect(chiefs.get('4')).toBe(chiefs.get('5'))
  })

  it('answers a question by either word', async () => {
    const question = forQuestion({ q: 'What is a jacket for?', query_by: 'title' }, undefined)
    expect(idsOf(await clothes.search(question)).sort()).toEqual(['1', '2'])
  })

  it('tells a wrong parameter', async () => {
    const asked = { q: 'coat', query_by: 'title' }
    expect(await refusal(clothes, { ...asked, synonym_num_typos: '3' })).toBe(
      '400 Value of `synonym_num_typos` must not be greater than 2.',
    )
    expect(await refusal(clothes, { ...asked, synonym_sets: 'nobody' })).toBe('404 Synonym index not found')
  })
})

describe('which sets a search has', () => {
  it('those that it names, and those of its collection', async () => {
    await putSet(env, SYNONYMS, 'rain', { items: [{ id: 'a', synonyms: ['coat', 'trousers'] }] })
    expect(await ids({ q: 'coat', synonym_sets: 'rain' })).toEqual(['1', '2', '3'])
  })

  it('those of its schema as it is now', async () => {
    const collection = await makeCollection(FIELDS, CLOTHES)
    const search = async () => idsOf(await collection.search({ q: 'coat', query_by: 'title' })).sort()
    expect(await search()).toEqual(['1'])
    unwrap(await collection.object.alter({ synonym_sets: ['clothes'] }))
    expect(await search()).toEqual(['1', '2'])
    const unknown = await collection.object.alter({ synonym_sets: ['nobody'] })
    expect(unknown).toMatchObject({
      ok: false,
      error: { status: 404, message: 'Synonym set `nobody` not found.' },
    })
    unwrap(await collection.object.alter({ synonym_sets: [] }))
    expect(await search()).toEqual(['1'])
  })

  it('a set that is gone takes no search with it', async () => {
    const collection = await makeCollection(FIELDS, CLOTHES, { synonym_sets: ['gone'] })
    expect(idsOf(await collection.search({ q: 'coat', query_by: 'title' }))).toEqual(['1'])
  })

  it('synonyms of the locale of the field', async () => {
    await putSet(env, SYNONYMS, 'german', {
      items: [{ id: 'a', locale: 'de', synonyms: ['mantel', 'coat'] }],
    })
    const fields = [...FIELDS, { name: 'titel', type: 'string', locale: 'de', optional: true }]
    const documents = [{ id: '1', title: 'coat', titel: 'coat' }]
    const collection = await makeCollection(fields, documents, { synonym_sets: ['german'] })
    expect(idsOf(await collection.search({ q: 'mantel', query_by: 'title' }))).toEqual([])
    expect(idsOf(await collection.search({ q: 'mantel', query_by: 'titel' }))).toEqual(['1'])
  })

  it('a set as large as may be, in time', async () => {
    const items = Array.from({ length: 10_000 }, (_, n) => ({ id: `${n}`, synonyms: [`w${n}`, `v${n}`] }))
    await putSet(env, SYNONYMS, 'large', {
      items: [...items.slice(1), { id: '0', synonyms: ['coat', 'trousers'] }],
    })
    expect(await ids({ q: 'coat', synonym_sets: 'large', synonym_prefix: 'true' })).toEqual(['1', '2', '3'])
  })
})
