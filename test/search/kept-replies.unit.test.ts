/** The cache of whole replies: for how long, how many, and what empties it. */
import { beforeEach, expect, test, vi } from 'vitest'
import { Memory } from '../../src/search/memory'
import { KeptReplies } from '../../src/search/run/context'

let changes: number
const sql = { exec: () => ({ one: () => ({ changes }) }) } as never as SqlStorage

let replies: KeptReplies
beforeEach(() => {
  changes = 0
  replies = new KeptReplies(new Memory(8 << 20))
})
const keep = (key: string, text: string, on: unknown[] = [], seconds = 60) =>
  replies.keep(sql, key, 0, { text, on, seconds })
const find = (key: string, on: unknown[] = [], seconds = 60) => replies.find(sql, key, on, seconds)

test('a reply is found by its key until something is written', () => {
  keep('a', '{"found":1}')
  expect(find('a')).toBe('{"found":1}')
  expect(find('b')).toBeUndefined()
  changes++
  expect(find('a')).toBeUndefined()
})

test('a reply is not kept if something was written while it was made', () => {
  changes++
  keep('a', '{}')
  expect(find('a')).toBeUndefined()
})

test('a reply depends on its schema and its sets', () => {
  const [schema, synonyms] = [{}, []]
  keep('a', '{}', [schema, synonyms])
  expect(find('a', [schema, synonyms])).toBeDefined()
  expect(find('a', [schema, []])).toBeUndefined()
  keep('a', '{}', [schema, synonyms])
  expect(find('a', [schema])).toBeUndefined()
})

test('a reply is kept for its seconds', () => {
  vi.useFakeTimers({ now: 1_000_000, toFake: ['Date'] })
  try {
    keep('a', '{}', [], 2)
    vi.setSystemTime(1_001_999)
    expect(find('a')).toBeDefined()
    vi.setSystemTime(1_002_000)
    expect(find('a')).toBeUndefined()
  } finally {
    vi.useRealTimers()
  }
})

test.each([
  ['the one who asks', 999_999_999, 2],
  ['the one for whom it was made', 2, 999_999_999],
])('%s says how old a reply may be', (_, first, second) => {
  vi.useFakeTimers({ now: 1_000_000, toFake: ['Date'] })
  try {
    keep('a', '{}', [], first)
    vi.setSystemTime(1_001_999)
    expect(find('a', [], second)).toBeDefined()
    vi.setSystemTime(1_002_000)
    expect(find('a', [], second)).toBeUndefined()
  } finally {
    vi.useRealTimers()
  }
})

test('the memory is bounded: what was asked for longest ago goes first', () => {
  const text = 'x'.repeat(1_000_000)
  for (const key of ['a', 'b', 'c', 'd']) keep(key, text)
  expect(find('a')).toBeDefined()
  keep('e', text)
  const kept = ['a', 'b', 'c', 'd', 'e'].filter((key) => find(key) !== undefined)
  expect(kept).toEqual(['a', 'c', 'd', 'e'])
  keep('long', 'x'.repeat(1_100_000))
  expect(find('long')).toBeUndefined()
  expect(find('e')).toBeDefined()
})
