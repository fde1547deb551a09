/** Joins against a naive join in memory, for random documents and filters. */
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { unwrap } from '../../src/errors'
import { createCollection, lookUp } from '../../src/registry/collections'
import { collectionObject } from '../../src/search/collection/handle'
import type { JoinPlace, SearchParameters } from '../../src/search/types'
import { importAll } from './object'

/** A refers to nobody, B to one A (or to one that is missing), C to several Bs. */
interface Row {
  id: string
  n: number
  refs: string[]
}
type Name = 'a' | 'b' | 'c'
type World = Record<Name, Row[]>

type Condition =
  | { kind: 'less'; than: number }
  | { kind: 'and' | 'or'; left: Condition; right: Condition }
  | { kind: 'join'; negated: boolean; with: Name; inner: Condition }

const NEIGHBOURS: Record<Name, Name[]> = { a: ['b'], b: ['a', 'c'], c: ['b'] }

const conditionOf = (on: Name, depth: number): fc.Arbitrary<Condition> => {
  const less = fc.record({ kind: fc.constant('less' as const), than: fc.integer({ min: 0, max: 6 }) })
  if (depth === 0) return less
  const join = fc
    .tuple(fc.boolean(), fc.constantFrom(...NEIGHBOURS[on]))
    .chain(([negated, other]) =>
      conditionOf(other, depth - 1).map((inner) => ({ kind: 'join' as const, negated, with: other, inner })),
    )
  const pair = fc
    .tuple(
      fc.constantFrom('and' as const, 'or' as const),
      conditionOf(on, depth - 1),
      conditionOf(on, depth - 1),
    )
    .map(([kind, left, right]) => ({ kind, left, right }))
  return fc.oneof(less, join, join, pair)
}

const rows = (count: number, refersTo: fc.Arbitrary<string[]>): fc.Arbitrary<Row[]> =>
  fc
    .array(fc.record({ n: fc.integer({ min: 0, max: 5 }), refs: refersTo }), {
      minLength: count,
      maxLength: count,
    })
    .map((list) => list.map((row, index) => ({ id: String(index), ...row })))

const idBelow = (count: number) => fc.integer({ min: 0, max: count }).map(String)
const worlds: fc.Arbitrary<World> = fc.record({
  a: rows(6, fc.constant([])),
  b: rows(8, fc.array(idBelow(6), { maxLength: 1 })),
  c: rows(6, fc.uniqueArray(idBelow(8), { maxLength: 3 })),
})

/** The rows of another table that belong to a row: whichever of the two refers to the other. */
const relatedTo = (world: World, on: Name, row: Row, other: Name): Row[] =>
  world[other].filter((each) => (other < on ? row.refs.includes(each.id) : each.refs.includes(row.id)))

function passes(world: World, on: Name, row: Row, condition: Condition): boolean {
  if (condition.kind === 'less') return row.n < condition.than
  if (condition.kind === 'join') {
    const some = relatedTo(world, on, row, condition.with).some((each) =>
      passes(world, condition.with, each, condition.inner),
    )
    return some !== condition.negated
  }
  const sides = [condition.left, condition.right]
  return condition.kind === 'and'
    ? sides.every((side) => passes(world, on, row, side))
    : sides.some((side) => passes(world, on, row, side))
}

type Stage = { names: Record<Name, string>; joins: Record<string, JoinPlace> }

const printed = (stage: Stage, condition: Condition): string => {
  if (condition.kind === 'less') return `n:<${condition.than}`
  if (condition.kind === 'join') {
    return `${condition.negated ? '!' : ''}$${stage.names[condition.with]}(${printed(stage, condition.inner)})`
  }
  const sign = condition.kind === 'and' ? '&&' : '||'
  return `(${printed(stage, condition.left)}) ${sign} (${printed(stage, condition.right)})`
}

async function built(world: World): Promise<Stage> {
  const names = {
    a: `a-${crypto.randomUUID()}`,
    b: `b-${crypto.randomUUID()}`,
    c: `c-${crypto.randomUUID()}`,
  }
  const n = { name: 'n', type: 'int32' }
  const reference = { optional: true, async_reference: true }
  const joins: Stage['joins'] = {}
  const make = async (name: Name, fields: object[], documents: object[]) => {
    await createCollection(env, { name: names[name], fields: [n, ...fields] })
    const { objectId } = (await lookUp(env, names[name]))!
    joins[names[name]] = { objectId, name: names[name], history: false }
    const results = await importAll(collectionObject(env, objectId), documents as Record<string, unknown>[])
    expect(results.every(({ success }) => success === true)).toBe(true)
  }
  await make(
    'a',
    [],
    world.a.map(({ id, n: value }) => ({ id, n: value })),
  )
  await make(
    'b',
    [{ name: 'to', type: 'string', reference: `${names.a}.id`, ...reference }],
    world.b.map(({ id, n: value, refs }) => ({ id, n: value, ...(refs[0] && { to: refs[0] }) })),
  )
  await make(
    'c',
    [{ name: 'to', type: 'string[]', reference: `${names.b}.id`, ...reference }],
    world.c.map(({ id, n: value, refs }) => ({ id, n: value, to: refs })),
  )
  return { names, joins }
}

const search = async ({ names, joins }: Stage, on: Name, params: SearchParameters) => {
  const object = collectionObject(env, joins[names[on]]!.objectId)
  return unwrap(await object.search({ q: '*', per_page: '50', ...params }, { joins })).hits!.map(
    ({ document }) => document,
  )
}

describe('joins', () => {
  it('find what a naive join finds', { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(
        worlds,
        fc.array(
          fc
            .constantFrom<Name>('a', 'b', 'c')
            .chain((on) => conditionOf(on, 3).map((condition) => ({ on, condition }))),
          { minLength: 8, maxLength: 8 },
        ),
        async (world, questions) => {
          const stage = await built(world)
          for (const { on, condition } of questions) {
            const filter = printed(stage, condition)
            const found = await search(stage, on, { filter_by: filter })
            const expected = world[on].filter((row) => passes(world, on, row, condition)).map(({ id }) => id)
            expect(found.map(({ id }) => id).sort(), filter).toEqual(expected.sort())
          }
        },
      ),
      { numRuns: 12 },
    )
  })

  it('show and sort by the related documents that match', { timeout: 120_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(worlds, fc.integer({ min: 0, max: 6 }), async (world, than) => {
        const stage = await built(world)
        for (const [on, other] of [
          ['a', 'b'],
          ['b', 'a'],
          ['b', 'c'],
          ['c', 'b'],
        ] as const) {
          const name = stage.names[other]
          const shown = await search(stage, on, {
            filter_by: `$${name}(n:<${than})`,
            include_fields: `id, $${name}(n, id, strategy: nest_array) as related`,
            sort_by: `$${name}(n:desc), n:asc`,
          })
          const matching = (row: Row) =>
            relatedTo(world, on, row, other)
              .filter(({ n }) => n < than)
              .map(({ id, n }) => ({ id, n }))
          const best = (row: Row) => Math.max(...matching(row).map(({ n }) => n))
          const expected = world[on]
            .filter((row) => matching(row).length > 0)
            .sort((x, y) => best(y) - best(x) || x.n - y.n || Number(y.id) - Number(x.id))
            .map((row) => ({ id: row.id, related: matching(row) }))
          expect(shown).toEqual(expected)
        }
      }),
      { numRuns: 15 },
    )
  })
})
