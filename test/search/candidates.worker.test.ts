import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, it } from 'vitest'
import { fuse, Gathered, textMatches } from '../../src/search/run/candidates'
import { LongSearches, Pace } from '../../src/search/run/pace'
import { atOnce } from '../../src/search/steps'
import { makeCollection } from './make-collection'

it('fuses thousands of matches with as many neighbours, each pair by its ranks', () => {
  // Three matches share each score, and every second neighbour is among them.
  const text = new Gathered()
  for (let seq = 0; seq < 3_000; seq++) text.add(seq, -Math.floor(seq / 3), Number.NaN, Number.NaN)
  const found = Array.from({ length: 3_000 }, (_, index) => ({ seq: index * 2, distance: index / 10_000 }))
  const fused = atOnce(fuse(text, found, 0.25))
  const expected = new Map<number, { score: number; distance: number; fused: number }>()
  for (let seq = 0; seq < 3_000; seq++) {
    const group = Math.floor(seq / 3)
    expected.set(seq, { score: -group, distance: Number.NaN, fused: 0.75 / (1_000 - group) })
  }
  for (const [index, { seq, distance }] of found.entries()) {
    const { score, fused } = expected.get(seq) ?? { score: Number.NaN, fused: 0 }
    expected.set(seq, { score, distance, fused: fused + 0.25 / (index + 1) })
  }
  expect(fused.size).toBe(4_500)
  for (const [at, seq] of fused.seqs.entries()) {
    const { fused: share, ...sides } = expected.get(seq)!
    expect({ score: fused.scores[at]! + 0, distance: fused.distances[at] }).toEqual({
      ...sides,
      score: sides.score + 0,
    })
    expect(fused.fused[at]).toBeCloseTo(share, 12)
  }
})

it('reads the matches of very many words in several statements, and finds the same', async () => {
  const fields = [{ name: 'title', type: 'string' }]
  const things = await makeCollection(
    fields,
    Array.from({ length: 400 }, (_, n) => ({ title: `x${n} odd${n % 2}` })),
  )
  const stub = env.COLLECTION.get(env.COLLECTION.idFromName(things.objectId))
  await runInDurableObject(stub, async (_, { storage: { sql } }) => {
    const read = async (words: number, atOnce: boolean) => {
      const match = Array.from({ length: words }, (_, n) => `"x${n * 2}"`).join(' OR ')
      const asked = { match, table: 'word_index', rank: 'bm25(1.0)' } as const
      const pass = () => ({ sql: '1', bindings: [] })
      const pace = new Pace(new LongSearches({ ms: 1e9, rows: 1e9, width: 400 }))
      let statements = 0
      let found = 0
      for await (const relation of textMatches({ sql, pace }, asked, pass, atOnce)) {
        statements++
        found += pace.query(sql, relation).length
      }
      return { statements, found }
    }
    for (const atOnce of [true, false]) {
      expect(await read(30, atOnce)).toEqual({ statements: 1, found: 30 })
      const { statements, found } = await read(200, atOnce)
      expect(found).toBe(200)
      expect(statements).toBeGreaterThan(1)
    }
  })
})
