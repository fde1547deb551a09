/** Single searches: their text comes from the object, and their parameters are parsed once. */
import { beforeAll, describe, expect, it } from 'vitest'
import { call, queryString, send } from './api'

const APPLES = { q: 'apple', query_by: 'title' }

const without = ({ filter_by, ...shown }: { filter_by?: string }) => shown

const search = (parameters: Record<string, unknown>, collection = 'repeated') =>
  call('GET', `/collections/${collection}/documents/search${queryString(parameters)}`)

beforeAll(async () => {
  const fields = [
    { name: 'title', type: 'string' },
    { name: 'tenant', type: 'int32' },
  ]
  await call('POST', '/collections', { body: { name: 'repeated', fields } })
  const lines = [1, 2, 3, 4, 5].map((n) =>
    JSON.stringify({ id: `${n}`, title: `Apple number ${n}`, tenant: n < 4 ? 1 : 2 }),
  )
  const path = '/collections/repeated/documents/import'
  await send('POST', path, { body: lines.join('\n') }).then((response) => response.text())
})

describe('a single search', () => {
  it('has the text of the same search in a multi_search, with every digit of long numbers', async () => {
    const fields = [
      { name: 'title', type: 'string' },
      { name: 'n', type: 'int64' },
    ]
    await call('POST', '/collections', { body: { name: 'digits', fields } })
    const body = '{"id":"1","title":"Apple \\"é\\" 日本","n":1712345678901234567}'
    await send('POST', '/collections/digits/documents/import', { body }).then((response) => response.text())
    const parameters = { ...APPLES, exclude_fields: 'search_time_ms' }
    const path = `/collections/digits/documents/search${queryString(parameters)}`
    const text = await send('GET', path, {}).then((response) => response.text())
    const searches = { searches: [{ collection: 'digits', ...parameters }] }
    const several = await send('POST', '/multi_search', { body: JSON.stringify(searches) })
    expect(text).toContain('"n":1712345678901234567')
    expect(await several.text()).toBe(`{"results":[${text}]}`)
  })

  it('has what each search asks for, one after the other with nearly the same parameters', async () => {
    const twice = [
      {},
      { q: 'number' },
      { q: '3' },
      { q: '*' },
      { per_page: 1 },
      { filter_by: 'tenant:2' },
      {},
    ]
    const found: unknown[] = []
    for (const other of [...twice, ...twice]) {
      const [, result] = await search({ ...APPLES, ...other })
      expect(result.request_params).toMatchObject({ q: 'apple', per_page: 10, ...without(other) })
      found.push([result.found, result.hits.length])
    }
    const once = [
      [5, 5],
      [5, 5],
      [1, 1],
      [5, 5],
      [5, 1],
      [2, 2],
      [5, 5],
    ]
    expect(found).toEqual([...once, ...once])
  })

  it('is checked against the schema as it is now', async () => {
    await call('POST', '/collections', {
      body: { name: 'grows', fields: [{ name: 'title', type: 'string' }] },
    })
    const asked = { q: 'apple', query_by: 'title' }
    expect((await search(asked, 'grows'))[1].found).toBe(0)
    await call('PATCH', '/collections/grows', {
      body: {
        fields: [
          { name: 'title', drop: true },
          { name: 'title', type: 'string', index: false },
        ],
      },
    })
    expect((await search(asked, 'grows'))[0]).toBe(400)
  })
})
