import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, it } from 'vitest'
import { countOf, hybrid, neighbours } from '../../src/search/candidates'
import { fragment } from '../../src/search/fragment'

const inSqlite = <T>(work: (sql: SqlStorage) => T): Promise<T> =>
  runInDurableObject(env.COLLECTION.get(env.COLLECTION.newUniqueId()), (_, { storage }) => work(storage.sql))

/** Each of `count` documents is farther than the one before, by a number as long as numbers get. */
const farther = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ seq: 1_000_000 + index, distance: (index + 1) / 7e13 }))

it('takes more neighbours than one bound value of SQLite holds', async () => {
  const found = farther(100_001)
  expect(await inSqlite((sql) => countOf(sql, neighbours(found)))).toBe(100_001)
  expect(await inSqlite((sql) => countOf(sql, neighbours([])))).toBe(0)
})

it('fuses thousands of matches with as many neighbours, each pair by its ranks', async () => {
  // Three matches share each score, and every second neighbour is among them.
  const text = fragment(
    `SELECT value AS seq, -(value / 3) * 1.0 AS score, NULL AS distance, NULL AS fused FROM json_each(?)`,
    JSON.stringify(Array.from({ length: 3_000 }, (_, index) => index)),
  )
  const found = Array.from({ length: 3_000 }, (_, index) => ({ seq: index * 2, distance: index / 10_000 }))
  const { sql, bindings } = hybrid(text, found, 0.25)
  const rows = await inSqlite((storage) =>
    storage
      .exec<{ seq: number; score: number | null; distance: number | null; fused: number }>(sql, ...bindings)
      .toArray(),
  )
  const expected = new Map<number, { score: number | null; distance: number | null; fused: number }>()
  for (let seq = 0; seq < 3_000; seq++) {
    const group = Math.floor(seq / 3)
    expected.set(seq, { score: group === 0 ? 0 : -group, distance: null, fused: 0.75 / (1_000 - group) })
  }
  for (const [index, { seq, distance }] of found.entries()) {
    const { score, fused } = expected.get(seq) ?? { score: null, fused: 0 }
    expected.set(seq, { score, distance, fused: fused + 0.25 / (index + 1) })
  }
  expect(rows).toHaveLength(4_500)
  for (const { seq, score, distance, fused } of rows) {
    const { fused: share, ...sides } = expected.get(seq)!
    expect({ score, distance }).toEqual(sides)
    expect(fused).toBeCloseTo(share, 12)
  }
})
