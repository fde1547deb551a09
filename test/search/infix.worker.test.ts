/** Fields with `infix: true`, which are found by parts of their words. */
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { unwrap } from '../../src/errors'
import type { SearchParameters } from '../../src/search/types'
import { idsOf, makeCollection, refusal, type TestCollection } from './make-collection'
import { importAll } from './object'

const FIELDS = [
  { name: 'title', type: 'string', infix: true },
  { name: 'models', type: 'string[]', infix: true, optional: true },
  { name: 'plain', type: 'string', optional: true },
  { name: 'points', type: 'int32', optional: true },
]

describe('infix', () => {
  let things: TestCollection
  beforeAll(async () => {
    things = await makeCollection(FIELDS, [
      { id: 'inner', title: 'GH100037IN8900X', plain: 'foobar', points: 1 },
      { id: 'start', title: '100037SG7120X', points: 2 },
      { id: 'late', title: 'X200037SG89007120X', points: 3 },
      { id: 'list', title: 'White bread', models: ['GH100047IN8900X', 'second one'], points: 4 },
    ])
  })
  const ids = async (params: SearchParameters): Promise<string[]> =>
    idsOf(await things.search({ query_by: 'title', sort_by: 'points:asc', ...params } as SearchParameters))

  it('finds parts of words always, or where nothing else is found, or never', async () => {
    expect(await ids({ q: '100037' })).toEqual(['start'])
    expect(await ids({ q: '100037', infix: 'off' })).toEqual(['start'])
    expect(await ids({ q: '100037', infix: 'fallback' })).toEqual(['start'])
    expect(await ids({ q: '100037', infix: 'always' })).toEqual(['inner', 'start'])
    expect(await ids({ q: '037in', infix: 'fallback' })).toEqual(['inner'])
    expect(await ids({ q: '037in' })).toEqual([])
    expect(await ids({ q: 'h', infix: 'always' })).toEqual(['inner', 'list'])
    expect(await ids({ q: '047in', query_by: 'models', infix: 'always' })).toEqual(['list'])
    expect(await ids({ q: '7i', query_by: 'title,models', infix: 'always' })).toEqual(['inner', 'list'])
    expect(await ids({ q: '047in', query_by: 'title,models', infix: 'always,off' })).toEqual([])
    expect(await ids({ q: 'rea', infix: 'always', filter_by: 'points:>3' })).toEqual(['list'])
    expect(await ids({ q: 'rea', infix: 'always', filter_by: 'points:<4' })).toEqual([])
    expect(await ids({ q: '%', infix: 'always' })).toEqual(await ids({ q: '%' }))
  })

  it('limits what may come before and after the part', async () => {
    const always = { infix: 'always' }
    expect(await ids({ q: '00037', ...always, max_extra_prefix: '2' })).toEqual(['start', 'late'])
    expect(await ids({ q: '00037', ...always, max_extra_prefix: '3' })).toEqual(['inner', 'start', 'late'])
    expect(await ids({ q: '8900', ...always, max_extra_suffix: '2' })).toEqual(['inner'])
    expect(await ids({ q: '8900', ...always, max_extra_suffix: '5' })).toEqual(['inner', 'late'])
  })

  it('takes more words of a batch than fit into one value', async () => {
    const rolledBack = vi.spyOn(console, 'error')
    const wordsFrom = (first: number): string =>
      Array.from({ length: 100_000 }, (_, n) => `w${first + n}`).join(' ')
    const { object, search } = await makeCollection([{ name: 'text', type: 'string', infix: true }], [])
    const batch = [1_000_000, 2_000_000].map((first) => ({ id: `d${first}`, text: wordsFrom(first) }))
    expect(await importAll(object, batch)).toEqual(batch.map(() => ({ success: true })))
    expect(rolledBack).not.toHaveBeenCalled()
    rolledBack.mockRestore()
    const found = async (q: string) =>
      idsOf(await search({ q, query_by: 'text', infix: 'always', num_typos: '0' }))
    expect(await found('1000000')).toEqual(['d1000000'])
    expect(await found('2099999')).toEqual(['d2000000'])
  }, 60_000)

  it('finds words by long parts', async () => {
    const long = 'abcdefghij'.repeat(12)
    const accents = 'жщ'.repeat(40)
    const { search } = await makeCollection(FIELDS, [
      { id: 'long', title: `x${long}y` },
      { id: 'wide', title: `x${accents}y` },
    ])
    const found = async (q: string) =>
      idsOf(await search({ q, query_by: 'title', infix: 'always', num_typos: '0' }))
    for (const length of [46, 48, 49, 60, 90]) expect(await found(long.slice(0, length))).toEqual(['long'])
    expect(await found(`${long.slice(0, 60)}zz`)).toEqual([])
    for (const length of [23, 25, 60]) expect(await found(accents.slice(0, length))).toEqual(['wide'])
  })

  it('looks for words around a single letter', async () => {
    expect(await ids({ q: 'n' })).toEqual([])
    expect(await ids({ q: 'n', infix: 'always' })).toEqual(['inner'])
  })

  it('answers a query of many parts that many long words have', async () => {
    const filler = Array.from({ length: 90 }, (_, n) => String.fromCharCode(0x430 + (n % 30))).join('')
    const parts = Array.from({ length: 80 }, (_, n) => filler.slice(n, n + 3 + Math.floor(n / 30)))
    const { search } = await makeCollection(
      FIELDS,
      Array.from({ length: 500 }, (_, n) => ({ id: String(n), title: `x${n}${filler}` })),
    )
    expect((await search({ q: parts.join(' '), query_by: 'title', infix: 'always' })).found).toBeGreaterThan(
      0,
    )
  })

  it('does not count words that no document has any more', async () => {
    const { object, search } = await makeCollection(
      FIELDS,
      Array.from({ length: 600 }, (_, n) => ({ id: String(n), title: `q${n + 1000}kernel` })),
    )
    for (let done = false; !done; ) {
      const options = { batchSize: 1_000, returnDocuments: false, returnIds: false }
      done = unwrap(await object.removeWhere('id:*', options)).done
    }
    unwrap(await object.write('{"id":"alive","title":"somewhatlongerkernels"}', { action: 'create' }))
    expect(idsOf(await search({ q: 'kernel', query_by: 'title', infix: 'always' }))).toEqual(['alive'])
  })

  it('marks the whole word', async () => {
    const { hits } = await things.search({ q: '047in', query_by: 'models', infix: 'always' })
    expect(hits![0]!.highlights[0]!.snippets).toEqual(['<mark>GH100047IN8900X</mark>'])
    const { hits: white } = await things.search({ q: 'brown bread', query_by: 'title', infix: 'always' })
    expect(white![0]!.highlight).toMatchObject({ title: { snippet: 'White <mark>bread</mark>' } })
  })

  it('needs the index of every field that it is asked for', async () => {
    const missing =
      '400 Could not find `plain` in the infix index. Make sure to enable infix search by specifying `infix: true` in the schema.'
    expect(await refusal(things, { q: 'bar', query_by: 'plain', infix: 'always' })).toBe(missing)
    expect(await refusal(things, { q: 'foobar', query_by: 'plain', infix: 'fallback' })).toBe('accepted')
    expect(await refusal(things, { q: 'oob', query_by: 'plain', infix: 'fallback' })).toBe(missing)
    expect(await refusal(things, { q: 'x', query_by: 'title,plain', infix: 'always,off' })).toBe('accepted')
    expect(await refusal(things, { q: 'x', query_by: 'title', infix: 'always,off' })).toBe(
      '400 Number of infix values in `infix` does not match number of `query_by` fields.',
    )
    expect(await refusal(things, { q: 'x', query_by: 'title', infix: 'true' })).toBe(
      '400 Parameter `infix` must be `off`, `always` or `fallback`.',
    )
  })

  it('follows what becomes of documents and fields', async () => {
    const { object, search } = await makeCollection(FIELDS, [{ id: 'a', title: 'abcdefgh' }])
    const count = async (q: string, queryBy = 'title') =>
      (await search({ q, query_by: queryBy, infix: 'always' })).found
    expect(await count('cdef')).toBe(1)
    unwrap(await object.write('{"id":"a","title":"zyxwvuts"}', { action: 'update' }))
    expect([await count('cdef'), await count('xwvu')]).toEqual([0, 1])
    unwrap(await object.remove('a', false))
    expect(await count('xwvu')).toBe(0)
    unwrap(await object.write('{"id":"b","title":"12345678"}', { action: 'create' }))
    await object.truncate()
    expect(await count('3456')).toBe(0)
    unwrap(await object.write('{"id":"c","title":"12345678","later":"qwertyuiop"}', { action: 'create' }))
    expect(await count('3456')).toBe(1)
    const alter = await object.alter({
      fields: [{ name: 'later', type: 'string', infix: true, optional: true }],
    })
    unwrap(alter)
    while (!(await object.reindex()).done);
    expect(await count('rtyu', 'later')).toBe(1)
    unwrap(await object.alter({ fields: [{ name: 'later', drop: true }] }))
    unwrap(await object.alter({ fields: [{ name: 'later', type: 'string', optional: true }] }))
    expect(
      await refusal({ object } as TestCollection, { q: 'x', query_by: 'later', infix: 'always' }),
    ).toMatch(/^400 Could not find `later` in the infix index/)
  })
})
