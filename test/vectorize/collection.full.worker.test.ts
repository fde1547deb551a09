/** Ten thousand documents through Vectorize, beside the same documents in the embedded index. */
import { abortAllDurableObjects } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { unwrap } from '../../src/errors'
import { collectionObject } from '../../src/search/collection/handle'
import type { SearchParameters } from '../../src/search/types'
import { BYTES } from '../../src/vectorize/vectorize-index'
import { idsOf } from '../search/make-collection'
import {
  bindDouble,
  embedVectors,
  importMany,
  keepAwake,
  type MirroredCollection,
  makeDocuments,
  makeQuestions,
  newMirrored,
  query,
  search,
  settle,
  waiting,
} from './collections'
import type { VectorizeDouble } from './double'

const COUNT = 10_000
/** So that ten thousand vectors are too many to be held. */
const { held } = BYTES
const QUESTIONS = makeQuestions(6)

/** Kinds of search; each question is asked in every one. */
const KINDS: Record<string, SearchParameters> = {
  vector: { query_by: 'embedding' },
  hybrid: { query_by: 'title,embedding' },
  'vector, second page': { query_by: 'embedding', page: '2' },
  'vector, half filtered': { query_by: 'embedding', filter_by: 'year:>=1960' },
  'hybrid, half filtered': { query_by: 'title,embedding', filter_by: 'year:>=1960' },
  'vector, one in twenty': { query_by: 'embedding', filter_by: 'group:=g7' },
  'hybrid, one in twenty': { query_by: 'title,embedding', filter_by: 'group:=g7' },
  'vector, half filtered, forty': {
    query_by: 'embedding',
    vector_query: 'embedding:([], k: 40)',
    filter_by: 'year:>=1960',
    per_page: '40',
  },
  'vector, a page past a hundred': { query_by: 'embedding', page: '12' },
  'vector, sorted otherwise': { query_by: 'embedding', sort_by: 'year:desc' },
}
const { vector, hybrid } = KINDS

let embedded: MirroredCollection
let mirrored: MirroredCollection
let double: VectorizeDouble
/** lets the objects that were kept awake sleep again */
const letGo: (() => Promise<void>)[] = []

beforeAll(async () => {
  vi.spyOn(console, 'error').mockImplementation(() => {})
  BYTES.held = BYTES.exact
  embedVectors()
  embedded = await newMirrored()
  // Woken under Vectorize, it would send its vectors there too.
  letGo.push(keepAwake(embedded))
  await importMany(embedded.object, makeDocuments(COUNT))
  await search(embedded, { q: QUESTIONS[0]!, query_by: 'embedding' })
  double = bindDouble()
  mirrored = await newMirrored()
  await importMany(mirrored.object, makeDocuments(COUNT))
}, 180_000)

beforeEach(() => void Object.assign(env, { VECTORS: 'vectorize' }))
afterAll(async () => {
  for (const sleep of letGo) await sleep()
  BYTES.held = held
  embedVectors()
})

/** How much of the embedded index's first ten hits is among Vectorize's, 0 to 1, on average. */
async function overlap(params: SearchParameters): Promise<number> {
  let shared = 0
  let all = 0
  for (const q of QUESTIONS) {
    const expected = idsOf(await search(embedded, { q, ...params }))
    const found = new Set(idsOf(await search(mirrored, { q, ...params })))
    shared += expected.filter((id) => found.has(id)).length
    all += expected.length
  }
  return shared / all
}

async function compareAll(
  when: string,
  kinds: Record<string, SearchParameters | undefined>,
  least = 0.9,
): Promise<void> {
  const lines: string[] = []
  for (const [kind, params] of Object.entries(kinds)) {
    const share = await overlap(params!)
    lines.push(`${kind.padEnd(32)} ${share.toFixed(3)}`)
    expect(share, `${kind}, ${when}`).toBeGreaterThanOrEqual(least)
  }
  console.log(`top-10 overlap with the embedded index, ${when}\n${lines.join('\n')}`)
}

describe('ten thousand documents in Vectorize', { timeout: 120_000 }, () => {
  it('are found before Vectorize shows any of them', async () => {
    expect(double.visible.size).toBe(0)
    await compareAll('none visible', KINDS, 1)
  })

  it('are found as the embedded index finds them', async () => {
    await settle(mirrored, double)
    expect(double.visible.size).toBe(COUNT)
    const before = double.calls.query
    // Scores are approximate, and yet the ten nearest are among the hundred that have the highest.
    await compareAll('all visible', KINDS, 1)
    // Where half of the hundred pass, and more than half of those are wanted, all that pass are compared instead.
    expect(double.calls.query).toBe(before + 5 * QUESTIONS.length)
    double.overlooks = 100
    await compareAll('one vector in a hundred overlooked', { vector, hybrid })
  })

  it('measure distances exactly', async () => {
    const params = { q: QUESTIONS[1]!, query_by: 'embedding' }
    const [ours, theirs] = [await search(mirrored, params), await search(embedded, params)]
    const distances = new Map(
      theirs.hits!.map(({ document, vector_distance }) => [document.id, vector_distance]),
    )
    for (const { document, vector_distance } of ours.hits!) {
      if (distances.has(document.id)) expect(vector_distance).toBe(distances.get(document.id))
    }
  })

  it('fill filtered pages, and ask Vectorize only where it helps', async () => {
    const calls = double.calls.query
    const few = await search(mirrored, { q: QUESTIONS[2]!, query_by: 'embedding', filter_by: 'group:=g3' })
    expect(double.calls.query).toBe(calls)
    expect(few.hits).toHaveLength(10)
    const params = { q: QUESTIONS[2]!, query_by: 'embedding', filter_by: 'year:>=1960', per_page: '80' }
    const many = await search(mirrored, params)
    // Of a hundred that Vectorize would name half pass.
    expect(double.calls.query).toBe(calls)
    expect(idsOf(many)).toEqual(idsOf(await search(embedded, params)))
  })

  it('come, change and go while Vectorize shows the old state', async () => {
    const q = QUESTIONS[3]!
    const first = async () => idsOf(await search(mirrored, { q, query_by: 'embedding', per_page: '2' }))
    const [before] = await first()
    const calls = double.calls.query
    await importMany(mirrored.object, [{ id: 'new', title: q, year: 2000, group: 'g1' }])
    expect(await first()).toEqual(['new', before])
    await importMany(mirrored.object, [{ id: 'd77', title: `${q} ${q}`, year: 2000, group: 'g1' }])
    expect((await first()).toSorted()).toEqual(['d77', 'new'])
    await importMany(mirrored.object, [{ id: 'd77', title: 'something else', year: 2000, group: 'g1' }])
    unwrap(await mirrored.object.remove('new', false))
    expect(await first()).toContain(before)
    expect(await first()).not.toContain('new')
    expect(double.calls.query).toBeGreaterThan(calls)
    await importMany(mirrored.object, makeDocuments(COUNT).slice(77, 78))
  })

  it('change and go, and are found so at once', async () => {
    const changed = makeDocuments(COUNT, 5).slice(0, 400)
    for (const collection of [embedded, mirrored]) {
      await importMany(collection.object, changed)
      let done = false
      while (!done) {
        const options = { batchSize: 300, returnDocuments: false, returnIds: false }
        done = unwrap(await collection.object.removeWhere('year:=[1955,1988,2001]', options)).done
      }
    }
    expect(await waiting(mirrored)).toBeGreaterThan(500)
    // More pass the filter among what is not visible than the page has, and yet the nearest may be others.
    const long = { q: QUESTIONS[2]!, query_by: 'embedding', filter_by: 'year:>=1950', per_page: '80' }
    expect(idsOf(await search(mirrored, long))).toEqual(idsOf(await search(embedded, long)))
    await compareAll('changes not yet visible', { vector, hybrid })
    await settle(mirrored, double)
    await compareAll('changes visible', { vector, hybrid })
    const { length } = await query(mirrored, 'SELECT 1 FROM documents')
    expect(double.visible.size).toBe(length)
  })

  it('survive the death of the object while they are being sent', async () => {
    const changed = makeDocuments(COUNT, 9).slice(3_000, 5_000)
    await importMany(embedded.object, changed)
    double.fail('upsert', 'silent')
    const { upsert } = double.calls
    const importing = importMany(mirrored.object, changed).catch(() => {})
    await expect.poll(() => double.calls.upsert, { timeout: 20_000 }).toBe(upsert + 1)
    await abortAllDurableObjects()
    await importing
    for (const collection of [embedded, mirrored])
      collection.object = collectionObject(env, collection.objectId)
    embedVectors()
    await search(embedded, { q: QUESTIONS[0]!, query_by: 'embedding' })
    letGo.push(keepAwake(embedded))
    Object.assign(env, { VECTORS: 'vectorize' })
    await importMany(mirrored.object, changed)
    await compareAll('after a kill', { vector, hybrid })
    await settle(mirrored, double)
    await compareAll('after a kill, all visible', { vector, hybrid })
    let cursor = ''
    do {
      const step = unwrap(await mirrored.object.reconcileVectors(cursor))
      expect(step).toMatchObject({ missing: 0, stale: 0, extra: 0 })
      cursor = step.cursor
    } while (cursor !== '')
  })
})
