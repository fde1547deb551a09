import { describe, expect, it } from 'vitest'
import { call, send } from './api'

const multi = (body: unknown) => call('POST', '/multi_search', { body })

const ids = (result: { hits: { document: { id: string } }[] }) => result.hits.map((hit) => hit.document.id)

describe('a union of grouped searches', () => {
  it('counts documents, as its list holds them', async () => {
    const fields = [{ name: 'kind', type: 'string', facet: true }]
    await call('POST', '/collections', { body: { name: 'grouped', fields } })
    const lines = ['x', 'x', 'x', 'y'].map((kind, n) => JSON.stringify({ id: `${n}`, kind }))
    await (await send('POST', '/collections/grouped/documents/import', { body: lines.join('\n') })).text()
    const grouped = { collection: 'grouped', q: '*', group_by: 'kind' }
    const [, result] = await multi({ union: true, searches: [grouped, grouped] })
    expect([result.found, ids(result).sort()]).toEqual([4, ['0', '1', '2', '3']])
    const [, all] = await multi({ union: true, remove_duplicates: false, searches: [grouped, grouped] })
    expect([all.found, all.hits.length]).toEqual([8, 8])
    // As many hits a group as there may be: more than one page of groups may hold.
    const large = { ...grouped, group_limit: 99 }
    expect((await multi({ union: true, searches: [large] }))[1].found).toBe(4)
  })
})
