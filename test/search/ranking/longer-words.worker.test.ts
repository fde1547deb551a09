/** A last word that no other word continues is looked for as a whole word. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeEach, expect, it } from 'vitest'
import { Alarm } from '../../../src/durable/objects'
import { unwrap } from '../../../src/errors'
import { openCollection } from '../../../src/search/collection/open'
import { tiersOf } from '../../../src/search/run/ranking/plain'
import { executeSearch } from '../../../src/search/run/search'
import { readSchema } from '../../../src/search/schema/plan'
import { wordAnalyzer } from '../../../src/search/text/analyzer'
import type { SearchParameters } from '../../../src/search/types'
import { makeCollection, type TestCollection } from '../make-collection'
import { importAll } from '../object'

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'text', type: 'string' },
]
const documents = Array.from({ length: 120 }, (_, n) => ({
  id: `d${n}`,
  title: n % 3 === 0 ? 'python guide' : `guide number ${n}`,
  text: n % 2 === 0 ? 'the guide for a python' : 'pythons have no guide',
}))

let collection: TestCollection

beforeEach(async () => {
  collection = await makeCollection(FIELDS, documents)
})

/** @returns the result, and the statements of the search with what was bound */
const watched = (params: SearchParameters) =>
  runInDurableObject(
    env.COLLECTION.get(env.COLLECTION.idFromName(collection.objectId)),
    async (_, { storage, id }: DurableObjectState) => {
      const around = { storage, env, objectId: String(id), alarm: new Alarm(storage) }
      const { context } = openCollection(around, readSchema(storage.sql)!)
      const statements: string[] = []
      const exec: SqlStorage['exec'] = (query, ...bindings) => {
        statements.push([query, ...bindings].join('\n'))
        return context.sql.exec(query, ...bindings)
      }
      const { found } = await executeSearch(
        Object.create(context, { sql: { value: { exec } as SqlStorage } }),
        { query_by: 'title,text', ...params },
      )
      return { found, statements }
    },
  )

const OPEN = /" ?\*/

it.each(['python guide', 'guide'])('asks for no beginning where there is no longer word: %s', async (q) => {
  const { found, statements } = await watched({ q })
  expect(found).toBe(q === 'guide' ? 120 : 80)
  expect(statements.filter((text) => OPEN.test(text))).toEqual([])
})

it('finds longer words as soon as they are written, also very long ones', async () => {
  const { object } = collection
  await watched({ q: 'python guide' })
  await importAll(object, [{ id: 'book', title: 'python guidebook', text: '' }])
  expect((await watched({ q: 'python guide' })).found).toBe(81)
  await importAll(object, [{ id: 'long', title: `python guide${'x'.repeat(80)}`, text: '' }])
  expect((await watched({ q: 'python guide' })).found).toBe(82)
  unwrap(await object.remove('book', false))
  expect((await watched({ q: 'python guide' })).found).toBe(81)
})

it('leaves the words in place of a mistyped one open', () => {
  const term = (word: string) => ({ tokens: [word], written: [word], prefix: false, corrections: [] })
  const analyzer = wordAnalyzer({ token_separators: [], symbols_to_index: [] })
  const columns = [{ column: 't0', prefix: true, analyzer, rank: 15 }]
  const mistyped = { ...term('gxide'), prefix: true, longest: 'gxide', corrections: ['guide'] }
  const whole = { match: 'all', table: 'word_index', rank: '' } as const
  const [, , , near] = tiersOf(whole, [term('python'), mistyped], [], columns, false)
  expect(near!.match.match).toContain('"python guide" *')
})

it('binds no limit, so SQLite prepares no statement of a search twice', async () => {
  for (const q of ['python guide', 'python gui', 'guide', 'pyth', 'gxide', 'guide python number 7']) {
    const { statements } = await watched({ q })
    expect(statements.filter((text) => /LIMIT \?/.test(text))).toEqual([])
  }
})
