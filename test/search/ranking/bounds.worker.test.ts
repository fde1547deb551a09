/** What a plain search reads and computes stays bounded, whatever is asked. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, it } from 'vitest'
import { Alarm } from '../../../src/durable/objects'
import { CURATIONS, putSet } from '../../../src/registry/named-sets'
import { openCollection } from '../../../src/search/collection/open'
import type { SearchContext } from '../../../src/search/run/context'
import { LongSearches } from '../../../src/search/run/pace'
import { executeSearch } from '../../../src/search/run/search'
import { readSchema } from '../../../src/search/schema/plan'
import type { SearchParameters, SearchResult } from '../../../src/search/types'
import { idsOf, makeCollection, type TestCollection } from '../make-collection'

const TEXTS = [
  { name: 'title', type: 'string' },
  { name: 'text', type: 'string' },
]

/** Long searches that count the turns they wait for. */
class Counting extends LongSearches {
  turns = 0

  override turn(): Promise<void> {
    this.turns++
    return super.turn()
  }
}

interface Statement {
  text: string
  bindings: unknown[]
  /** rows that were read of it */
  rows: number
}

/** Searches in the object that holds the collection, and records the statements. */
const watched = (
  { objectId }: TestCollection,
  params: SearchParameters,
  others = new LongSearches(),
): Promise<{ result: SearchResult; statements: Statement[] }> =>
  runInDurableObject(
    env.COLLECTION.get(env.COLLECTION.idFromName(objectId)),
    async (_, { storage, id }: DurableObjectState) => {
      const around = { storage, env, objectId: String(id), alarm: new Alarm(storage) }
      const { context } = openCollection(around, readSchema(storage.sql)!)
      const statements: Statement[] = []
      const result = await executeSearch(recorded(context, statements), params, {}, { others })
      return { result, statements }
    },
  )

function recorded(context: SearchContext, statements: Statement[]): SearchContext {
  const sql = new Proxy(context.sql, {
    get(target, name) {
      const own = Reflect.get(target, name, target)
      if (name !== 'exec') return typeof own === 'function' ? own.bind(target) : own
      return (text: string, ...bindings: SqlStorageValue[]) => {
        const statement: Statement = { text, bindings, rows: 0 }
        statements.push(statement)
        return counted(target.exec(text, ...bindings), statement)
      }
    },
  })
  return new Proxy(context, {
    get: (target, name) => (name === 'sql' ? sql : Reflect.get(target, name, target)),
  })
}

const counted = <Cursor extends SqlStorageCursor<Record<string, SqlStorageValue>>>(
  cursor: Cursor,
  statement: Statement,
): Cursor =>
  new Proxy(cursor, {
    get(target, name) {
      if (name === Symbol.iterator) {
        return function* () {
          for (const row of target) {
            statement.rows++
            yield row
          }
        }
      }
      if (name === 'toArray') {
        return () => {
          const rows = target.toArray()
          statement.rows += rows.length
          return rows
        }
      }
      const own = Reflect.get(target, name, target)
      return typeof own === 'function' ? own.bind(target) : own
    },
  })

/** The statements that read bodies for the ranking. */
const readings = (statements: Statement[]): Statement[] =>
  statements.filter(({ text }) => text.includes('d.body') && text.includes('json_each(?) s'))

const seqsOf = ({ bindings }: Statement): unknown[] => JSON.parse(String(bindings[0]))

describe('mistyped words', () => {
  const NUMBERS = ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven']
  const words = NUMBERS.map((number) => `number${number}`)

  it('are looked for one at a time, and others get a turn between them', async () => {
    const things = await makeCollection(TEXTS, [{ id: 'a', title: words.join(' '), text: 'x' }])
    const mistyped = NUMBERS.slice(0, 6).map((number) => `numbr${number}`)
    const turns = async (threshold: string) => {
      const others = new Counting({ ms: 1e9, rows: 1, width: 1e9 })
      const params = {
        q: mistyped.join(' '),
        query_by: 'title',
        typo_tokens_threshold: threshold,
        drop_tokens_threshold: '0',
      }
      const { result } = await watched(things, params, others)
      expect(result.found).toBe(Number(threshold))
      return others.turns
    }
    expect((await turns('1')) - (await turns('0'))).toBeGreaterThanOrEqual(6)
  })

  it.each([
    [10, ['a']],
    [11, []],
  ])('are not looked for in a query of more than ten words: %i', async (count, expected) => {
    const things = await makeCollection(TEXTS, [{ id: 'a', title: words.join(' '), text: 'x' }])
    const q = ['numbrone', ...words.slice(1, count)].join(' ')
    const found = await things.search({
      q,
      query_by: 'title',
      drop_tokens_threshold: '0',
    })
    expect(idsOf(found)).toEqual(expected)
  })

  it.each([
    ['a long word', 'ж'.repeat(100)],
    ['a list without blanks', Array.from({ length: 40 }, (_, n) => `слово${n}é中`).join(',')],
    ['a word of many scripts', 'aжλאبकกაԱអ'.repeat(3)],
  ])('%s is answered', async (_, q) => {
    const things = await makeCollection(TEXTS, [{ id: 'a', title: 'нечто', text: 'x' }])
    const { result, statements } = await watched(things, { q, query_by: 'title' })
    expect(result.found).toBe(0)
    const sizes = statements.flatMap(({ bindings }) => bindings.map((value) => String(value).length))
    expect(Math.max(...sizes)).toBeLessThan(500_000)
  })

  it('are looked for in words of up to 32 letters', async () => {
    const long = 'abcdefghijklmnopqrstuvwxyz012345'
    const things = await makeCollection(TEXTS, [
      { id: 'a', title: long, text: 'x' },
      { id: 'b', title: `${long}67`, text: 'x' },
    ])
    const found = async (q: string) =>
      idsOf(await things.search({ q, query_by: 'title', prefix: 'false', drop_tokens_threshold: '0' }))
    expect(await found(`${long.slice(0, -1)}6`)).toEqual(['a'])
    expect(await found(`${long}68`)).toEqual([])
  })
})

describe('documents that are read', () => {
  it('are few, however many matches were counted', async () => {
    const documents = Array.from({ length: 200 }, (_, n) => ({
      id: `${n}`,
      title: n % 2 ? 'how to' : 'how together',
      text: 'x',
    }))
    const things = await makeCollection(TEXTS, documents)
    const { result, statements } = await watched(things, {
      q: 'how to',
      query_by: 'title',
      drop_tokens_threshold: '10000',
    })
    expect(result.found).toBe(200)
    const sizes = readings(statements).map((statement) => seqsOf(statement).length)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(64)
  })

  it('are not loaded beyond a number of characters, and are found all the same', async () => {
    const filler = 'y'.repeat(400_000)
    const documents = Array.from({ length: 20 }, (_, n) => ({
      id: `${n}`,
      title: 'wolf',
      text: 'x',
      filler,
    }))
    const things = await makeCollection(
      [...TEXTS, { name: 'filler', type: 'string', index: false, optional: true }],
      documents,
    )
    const { result, statements } = await watched(things, {
      q: 'wolf',
      query_by: 'title',
      include_fields: 'id',
      per_page: '50',
    })
    expect(result.found).toBe(20)
    expect(new Set(idsOf(result)).size).toBe(20)
    expect(readings(statements).reduce((sum, { rows }) => sum + rows, 0)).toBeLessThan(10)
  })

  it('may have a quote in the name of a field', async () => {
    const documents = Array.from({ length: 80 }, (_, n) => ({
      id: `${n}`,
      a: 'x',
      'a"b': `wolf number ${n}`,
    }))
    const things = await makeCollection(
      [{ name: 'a"b', type: 'string' }],
      [...documents, { id: 'w', a: 'x', 'a"b': 'wolf' }],
    )
    const result = await things.search({ q: 'wolf', query_by: 'a"b' })
    expect(result.found).toBe(81)
  })
})

describe('highlights', () => {
  it('mark the stems that a question was answered by', async () => {
    const things = await makeCollection(TEXTS, [
      { id: 'a', title: 'Refunds are processed for each customer', text: 'x' },
      { id: 'b', title: 'Something else', text: 'y' },
    ])
    const q = 'how can customers obtain refund processing quickly abroad'
    const result = await things.search({ q, query_by: 'title' })
    const [hit] = result.hits!
    expect(hit!.document.id).toBe('a')
    expect(hit!.highlights![0]!.matched_tokens).toEqual(['Refunds', 'processed', 'customer'])
    expect(hit!.text_match_info!.tokens_matched).toBe(3)
  })

  it.each([
    ['ASCII', 'A computer here'],
    ['accents', 'A computer hére'],
  ])('mark words that the field cuts: %s', async (_, title) => {
    const things = await makeCollection(
      [{ name: 'title', type: 'string', truncate_len: 4 }],
      [{ id: 'a', title }],
    )
    const [hit] = (await things.search({ q: 'computer', query_by: 'title' })).hits!
    expect(hit!.highlights![0]!.matched_tokens).toEqual(['computer'])
  })
})

describe('a pinned document', () => {
  const FEW_OR_MANY = [20, 300]

  it.each(FEW_OR_MANY)('leaves the first of %i others in their order', async (count) => {
    const documents = Array.from({ length: count }, (_, n) => ({
      id: `${n}`,
      title: ['wolf', 'the wolf', 'wolf wolf wolf', 'a grey wolf there', 'wolves'][n % 5],
      text: 'wolf '.repeat(n % 7),
    }))
    const things = await makeCollection(TEXTS, documents)
    const asked = { q: 'wolf', query_by: 'title,text' }
    const all = async (more: SearchParameters) => {
      const pages = []
      for (let page = 1; page <= Math.ceil((count + 4) / 50); page++) {
        pages.push(await things.search({ ...asked, per_page: '50', page: `${page}`, ...more }))
      }
      return pages
    }
    const plain = (await all({})).flatMap(({ hits }) => hits!)
    const pins = { pinned_hits: '3:1,7:2,8:51,11:9999' }
    const pages = await all(pins)
    const hits = pages.flatMap((page) => page.hits!)
    expect(new Set(pages.map(({ found }) => found))).toEqual(new Set([plain.length]))
    const places = (id: string) => hits.findIndex(({ document }) => document.id === id)
    expect([places('3'), places('7'), places('11')]).toEqual([0, 1, plain.length - 1])
    expect(places('8')).toBe(Math.min(50, plain.length - 2))
    expect(new Set(idsOf({ ...pages[0]!, hits })).size).toBe(plain.length)
    // Of many matches, the best 64 by BM25 are read first: another one moves up in place of each that is pinned.
    const others = hits.filter(({ curated }) => !curated).slice(0, 15)
    const pinned = new Set(['3', '7', '8', '11'])
    const kept = plain.filter(({ document }) => !pinned.has(document.id))
    expect(others.map(({ document, text_match }) => [document.id, text_match])).toEqual(
      kept.slice(0, 15).map(({ document, text_match }) => [document.id, text_match]),
    )
  })
})

describe('a placeholder of a curation', () => {
  it.each([
    ['no value', 'Nowhere', undefined],
    ['a value', 'w3 w4', { met: true }],
  ])('is looked for with one statement: %s', async (_, text, metadata) => {
    const rule = { query: '{text} phone', match: 'contains' }
    const set = `values ${text}`
    await putSet(env, CURATIONS, set, { items: [{ id: 'a', rule, metadata: { met: true } }] })
    const fields = [
      { name: 'title', type: 'string' },
      { name: 'text', type: 'string', facet: true },
    ]
    const things = await makeCollection(fields, [{ id: 'a', title: 'phone', text }], { curation_sets: [set] })
    const q = `${Array.from({ length: 15 }, (__, n) => `w${n}`).join(' ')} phone`
    const { result, statements } = await watched(things, { q, query_by: 'title' })
    expect(result.metadata).toEqual(metadata)
    expect(statements.filter(({ text: sql }) => sql.includes('octet_length('))).toHaveLength(1)
  })
})
