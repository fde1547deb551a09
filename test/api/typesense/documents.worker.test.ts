import { gzipSync } from 'node:zlib'
import { beforeAll, describe, expect, it } from 'vitest'
import { BAD_JSON, call, noCollection, queryString, send } from './api'

const SCHEMA = {
  name: 'books',
  fields: [
    { name: 'title', type: 'string' },
    { name: 'points', type: 'int32', optional: true },
  ],
}
const BOOKS = '/collections/books/documents'

const jsonl = (documents: unknown[]): string => documents.map((each) => JSON.stringify(each)).join('\n')

beforeAll(async () => {
  expect((await call('POST', '/collections', { body: SCHEMA }))[0]).toBe(201)
})

describe('collections', () => {
  it('are shown, listed, altered and dropped', async () => {
    const [status, created] = await call('POST', '/collections', { body: { ...SCHEMA, name: 'films' } })
    expect(status).toBe(201)
    expect(created).toMatchObject({ name: 'films', num_documents: 0 })
    expect((await call('GET', '/collections/films'))[1]).toEqual(created)
    const [, list] = await call('GET', '/collections')
    expect(list.map((each: { name: string }) => each.name).sort()).toEqual(['books', 'films'])
    const [, brief] = await call('GET', '/collections?exclude_fields=fields&limit=1')
    expect(brief).toHaveLength(1)
    expect(brief[0]).not.toHaveProperty('fields')

    const change = { fields: [{ name: 'year', type: 'int32', optional: true }] }
    expect((await call('PATCH', '/collections/films', { body: change }))[0]).toBe(200)
    const [, altered] = await call('GET', '/collections/films')
    expect(altered.fields.map((field: { name: string }) => field.name)).toContain('year')

    const [dropped, summary] = await call('DELETE', '/collections/films')
    expect([dropped, summary.name]).toEqual([200, 'films'])
    expect(await call('GET', '/collections/films')).toEqual([404, noCollection('films')])
    expect(await call('DELETE', '/collections/films')).toEqual([
      404,
      { message: 'No collection with name `films` found.' },
    ])
  })

  it('are cloned without their documents', async () => {
    const [status, clone] = await call('POST', '/collections?src_name=books', { body: { name: 'books2' } })
    expect(status).toBe(201)
    expect(clone).toMatchObject({ name: 'books2', num_documents: 0 })
    expect(clone.fields.map((field: { name: string }) => field.name)).toEqual(['title', 'points'])
    await call('DELETE', '/collections/books2')
  })

  it.each([
    ['{', 400, BAD_JSON],
    [{ fields: [] }, 400, { message: 'Parameter `name` is required.' }],
    [SCHEMA, 409, { message: 'A collection with name `books` already exists.' }],
  ])('are not made from %j', async (body, status, told) => {
    expect(await call('POST', '/collections', { body })).toEqual([status, told])
  })

  it.each([
    ['limit=x', 'Limit param should be unsigned integer.'],
    ['offset=-1', 'Offset param should be unsigned integer.'],
  ])('are not listed with %s', async (query, message) => {
    expect(await call('GET', `/collections?${query}`)).toEqual([400, { message }])
  })

  it('of any name work, and so do aliases of any name', async () => {
    const name = 'abc123 /:=-_~&?#%2F'
    const path = `/collections/${encodeURIComponent(name)}`
    expect((await call('POST', '/collections', { body: { ...SCHEMA, name } }))[0]).toBe(201)
    expect((await call('POST', `${path}/documents`, { body: { id: 'a/b', title: 'x' } }))[0]).toBe(201)
    expect((await call('GET', `${path}/documents/a%2Fb`))[1]).toEqual({ id: 'a/b', title: 'x' })

    const alias = encodeURIComponent('an alias /:=-_~&?#')
    const body = { collection_name: name }
    const shown = { collection_name: name, name: decodeURIComponent(alias) }
    expect(await call('PUT', `/aliases/${alias}`, { body })).toEqual([200, shown])
    expect(await call('GET', `/aliases/${alias}`)).toEqual([200, shown])
    expect(await call('GET', '/aliases')).toEqual([200, { aliases: [shown] }])
    const query = queryString({ q: 'x', query_by: 'title' })
    expect((await call('GET', `/collections/${alias}/documents/search${query}`))[1]).toMatchObject({
      found: 1,
    })
    expect(await call('DELETE', `/aliases/${alias}`)).toEqual([200, shown])
    expect((await call('GET', `/aliases/${alias}`))[0]).toBe(404)
    await call('DELETE', path)
  })
})

describe('documents', () => {
  it('are written, read, changed and deleted', async () => {
    expect(await call('POST', BOOKS, { body: { id: '1', title: 'One', points: 1 } })).toEqual([
      201,
      { id: '1', title: 'One', points: 1 },
    ])
    expect(await call('POST', BOOKS, { body: { id: '1', title: 'One' } })).toEqual([
      409,
      { message: 'A document with id 1 already exists.' },
    ])
    expect(await call('POST', `${BOOKS}?action=update`, { body: { id: '1', points: 2 } })).toEqual([
      201,
      { id: '1', title: 'One', points: 2 },
    ])
    expect(await call('PATCH', `${BOOKS}/1`, { body: { points: 3 } })).toEqual([
      200,
      { id: '1', title: 'One', points: 3 },
    ])
    expect(await call('GET', `${BOOKS}/1?exclude_fields=points`)).toEqual([200, { id: '1', title: 'One' }])
    expect((await call('DELETE', `${BOOKS}/1`))[0]).toBe(200)
    const missing = [404, { message: 'Could not find a document with id: 1' }]
    expect(await call('GET', `${BOOKS}/1`)).toEqual(missing)
    expect(await call('DELETE', `${BOOKS}/1`)).toEqual(missing)
    expect(await call('DELETE', `${BOOKS}/1?ignore_not_found=true`)).toEqual([200, { id: '1' }])
  })

  it('are not written with an unknown action, or into an unknown collection', async () => {
    expect(await call('POST', `${BOOKS}?action=x`, { body: {} })).toEqual([
      400,
      { message: 'Parameter `action` must be a create|update|upsert.' },
    ])
    expect(await call('POST', '/collections/none/documents', { body: {} })).toEqual([
      404,
      noCollection('none'),
    ])
  })

  it('are changed and deleted by filter', async () => {
    const documents = Array.from({ length: 5 }, (_, index) => ({
      id: `f${index}`,
      title: 'F',
      points: index,
    }))
    await send('POST', `${BOOKS}/import`, { body: jsonl(documents) }).then((response) => response.text())
    const some = encodeURIComponent('points:>=3')
    expect(await call('PATCH', `${BOOKS}?filter_by=${some}`, { body: { title: 'G' } })).toEqual([
      200,
      { num_updated: 2 },
    ])
    expect((await call('GET', `${BOOKS}/f4`))[1].title).toBe('G')
    expect(await call('PATCH', `${BOOKS}?filter_by=`, { body: { title: 'H' } })).toEqual([
      200,
      { num_updated: 0 },
    ])
    expect(await call('PATCH', BOOKS, { body: {} })).toEqual([
      400,
      { message: 'Parameter `filter_by` must be provided.' },
    ])
    const [, deleted] = await call('DELETE', `${BOOKS}?filter_by=${some}&return_id=true&batch_size=1`)
    expect({ ...deleted, ids: deleted.ids.sort() }).toEqual({ num_deleted: 2, ids: ['f3', 'f4'] })
    expect(await call('DELETE', BOOKS)).toEqual([400, { message: 'Parameter `filter_by` must be provided.' }])
    expect(await call('DELETE', `${BOOKS}?truncate=true`)).toEqual([200, { num_deleted: 3 }])
    expect((await call('GET', '/collections/books'))[1].num_documents).toBe(0)
  })
})

describe('import and export', () => {
  it('answers good and bad lines in order, without a newline at the end', async () => {
    const body = `${jsonl([{ id: 'a', title: 'A' }])}\n\n{"id":"b"}\n${jsonl([{ id: 'c', title: 'C' }])}\n`
    const response = await send('POST', `${BOOKS}/import?return_id=true`, { body })
    expect(response.status).toBe(200)
    expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8')
    const lines = (await response.text()).split('\n').map((line) => JSON.parse(line))
    expect(lines).toEqual([
      { success: true, id: 'a' },
      {
        success: false,
        code: 400,
        error: 'Field `title` has been declared in the schema, but is not found in the document.',
        id: 'b',
      },
      { success: true, id: 'c' },
    ])
    const exported = await send('GET', `${BOOKS}/export`)
    expect(exported.headers.get('content-type')).toBe('text/plain; charset=utf-8')
    expect(await exported.text()).toBe(
      jsonl([
        { id: 'a', title: 'A' },
        { id: 'c', title: 'C' },
      ]),
    )
    await call('DELETE', `${BOOKS}?truncate=true`)
    expect(await (await send('GET', `${BOOKS}/export`)).text()).toBe('')
  })

  it('takes gzip, and thousands of lines', async () => {
    const documents = Array.from({ length: 3_000 }, (_, index) => ({
      id: `${index}`,
      title: `Title ${index}`,
    }))
    const response = await send('POST', `${BOOKS}/import`, {
      body: gzipSync(jsonl(documents)),
    })
    const lines = (await response.text()).split('\n')
    expect(lines).toHaveLength(3_000)
    expect(new Set(lines)).toEqual(new Set(['{"success":true}']))
    const exported = await (await send('GET', `${BOOKS}/export`)).text()
    expect(exported.split('\n').map((line) => JSON.parse(line))).toEqual(documents)
    await call('DELETE', `${BOOKS}?truncate=true`)
  })

  it.each([
    ['books', 'action=x', 400, { message: 'Parameter `action` must be a create|update|upsert.' }],
    ['books', 'batch_size=0', 400, { message: 'Parameter `batch_size` must be a positive integer.' }],
    ['none', '', 404, noCollection('none')],
  ])('into %s with %s is refused', async (name, query, status, told) => {
    const path = `/collections/${name}/documents/import?${query}`
    expect(await call('POST', path, { body: '{"title":"x"}' })).toEqual([status, told])
  })

  it('does not export with a filter that is wrong', async () => {
    expect(await call('GET', `${BOOKS}/export?filter_by=nope:1`)).toEqual([
      400,
      { message: 'Could not find a filter field named `nope` in the schema.' },
    ])
  })
})
