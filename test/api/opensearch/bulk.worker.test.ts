/** Bulk requests. */
import { describe, expect, it } from 'vitest'
import { call, send } from '../typesense/api'
import { idsOf, indexName, request } from './api'

describe('a bulk', () => {
  it('deletes many at once, whatever their ids are', async () => {
    const index = indexName()
    const ids = [...Array.from({ length: 600 }, (_, at) => `d${at}`), 'a`b', ' c ', '*', 'x,y', '[z]', 'é']
    await request(
      'POST',
      `/${index}/_bulk`,
      ids.flatMap((_id) => [{ index: { _id } }, { n: 1 }]),
    )
    const [, { items, errors }] = await request(
      'POST',
      `/${index}/_bulk`,
      [...ids.filter((id) => id !== 'd7'), 'none'].map((_id) => ({ delete: { _id } })),
    )
    expect(errors).toBe(false)
    const results = items.map((item: { delete: { result: string } }) => item.delete.result)
    expect(results.filter((result: string) => result === 'deleted')).toHaveLength(ids.length - 1)
    expect(results.at(-1)).toBe('not_found')
    expect((await request('GET', `/${index}/_count`))[1].count).toBe(1)
  })

  it('does all of its actions, in their order', async () => {
    const index = indexName()
    const [status, body] = await request('POST', '/_bulk', [
      { index: { _index: index, _id: '1' } },
      { a: 1 },
      { index: { _index: index, _id: '1' } },
      { a: 2 },
      { create: { _index: index, _id: '1' } },
      { a: 3 },
      { update: { _index: index, _id: '1' } },
      { doc: { b: 1 } },
      { update: { _index: index, _id: 'no' } },
      { doc: { b: 1 } },
      { delete: { _index: index, _id: 'no' } },
      { index: { _index: index, _id: '' } },
      { a: 1 },
      { index: { _index: index } },
      { a: 4 },
    ])
    expect([status, body.errors]).toEqual([200, true])
    const told = body.items.map((item: Record<string, Record<string, unknown>>) => {
      const [[action, { status, result, error }]] = Object.entries(item) as [
        [string, Record<string, unknown>],
      ]
      return [action, status, result ?? (error as { type: string }).type]
    })
    expect(told).toEqual([
      ['index', 201, 'created'],
      ['index', 200, 'updated'],
      ['create', 409, 'version_conflict_engine_exception'],
      ['update', 200, 'updated'],
      ['update', 404, 'document_missing_exception'],
      ['delete', 404, 'not_found'],
      ['index', 400, 'illegal_argument_exception'],
      ['index', 201, 'created'],
    ])
    expect((await request('GET', `/${index}/_source/1`))[1]).toEqual({ a: 2, b: 1 })
    const [, gone] = await request('PUT', `/${index}/_bulk`, [
      { delete: { _id: '1' } },
      { delete: { _id: 'no' } },
    ])
    expect([gone.errors, gone.items[0].delete.result, gone.items[1].delete.status]).toEqual([
      false,
      'deleted',
      404,
    ])
  })

  const line = JSON.stringify({ index: { _index: 'bulk-of-faults' } })
  it.each([
    ['', 'request body is required'],
    [`${line}\n{}`, 'The bulk request must be terminated by a newline [\\n]'],
    [`${line}\n{}\n{}\n`, 'Malformed action/metadata line [3], expected FIELD_NAME but found [END_OBJECT]'],
    [
      '{"index":{"_index":"x","_foo":1}}\n{}\n',
      'Action/metadata line [1] contains an unknown parameter [_foo]',
    ],
    [
      '{"paint":{}}\n',
      'Malformed action/metadata line [1], expected one of [create, delete, index, update] but found [paint]',
    ],
    ['{"index":{}}\n{}\n', 'Validation Failed: 1: index is missing;'],
    [
      '{"update":{"_index":"x","_id":"1"}}\n{"script":"x"}\n',
      '[UpdateRequest] does not support [script]: give a [doc]',
    ],
  ])('of a faulty line does nothing: %j', async (text, reason) => {
    const [status, { error }] = await request('POST', '/_bulk', text)
    expect([status, error.reason]).toEqual([400, reason])
    expect((await request('GET', '/bulk-of-faults'))[0]).toBe(404)
  })

  it('takes blank lines, line ends of Windows and gzip', async () => {
    const index = indexName()
    const text = '{"index":{"_id":"1"}}\r\n{"a":1}\r\n\r\n{"index":{"_id":"2"}}\n{"a":2}\n'
    const gzip = await new Response(
      new Blob([text]).stream().pipeThrough(new CompressionStream('gzip')),
    ).arrayBuffer()
    const headers = { 'content-type': 'application/x-ndjson', 'content-encoding': 'gzip' }
    const response = await send('POST', `/${index}/_bulk?refresh=true`, {
      body: new Uint8Array(gzip),
      headers,
    })
    expect(await response.json()).toMatchObject({ errors: false, items: [{}, {}] })
    expect(await idsOf(index, { match_all: {} })).toEqual(['1', '2'])
  })

  it('is held to what the key may do, before anything is written', async () => {
    const index = indexName()
    const key = async (actions: string[], collections = [index]) =>
      (await call('POST', '/keys', { body: { description: '', actions, collections } }))[1].value
    const write = [{ index: { _index: index, _id: '1' } }, { a: 1 }]
    const importer = await key(['documents:import'])
    expect((await request('POST', '/_bulk', write, importer))[1].items[0].index).toMatchObject({
      status: 401,
    })
    expect((await request('GET', `/${index}`))[0]).toBe(404)
    const maker = await key(['documents:import', 'collections:create'])
    expect((await request('POST', '/_bulk', write, maker))[1].errors).toBe(false)
    const mixed = [{ index: { _index: index, _id: '2' } }, { a: 1 }, { delete: { _index: index, _id: '1' } }]
    expect((await request('POST', '/_bulk', mixed, importer))[0]).toBe(401)
    expect((await request('POST', '/_bulk', [{ index: { _index: 'other' } }, {}], maker))[0]).toBe(401)
    expect(await idsOf(index, { match_all: {} })).toEqual(['1'])
  })
})
