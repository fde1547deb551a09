/** The table of terms: it has the words of the index, and typos are looked for in it. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Alarm } from '../../src/durable/objects'
import { type Open, openCollection } from '../../src/search/collection/open'
import { readSchema } from '../../src/search/schema/plan'
import { WORDS } from '../../src/search/text/analyzer'
import { vocabularyOf } from '../../src/search/text/similar'
import { idsOf, makeCollection, type TestCollection } from './make-collection'
import { importAll } from './object'

const FIELDS = [{ name: 'title', type: 'string' }]

const inObject = <T>(
  things: TestCollection,
  work: (state: DurableObjectState) => T | Promise<T>,
): Promise<T> =>
  runInDurableObject(env.COLLECTION.get(env.COLLECTION.idFromName(things.objectId)), (_, state) =>
    work(state),
  )

const column = (sql: SqlStorage, query: string): string[] =>
  sql
    .exec<{ term: string }>(query)
    .toArray()
    .map(({ term }) => term)

const termsOf = (sql: SqlStorage): string[] => column(sql, 'SELECT term FROM terms ORDER BY term')
const indexedWords = (sql: SqlStorage): string[] =>
  column(sql, `SELECT term FROM ${vocabularyOf(sql, WORDS)} ORDER BY term`)

const opened = ({ storage, id }: DurableObjectState): Open => {
  const around = { storage, env, objectId: String(id), alarm: new Alarm(storage) }
  return openCollection(around, readSchema(storage.sql)!)
}

describe('the table of terms', () => {
  it('has the words of the index, whatever the texts are', async () => {
    const things = await makeCollection(
      [...FIELDS, { name: 'other', type: 'string', optional: true, token_separators: ['-'] }],
      [],
    )
    const piece = fc.oneof(
      fc.constantFrom('Wolf', 'wi-fi', "O'Neill", 'a\u0000b', 'tab\there', 'x\u007fy', 'ünïcode', 'Straße'),
      fc.constantFrom('東京都', 'İstanbul', 'ΣΊΣΥΦΟΣ', 'кафé', '👍🏽', 'ｆｕｌｌ', 'z'.repeat(63), '42', '№'),
      fc.string({ unit: 'grapheme-ascii', maxLength: 9 }),
    )
    const text = fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join(' '))
    await fc.assert(
      fc.asyncProperty(fc.array(fc.record({ title: text, other: text }), { maxLength: 20 }), async (some) => {
        await importAll(things.object, some)
        const { terms, words } = await inObject(things, ({ storage: { sql } }) => ({
          terms: termsOf(sql),
          words: indexedWords(sql),
        }))
        expect(terms).toEqual(words)
      }),
      { numRuns: 30 },
    )
  })

  it('grows past what is remembered of it', async () => {
    const word = (n: number) => `w${n.toString(36)}`
    const documents = Array.from({ length: 100 }, (_, document) => ({
      title: Array.from({ length: 1_500 }, (_, n) => word((document * 1_500 + n) % 140_000)).join(' '),
    }))
    const things = await makeCollection(FIELDS, documents)
    const count = await inObject(things, ({ storage: { sql } }) => termsOf(sql).length)
    expect(count).toBe(140_000)
  })

  it('takes more words of one document than SQLite takes in one value', async () => {
    const title = Array.from({ length: 380_000 }, (_, n) => n.toString(36)).join(' ')
    const things = await makeCollection(FIELDS, [{ title }])
    const count = await inObject(things, ({ storage: { sql } }) => termsOf(sql).length)
    expect(count).toBe(380_000)
  })

  it('leaves out words too long to be typed', async () => {
    const things = await makeCollection(FIELDS, [{ title: `${'x'.repeat(65)} short` }])
    expect(await inObject(things, ({ storage: { sql } }) => termsOf(sql))).toEqual(['short'])
  })

  it('is written again after a rollback and after all documents are gone', async () => {
    const things = await makeCollection(FIELDS, [])
    const rolledBack = await inObject(things, (state) => {
      const { store } = opened(state)
      const insert = () => {
        store.insert({ id: '1', title: 'wolf' }, new Map())
        store.finish()
      }
      try {
        state.storage.transactionSync(() => {
          insert()
          throw new Error('rolled back')
        })
      } catch {
        store.reset()
      }
      const before = termsOf(state.storage.sql)
      state.storage.transactionSync(insert)
      return [before, termsOf(state.storage.sql)]
    })
    expect(rolledBack).toEqual([[], ['wolf']])
    const emptied = await makeCollection(FIELDS, [{ title: 'fox' }])
    await emptied.object.truncate()
    expect(await inObject(emptied, ({ storage: { sql } }) => termsOf(sql))).toEqual([])
    await importAll(emptied.object, [{ title: 'fox' }])
    expect(await inObject(emptied, ({ storage: { sql } }) => termsOf(sql))).toEqual(['fox'])
  })
})

describe('a word with a typo', () => {
  const search = { query_by: 'title', prefix: 'false' }

  it('finds the nearest word that a document still has', async () => {
    const things = await makeCollection(FIELDS, [
      { id: 'near', title: 'streaming' },
      { id: 'far', title: 'screaming' },
    ])
    expect(idsOf(await things.search({ ...search, q: 'streamimg' }))).toEqual(['near'])
    await things.object.remove('near', false)
    expect(idsOf(await things.search({ ...search, q: 'streamimg' }))).toEqual(['far'])
  })
})
