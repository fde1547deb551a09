/** What keeps the searches of one caller from taking all of the time. */
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { Collection } from '../../../src/search/collection/object'
import { call, queryString } from './api'

const APPLES = { q: 'apple', query_by: 'title' }

beforeAll(async () => {
  await call('POST', '/collections', { body: { name: 'a', fields: [{ name: 'title', type: 'string' }] } })
  await call('POST', '/collections/a/documents', { body: { id: '1', title: 'An apple' } })
})

const search = (parameters: Record<string, unknown>, key?: string) =>
  call('GET', `/collections/a/documents/search${queryString(parameters)}`, { key })

const multi = (body: unknown) => call('POST', '/multi_search', { body })

describe('a key for pages', () => {
  const cutoffs = async (key: string | undefined, parameters: Record<string, unknown>) => {
    const asked: (string | undefined)[] = []
    const { search: original } = Collection.prototype
    const spied = vi.spyOn(Collection.prototype, 'search').mockImplementation(function (
      this: Collection,
      given,
      scope,
    ) {
      asked.push(given.search_cutoff_ms)
      return original.call(this, given, scope)
    })
    await search({ ...APPLES, ...parameters }, key)
    spied.mockRestore()
    return asked
  }

  it('has its searches cut off sooner', async () => {
    const made = (actions: string[], limits = {}) =>
      call('POST', '/keys', { body: { description: '', actions, collections: ['*'], limits } })
    const [, { value: page }] = await made(['documents:search'], { turns_per_day: 100 })
    const [, { value: server }] = await made(['documents:*'])
    expect(await cutoffs(page, {})).toEqual(['5000'])
    expect(await cutoffs(page, { search_cutoff_ms: 30_000 })).toEqual(['5000'])
    expect(await cutoffs(page, { search_cutoff_ms: 100 })).toEqual(['100'])
    expect(await cutoffs(server, {})).toEqual([undefined])
    expect(await cutoffs(undefined, { search_cutoff_ms: 20_000 })).toEqual(['20000'])
    expect((await search({ ...APPLES, search_cutoff_ms: 'soon' }, page))[0]).toBe(400)
  })
})

describe('the searches of a request', () => {
  it('have so many conditions together, of a page fewer', async () => {
    const made = { description: '', actions: ['documents:search'], collections: ['*'] }
    const [, { value: page }] = await call('POST', '/keys', {
      body: { ...made, limits: { turns_per_day: 9 } },
    })
    const list = (count: number) => `title:[${Array.from({ length: count }, (_, n) => n).join(',')}]`
    const asking = (searches: object[], key?: string) =>
      call('POST', '/multi_search', {
        body: { searches: searches.map((one) => ({ collection: 'a', ...APPLES, ...one })) },
        key,
      })
    const [, { results }] = await asking([{ filter_by: list(1_000) }, { filter_by: list(1_000) }], page)
    expect(results.map(({ found }: { found: number }) => found)).toEqual([0, 0])
    for (const [searches, key, most] of [
      [[{ filter_by: list(1_001) }, { filter_by: list(1_000) }], page, 2_000],
      [[{ sort_by: `_eval(${list(2_001)}):desc` }], page, 2_000],
      [[{ filter_by: Array(2_001).fill('title:x').join(' || ') }], page, 2_000],
      [Array(10).fill({ filter_by: list(10_001) }), undefined, 100_000],
    ] as const) {
      const [status, { results, message = results?.[0].error }] = await asking([...searches], key)
      expect([status, results?.[0].code ?? status]).toContain(400)
      expect(message).toContain(`at most ${most} are allowed`)
      expect(message).toContain('Ask for fewer')
    }
    expect((await asking([{ filter_by: list(65_536) }]))[0]).toBe(200)
    // What the owner of the key fixed does not count.
    const [status] = await search({ ...APPLES, filter_by: 'title:=[`a, b`, `c && d`]' }, page)
    expect(status).toBe(200)
  })

  it('are refused if there are a million of them', async () => {
    const body = `{"searches":[${'{},'.repeat(1_000_000)}{}]}`
    const [status, { message }] = await call('POST', '/multi_search?collection=a', { body })
    expect([status, message]).toEqual([400, expect.stringContaining('limit_multi_searches')])
  })

  it('have the time of one search together', async () => {
    const cutoffs: number[] = []
    const now = vi.spyOn(Date, 'now')
    const start = Date.now()
    const spied = vi.spyOn(Collection.prototype, 'search').mockImplementation(async (given) => {
      cutoffs.push(Number(given.search_cutoff_ms ?? 30_000))
      // Each one takes three seconds, so that some are left when the first few, which are sent at once, have ended.
      now.mockReturnValue(start + 3_000 * cutoffs.length)
      return { ok: false, error: { status: 400, message: 'no' } } as never
    })
    now.mockReturnValue(start)
    const [status] = await multi({ searches: Array(20).fill({ collection: 'a', ...APPLES }) })
    spied.mockRestore()
    now.mockRestore()
    expect(status).toBe(408)
    expect(cutoffs.length).toBeLessThan(20)
    expect(Math.min(...cutoffs)).toBeLessThan(30_000)
  })

  it('run a few at a time', async () => {
    const AT_ONCE = 4
    const searches = Array.from({ length: 20 }, () => ({ collection: 'a', ...APPLES }))
    let running = 0
    let ended = 0
    let most = 0
    const { search: original } = Collection.prototype
    const spied = vi.spyOn(Collection.prototype, 'search').mockImplementation(async function (
      this: Collection,
      given,
      scope,
    ) {
      most = Math.max(most, ++running)
      // None ends before as many run as may, however slow the machine is: with fewer, this would never end.
      while (running < Math.min(AT_ONCE, searches.length - ended)) await scheduler.wait(1)
      // One too many would begin now.
      await scheduler.wait(1)
      const outcome = await original.call(this, given, scope)
      running--
      ended++
      return outcome
    })
    const [, { results }] = await multi({ searches })
    expect(results).toHaveLength(20)
    expect([most, ended]).toEqual([AT_ONCE, 20])
    most = 0
    ended = 0
    await multi({ union: true, searches })
    expect([most, ended]).toEqual([AT_ONCE, 20])
    spied.mockRestore()
  })
})
