import { beforeAll, describe, expect, it } from 'vitest'
import { forQuestion } from '../../src/search/request/question'
import { idsOf, makeCollection, type TestCollection } from './make-collection'
import { importAll } from './object'

const DOCUMENTS = [
  { id: 'organ', title: 'The organ of a church' },
  { id: 'organization', title: 'An organization of workers' },
  { id: 'streaming', title: 'Streaming replies' },
  { id: 'streams', title: 'Two streams of water' },
]

const FIELDS = [{ name: 'title', type: 'string' }]
const WHOLE = { query_by: 'title', prefix: 'false', num_typos: '0' }

describe('a plain search', () => {
  let things: TestCollection

  beforeAll(async () => {
    things = await makeCollection(FIELDS, DOCUMENTS)
  })

  it.each([
    ['organ', ['organ']],
    ['organization', ['organization']],
    ['ORGAN', ['organ']],
    ['streams', ['streams']],
    ['stream', []],
    ['"organ of"', ['organ']],
    ['of -organ', ['streams', 'organization']],
  ])('finds %s as it is written', async (q, ids) => {
    expect(idsOf(await things.search({ ...WHOLE, q })).sort()).toEqual([...ids].sort())
  })

  it('finds and marks an unfinished word by its letters', async () => {
    const result = await things.search({ ...WHOLE, q: 'strea', prefix: 'true' })
    expect(result.hits!.map(({ highlights }) => highlights[0]!.snippet).sort()).toEqual([
      '<mark>Strea</mark>ming replies',
      'Two <mark>strea</mark>ms of water',
    ])
    expect(idsOf(await things.search({ ...WHOLE, q: 'streamings', prefix: 'true' }))).toEqual([])
  })

  it('corrects a typo to a word, not to a stem', async () => {
    const { hits } = await things.search({ ...WHOLE, q: 'strems', num_typos: '1' })
    expect(hits!.map(({ highlights }) => highlights[0]!.snippet)).toEqual([
      'Two <mark>streams</mark> of water',
    ])
  })

  it('finds a document as it is now written, and no longer as it was', async () => {
    const { object } = things
    await importAll(object, [{ id: 'new', title: 'A passing cloud' }])
    expect(idsOf(await things.search({ ...WHOLE, q: 'passing' }))).toEqual(['new'])
    await importAll(object, [{ id: 'new', title: 'A passed cloud' }], { action: 'upsert' })
    expect(idsOf(await things.search({ ...WHOLE, q: 'passing' }))).toEqual([])
    expect(idsOf(await things.search({ ...WHOLE, q: 'passed' }))).toEqual(['new'])
    await object.remove('new', false)
    expect(idsOf(await things.search({ ...WHOLE, q: 'passed' }))).toEqual([])
  })
})

describe('a search for a question', () => {
  it.each([
    ['stream', ['streaming', 'streams']],
    ['organizing', ['organ', 'organization']],
  ])('finds every form of %s, and marks it', async (q, ids) => {
    const things = await makeCollection(FIELDS, DOCUMENTS)
    const result = await things.search(forQuestion({ query_by: 'title', q }, undefined))
    expect(idsOf(result).sort()).toEqual(ids)
    for (const { highlights } of result.hits!) expect(highlights[0]!.snippet).toContain('<mark>')
  })
})
