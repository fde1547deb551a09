/** The cache of whole replies: for how long, how many, and what empties it. */
import { beforeEach, expect, test, vi } from 'vitest'
import { KeptReplies } from '../../src/search/run/kept-replies'
import type { SearchResult } from '../../src/search/types'

let changes: number
const sql = { exec: () => ({ one: () => ({ changes }) }) } as never as SqlStorage
const reply = (found: number, text = ''): SearchResult =>
  ({ found, out_of: found, hits: [], text }) as Partial<SearchResult> as SearchResult

let replies: KeptReplies
beforeEach(() => {
  changes = 0
  replies = new KeptReplies()
})
const keep = (key: string, result: SearchResult, on: unknown[] = [], seconds = 60) =>
  replies.keep(sql, key, 0, { result, on, seconds })

test('a reply is found by its key until something is written', () => {
  const result = reply(1)
  keep('a', result)
  expect(replies.find(sql, 'a', [])).toBe(result)
  expect(replies.find(sql, 'b', [])).toBeUndefined()
  changes++
  expect(replies.find(sql, 'a', [])).toBeUndefined()
})

test('a reply is not kept if something was written while it was made', () => {
  changes++
  keep('a', reply(1))
  expect(replies.find(sql, 'a', [])).toBeUndefined()
})

test('a reply depends on its schema and its sets', () => {
  const [schema, synonyms] = [{}, []]
  keep('a', reply(1), [schema, synonyms])
  expect(replies.find(sql, 'a', [schema, synonyms])).toBeDefined()
  expect(replies.find(sql, 'a', [schema, []])).toBeUndefined()
  keep('a', reply(1), [schema, synonyms])
  expect(replies.find(sql, 'a', [schema])).toBeUndefined()
})

test('a reply is kept for its seconds', () => {
  vi.useFakeTimers({ now: 1_000_000, toFake: ['Date'] })
  try {
    keep('a', reply(1), [], 2)
    vi.setSystemTime(1_001_999)
    expect(replies.find(sql, 'a', [])).toBeDefined()
    vi.setSystemTime(1_002_000)
    expect(replies.find(sql, 'a', [])).toBeUndefined()
  } finally {
    vi.useRealTimers()
  }
})

test('the memory is bounded: what was asked for longest ago goes first', () => {
  const text = 'x'.repeat(1_000_000)
  for (const key of ['a', 'b', 'c', 'd']) keep(key, reply(1, text))
  expect(replies.find(sql, 'a', [])).toBeDefined()
  keep('e', reply(1, text))
  const kept = ['a', 'b', 'c', 'd', 'e'].filter((key) => replies.find(sql, key, []) !== undefined)
  expect(kept).toEqual(['a', 'c', 'd', 'e'])
  keep('long', reply(1, 'x'.repeat(1_100_000)))
  expect(replies.find(sql, 'long', [])).toBeUndefined()
  expect(replies.find(sql, 'e', [])).toBeDefined()
})
