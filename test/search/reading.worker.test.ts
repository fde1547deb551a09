/** Searches for questions read their best hits again, passage by passage. */
import { describe, expect, it } from 'vitest'
import { unwrap } from '../../src/errors'
import type { CollectionRpc } from '../../src/search/collection/handle'
import { forQuestion } from '../../src/search/request/question'
import type { SearchParameters } from '../../src/search/types'
import { importAll, newCollection } from './object'

const rules = (about: string) =>
  `## The ${about}\n\n${Array.from({ length: 30 }, (_, at) => `The ${about} of the house has rule ${at}.`).join(' ')}`

const HALLS = ['kitchen', 'cellar', 'garage', 'attic', 'library', 'stable']
/** A long page about everything, with one passage about guests' dogs. */
const PAGE = [
  ...HALLS.map(rules),
  '## Dogs\n\nGuests may bring dogs. Keep your dog on a leash in the breakfast room.',
  ...HALLS.map((hall) => rules(`other ${hall}`)),
].join('\n\n')

const NOTES = Array.from({ length: 12 }, (_, at) => ({
  id: `note-${at}`,
  title: 'Note',
  text: `Guests may leave note ${at} in the room. A pet was seen in the garden near breakfast time.`,
}))

const fieldsWith = (model_name: string, extra = {}) => [
  { name: 'title', type: 'string' },
  { name: 'text', type: 'string' },
  { name: 'e', type: 'float[]', embed: { from: ['title', 'text'], model_config: { model_name } }, ...extra },
]

async function house(model = 'ts/all-MiniLM-L12-v2', extra = {}): Promise<CollectionRpc> {
  const object = await newCollection(fieldsWith(model, extra))
  await importAll(object, [{ id: 'page', title: 'House rules', text: PAGE }, ...NOTES])
  return object
}

const QUESTION = 'can my dog come to the breakfast room on a leash'

async function hits(object: CollectionRpc, params: SearchParameters = {}) {
  const asked = { query_by: 'title,text,e', exclude_fields: 'e', q: QUESTION, ...params }
  return unwrap(await object.search(forQuestion(asked, undefined))).hits!
}

const ids = async (object: CollectionRpc, params?: SearchParameters) =>
  (await hits(object, params)).map(({ document }) => document.id)

describe('a search for a question', () => {
  it.each([
    ['as many dimensions as the model has', {}],
    ['fewer', { num_dim: 64 }],
    ['more', { num_dim: 512 }],
  ])('finds a long page by the one passage that answers, with %s', async (_, extra) => {
    const object = await house(undefined, extra)
    expect((await ids(object))[0]).toBe('page')
  })

  it('orders all hits by one score, from 0 to 1, on every page alike', async () => {
    const object = await house()
    const all = await hits(object, { per_page: '13' })
    const scores = all.map(({ hybrid_search_info: info }) => info!.rank_fusion_score)
    expect(scores).toEqual(scores.toSorted((a, b) => b - a))
    expect(scores.every((score) => score >= 0 && score <= 1)).toBe(true)
    const pages = [1, 2, 3].map((page) => ids(object, { per_page: '5', page: String(page) }))
    expect((await Promise.all(pages)).flat()).toEqual(all.map(({ document }) => document.id))
  })

  it('reads a document as it is now', async () => {
    const object = await house()
    expect((await ids(object))[0]).toBe('page')
    await importAll(object, [{ id: 'page', title: 'House rules', text: PAGE.replace(/## Dogs\n\n.*/, '') }], {
      action: 'upsert',
    })
    await importAll(object, [{ id: 'dogs', title: 'Dogs', text: 'Dogs on a leash come to breakfast.' }])
    expect((await ids(object))[0]).toBe('dogs')
  })

  it('leaves those that are not read behind those that are, and finds all of them', async () => {
    const object = await newCollection(fieldsWith('local/minilm-l6-static'))
    await importAll(
      object,
      Array.from({ length: 80 }, (_, at) => ({
        id: `d${at}`,
        title: 'Dog',
        text: `A dog and its leash, story ${at}.`,
      })),
    )
    const found = await hits(object, { q: 'dog leash', per_page: '100' })
    expect(new Set(found.map(({ document }) => document.id)).size).toBe(80)
    const scores = found.map(({ hybrid_search_info: info }) => info!.rank_fusion_score)
    expect(scores).toEqual(scores.toSorted((a, b) => b - a))
  })

  it('reads within a filter, and what was said before', async () => {
    const object = await house()
    expect(await ids(object, { filter_by: 'title:=Note' })).not.toContain('page')
    const { hits: followed } = unwrap(
      await object.search(
        forQuestion({ query_by: 'title,text,e', exclude_fields: 'e', q: 'and on a leash?' }, QUESTION),
      ),
    )
    expect(followed![0]!.document.id).toBe('page')
  })

  it('leaves a given weight, a given order and other models as they were', async () => {
    const object = await house()
    const byRank = await hits(object, { fusion: 'rank' })
    expect(await hits(object, { vector_query: 'e:([], alpha: 0.3)' })).toEqual(byRank)
    const all = { per_page: '13' }
    const weighed = await hits(object, { ...all, vector_query: 'e:([], alpha: 0.4)', fusion: 'score' })
    const read = await hits(object, all)
    const scoreOf = (found: typeof read) =>
      found.map(({ hybrid_search_info: info }) => info!.rank_fusion_score)
    expect(scoreOf(weighed)).not.toEqual(scoreOf(read))
    const distances = (found: typeof read) =>
      Object.fromEntries(found.map(({ document, vector_distance: distance }) => [document.id, distance]))
    expect(distances(read)).toEqual(distances(weighed))
    const hashed = await house('local/hash-384')
    const before = await hits(hashed, { vector_query: 'e:([], alpha: 0.25)', fusion: 'score' })
    expect(scoreOf(await hits(hashed))).toEqual(scoreOf(before))
  })
})

describe('a search for a question by words alone', () => {
  const WORDS = { query_by: 'title,text' }
  const TEXTS = [
    { name: 'title', type: 'string', sort: true },
    { name: 'text', type: 'string' },
  ]

  async function plainHouse(): Promise<CollectionRpc> {
    const object = await newCollection(TEXTS)
    await importAll(object, [{ id: 'page', title: 'House rules', text: PAGE }, ...NOTES])
    return object
  }

  it('reads its best hits too, in a collection without vectors', async () => {
    const object = await plainHouse()
    // It has each word of the question more often, and none beside another.
    const words = ['dog', 'leash', 'breakfast', 'room']
    const text = words.map((word) => `## Of the ${word}\n\n${`Some say ${word}. `.repeat(60)}`).join('\n\n')
    await importAll(object, [{ id: 'words', title: 'Words', text }])
    expect((await ids(object, { ...WORDS, fusion: 'rank' }))[0]).toBe('words')
    expect((await ids(object, WORDS))[0]).toBe('page')
  })

  it('orders all hits by one score on every page alike, those that are not read last', async () => {
    const object = await newCollection(TEXTS)
    await importAll(
      object,
      Array.from({ length: 80 }, (_, at) => ({
        id: `d${at}`,
        title: 'Dog',
        text: `A dog ${'sat there '.repeat(at % 7)}with its leash, story ${at}.`,
      })),
    )
    const params = { ...WORDS, q: 'dog leash' }
    const all = await hits(object, { ...params, per_page: '100' })
    const scores = all.map(({ text_match: score }) => score!)
    expect(scores).toEqual(scores.toSorted((a, b) => b - a))
    const pages = [1, 2, 3, 4].map((page) => ids(object, { ...params, per_page: '20', page: String(page) }))
    const found = (await Promise.all(pages)).flat()
    expect(found).toEqual(all.map(({ document }) => document.id))
    expect(new Set(found).size).toBe(80)
  })

  it('keeps pinned hits in their places, a given order, and reads what was said before', async () => {
    const object = await plainHouse()
    expect((await ids(object, { ...WORDS, pinned_hits: 'note-3:1' })).slice(0, 2)).toEqual(['note-3', 'page'])
    expect(await ids(object, { ...WORDS, sort_by: 'title:asc' })).toEqual(
      await ids(object, { ...WORDS, sort_by: 'title:asc', fusion: 'rank' }),
    )
    const followed = await object.search(forQuestion({ ...WORDS, q: 'and on a leash?' }, QUESTION))
    expect(unwrap(followed).hits![0]!.document.id).toBe('page')
  })
})
