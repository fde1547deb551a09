/** How many calls to the collection's object an export takes, and what a client reads when the platform allows no more. */
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { Collection } from '../../../src/search/collection/object'
import { call, send } from './api'

const COUNT = 1_000
/** Roughly, of a page. */
const PAGE = 256_000
const DOCUMENTS = '/collections/long/documents'
const EXPORT = `${DOCUMENTS}/export`

const lineOf = (id: number): string =>
  JSON.stringify({ id: String(id).padStart(4, '0'), text: 'long '.repeat(200), even: id % 2 === 0 })
const LINES = Array.from({ length: COUNT }, (_, id) => lineOf(id))

beforeAll(async () => {
  const fields = [
    { name: 'text', type: 'string', index: false, optional: true },
    { name: 'even', type: 'bool' },
  ]
  expect((await call('POST', '/collections', { body: { name: 'long', fields } }))[0]).toBe(201)
  const imported = await (await send('POST', `${DOCUMENTS}/import`, { body: LINES.join('\n') })).text()
  expect(imported.split('\n').every((line) => line === '{"success":true}')).toBe(true)
})

afterEach(() => vi.restoreAllMocks())

const exported = async (parameters = ''): Promise<string[]> =>
  (await (await send('GET', EXPORT + parameters, { headers: { 'x-request-id': 'front-9' } })).text()).split(
    '\n',
  )

/** Pages that these lines take: a page ends with the line that reaches its size. */
const pagesOf = (lines: readonly string[]): number =>
  Math.ceil(lines.length / Math.ceil(PAGE / lines[0]!.length))

describe('an export', () => {
  it.each([
    ['all documents', '', LINES],
    ['half of them', '?filter_by=even:true', LINES.filter((_, id) => id % 2 === 0)],
    ['short lines', '?include_fields=id', LINES.map((line) => JSON.stringify({ id: JSON.parse(line).id }))],
  ])('of %s makes a call for each 256,000 characters', async (_, parameters, lines) => {
    const pages = vi.spyOn(Collection.prototype, 'exportPage')
    expect(await exported(parameters)).toEqual(lines)
    expect(pages).toHaveBeenCalledTimes(pagesOf(lines))
  })

  it('that the platform allows no more calls ends in a line that says so, and names its request', async () => {
    const read = Collection.prototype.exportPage
    const allowed = 2
    let calls = 0
    vi.spyOn(Collection.prototype, 'exportPage').mockImplementation(function (this: Collection, ...args) {
      calls += 1
      if (calls > allowed) throw new Error('Too many subrequests by single Worker invocation.')
      return read.apply(this, args)
    })
    const logged = vi.spyOn(console, 'error').mockReturnValue()
    const lines = await exported()
    const whole = lines.slice(0, -1)
    expect(whole).toEqual(LINES.slice(0, whole.length))
    expect(pagesOf(whole)).toBe(allowed)
    expect(JSON.parse(lines.at(-1)!)).toEqual({ error: 'Internal error. Request id: front-9', code: 500 })
    expect(calls).toBe(allowed + 1)
    expect(logged.mock.calls.map(([line]) => line)).toContain('Request front-9 failed: Error')
  })
})

describe('work on many documents', () => {
  it.each<[string, () => Promise<unknown>, number]>([
    ['an export', () => exported(), COUNT / 200],
    ['an export of short lines', () => exported('?include_fields=id'), COUNT / 200],
    ['a backup', () => call('GET', '/operations/backup/documents/long'), COUNT / 200],
    ['a change', () => call('PATCH', `${DOCUMENTS}?filter_by=id:*`, { body: { even: true } }), COUNT / 40],
    ['a deletion', () => call('DELETE', `${DOCUMENTS}?filter_by=id:*`), COUNT / 40],
  ])('of %s lets others have their turn', async (_, work, least) => {
    // Promises alone would run one after another, and no timer between them.
    let turns = 0
    const watch = setInterval(() => turns++, 0)
    const pauses = vi.spyOn(globalThis, 'setTimeout')
    await work()
    clearInterval(watch)
    expect(pauses.mock.calls.filter(([, ms]) => ms === 1).length).toBeGreaterThanOrEqual(least)
    expect(turns).toBeGreaterThanOrEqual(least)
  })
})
