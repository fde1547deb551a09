/** Keys on OpenSearch's routes: where they come, and what they may see. */
import { beforeAll, describe, expect, it } from 'vitest'
import { call, send } from '../typesense/api'
import { scopedKey } from '../typesense/conversing'
import { fill, indexName, request } from './api'

const index = indexName('kinds')

beforeAll(async () => {
  expect(
    (await request('PUT', `/${index}`, { mappings: { properties: { kind: { type: 'keyword' } } } }))[0],
  ).toBe(200)
  await fill(index, { a: { kind: 'novel' }, b: { kind: 'essay' }, c: { kind: 'novel' } })
})

describe('a key', () => {
  it('that is scoped finds what it may', async () => {
    const body = { description: '', actions: ['documents:search'], collections: [index] }
    const [, { value }] = await call('POST', '/keys', { body })
    const key = await scopedKey(value, { filter_by: 'kind:=novel' })
    const ids = async (query: unknown) => {
      const [status, { hits }] = await request('POST', `/${index}/_search`, { query }, key)
      return [status, hits.hits.map(({ _id }: { _id: string }) => _id)]
    }
    expect(await ids({ match_all: {} })).toEqual([200, ['a', 'c']])
    expect(
      await ids({ bool: { should: [{ term: { kind: 'essay' } }, { ids: { values: ['a'] } }] } }),
    ).toEqual([200, ['a']])
    expect(await ids({ term: { kind: '`) || id:*' } })).toEqual([200, []])
    expect((await request('GET', `/${index}/_doc/b`, undefined, key))[0]).toBe(401)
    expect((await request('POST', `/_msearch`, [{ index: 'other' }, {}], key))[0]).toBe(401)
  })

  it('comes by any of the ways of OpenSearch', async () => {
    const status = async (headers: Record<string, string>) => {
      const response = await send('GET', `/${index}/_count`, { key: null, headers })
      await response.text()
      return [response.status, response.headers.get('www-authenticate')]
    }
    const basic = (text: string) => ({ authorization: `Basic ${btoa(text)}` })
    expect(await status(basic('admin:xyz'))).toEqual([200, null])
    expect(await status({ authorization: 'Bearer xyz' })).toEqual([200, null])
    expect(await status({ 'x-api-key': 'xyz' })).toEqual([200, null])
    const challenge = 'Basic realm="Parley", charset="UTF-8"'
    for (const headers of [
      basic('admin:wrong'),
      basic('xyz'),
      basic('xyz:'),
      { authorization: 'Basic %%' },
      {},
    ]) {
      expect(await status(headers as Record<string, string>)).toEqual([401, challenge])
    }
  })
})

it('counts the conditions of all searches of a request together', async () => {
  const terms = (field: string, count: number) => ({
    query: { terms: { [field]: Array.from({ length: count }, (_, n) => `k${n}`) } },
  })
  const statuses = async (...bodies: object[]) => {
    const [status, { responses }] = await request(
      'POST',
      `/${index}/_msearch`,
      bodies.flatMap((body) => [{}, body]),
    )
    expect(status).toBe(200)
    const refused = responses.filter((one: { status: number }) => one.status === 400)
    for (const { error } of refused) expect(error.reason).toContain('at most 100000 are allowed')
    return responses.map((one: { status: number }) => one.status).sort()
  }
  expect(await statuses(terms('kind', 40_000), terms('kind', 40_000))).toEqual([200, 200])
  // One that takes several searches counts once, and one that is refused not at all.
  const paged = { ...terms('kind', 45_000), size: 600, aggs: { kinds: { terms: { field: 'kind' } } } }
  expect(await statuses(paged, terms('kind', 60_000), terms('kind', 40_000))).toEqual([200, 200, 400])
})
