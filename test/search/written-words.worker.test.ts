/** Plain searches match words as they are written. Searches for questions match stems. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import * as v from 'valibot'
import { beforeAll, describe, expect, it } from 'vitest'
import { Alarm } from '../../src/alarm'
import { migrate } from '../../src/search/collection/migrations'
import { openCollection } from '../../src/search/collection/open'
import { readMeta, writeMeta } from '../../src/search/meta'
import { forQuestion } from '../../src/search/request/question'
import { executeSearch } from '../../src/search/run/search'
import { readSchema } from '../../src/search/schema/stored'
import type { SearchParameters, SearchResult } from '../../src/search/types'
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

/** Makes a collection what the version before word_index left: without the index, and told so. */
const withoutWords = (things: TestCollection) =>
  inObject(things, ({ storage: { sql } }) => {
    sql.exec('DROP TABLE word_index')
    sql.exec('DROP TABLE IF EXISTS word_vocabulary')
    writeMeta(sql, 'version', 6)
  })

const inObject = <T>(
  things: TestCollection,
  work: (state: DurableObjectState) => T | Promise<T>,
): Promise<T> =>
  runInDurableObject(env.COLLECTION.get(env.COLLECTION.idFromName(things.objectId)), (_, state) =>
    work(state),
  )

describe('a collection of the version before', () => {
  const COUNT = 450

  it('is searched by stems until its words are indexed, then by words', async () => {
    const documents = Array.from({ length: COUNT }, (_, n) => ({
      id: `${n}`,
      title: n % 2 === 0 ? 'streaming' : 'streams',
    }))
    const things = await makeCollection(FIELDS, documents)
    await withoutWords(things)
    const steps = await inObject(things, async ({ storage, id }) => {
      migrate(storage.sql)
      const around = { storage, env, objectId: String(id), alarm: new Alarm(storage) }
      const { context, background } = openCollection(around, readSchema(storage.sql)!)
      const found = async (q: string, params: SearchParameters = WHOLE): Promise<number> =>
        ((await executeSearch(context, { ...params, q })) as SearchResult).found
      const before = await found('streaming')
      const ready = context.hasWordIndex()
      await background.run()
      return {
        before,
        ready,
        after: await found('streaming'),
        question: await found('streaming', forQuestion({ query_by: 'title' }, undefined)),
        left: readMeta(storage.sql, 'words_from', v.number()),
      }
    })
    expect(steps).toEqual({ before: COUNT, ready: false, after: COUNT / 2, question: COUNT, left: undefined })
  })
})
