/** Documents, collections and aliases: rows 63 to 65, 71 and 72. */
import { expect, test } from 'vitest'
import { client, createShows, request, SHOWS, unique } from './harness'

const createPlain = async (): Promise<string> => {
  const name = unique('plain')
  await client()
    .collections()
    .create({
      name,
      fields: [
        { name: 'title', type: 'string' },
        { name: 'points', type: 'int32', optional: true },
      ],
    })
  return name
}

test('63: good and bad lines of an import', async () => {
  const name = await createPlain()
  const lines = ['{"id":"1","title":"one"}', '{"id":"2","title":5}', '', '{"id":"3","title":"three"}']
  const reply = await request('POST', `/collections/${name}/documents/import`, lines.join('\n'))
  expect(reply.status).toBe(200)
  expect(reply.contentType).toMatch(/^text\/plain/)
  const results = reply.text.split('\n').map((line) => JSON.parse(line))
  expect(results).toEqual([
    { success: true },
    expect.objectContaining({ success: false, error: expect.any(String), code: 400 }),
    { success: true },
  ])
})

test('63: the client counts them', async () => {
  const name = await createPlain()
  const documents = [{ id: '1', title: 'one' }, { id: '2' }, { id: '3', title: 'three' }]
  await expect(
    client()
      .collections(name)
      .documents()
      .import(documents as never),
  ).rejects.toMatchObject({
    name: 'ImportError',
    message: expect.stringMatching(/^2 documents imported successfully, 1 documents failed during import/),
    importResults: [{ success: true }, { success: false }, { success: true }],
  })
})

test('64: an export is a line a document', async () => {
  const name = await createPlain()
  const reply = (path = '') => request('GET', `/collections/${name}/documents/export${path}`)
  expect((await reply()).text).toBe('')
  await client()
    .collections(name)
    .documents()
    .import([
      { id: 'a', title: 'one', points: 1 },
      { id: 'b', title: 'two', points: 2 },
    ])
  const all = await reply()
  expect(all.contentType).toMatch(/^text\/plain/)
  expect(all.text).not.toMatch(/\n$/)
  expect(all.text.split('\n').map((line) => JSON.parse(line).id)).toEqual(['a', 'b'])
  expect((await reply('?filter_by=points:>1&include_fields=id')).text).toBe('{"id":"b"}')
})

test('whole numbers of 64 bits keep their digits', async () => {
  const name = unique('exact')
  const fields = [{ name: 'n', type: 'int64', facet: true }]
  await client()
    .collections()
    .create({ name, fields, default_sorting_field: 'n' } as never)
  const documents = `/collections/${name}/documents`
  const text = async (method: string, path: string, body?: string) => (await request(method, path, body)).text
  const lines = [
    '{"id":"a","n":1712345678901234567,"outside":{"ids":[123456789012345678901234567890]}}',
    '{"id":"b","n":1712345678901234568,"outside":-9007199254740993}',
    '{"id":"c","n":-9223372036854775808}',
  ]
  expect(await text('POST', `${documents}/import`, lines.join('\n'))).not.toContain('"success":false')
  expect(await text('GET', `${documents}/export`)).toBe(lines.join('\n'))
  expect(await text('GET', `${documents}/b`)).toBe(lines[1])
  expect(await text('GET', `${documents}/export?filter_by=n:=1712345678901234567`)).toBe(lines[0])
  const found = await text('GET', `${documents}/search?q=*&facet_by=n&filter_by=n:>1712345678901234566`)
  expect(found.match(/"n":\d+/g)).toEqual(['"n":1712345678901234568', '"n":1712345678901234567'])
  expect(found).toContain('"max":1712345678901234568,"min":1712345678901234567,"sum":3424691357802469135')
  expect(await text('PATCH', `${documents}/a`, '{"n":9223372036854775807}')).toBe(
    lines[0]!.replace('1712345678901234567', '9223372036854775807'),
  )
  expect(await text('POST', documents, '{"n":9223372036854775808}')).toBe(
    '{"message":"Field `n` must be an int64."}',
  )
})

test('65: an update merges', async () => {
  const name = await createPlain()
  await client().collections(name).documents().create({ id: '1', title: 'one', points: 1 })
  const reply = await request('POST', `/collections/${name}/documents?action=update`, { id: '1', points: 5 })
  expect([reply.status, reply.body]).toEqual([201, { id: '1', title: 'one', points: 5 }])
  const patched = await client().collections(name).documents('1').update({ points: 6 })
  expect(patched).toEqual({ id: '1', title: 'one', points: 6 })
})

test('2.2: what cannot be written or found', async () => {
  const name = await createPlain()
  const documents = `/collections/${name}/documents`
  await request('POST', documents, { id: '1', title: 'one' })
  const say = async (method: string, path: string, body?: unknown): Promise<[number, string]> => {
    const reply = await request(method, path, body)
    return [reply.status, reply.body.message]
  }
  expect(await say('POST', documents, { id: '1', title: 'one' })).toEqual([
    409,
    'A document with id 1 already exists.',
  ])
  expect(await say('GET', `${documents}/x`)).toEqual([404, 'Could not find a document with id: x'])
  expect(await say('PATCH', `${documents}/x`, { title: 'y' })).toEqual([
    404,
    'Could not find a document with id: x',
  ])
  expect(await say('POST', documents, {})).toEqual([
    400,
    'Field `title` has been declared in the schema, but is not found in the document.',
  ])
  expect(await say('POST', '/collections/nowhere/documents', {})).toEqual([404, 'Collection not found'])
  expect(await say('DELETE', documents)).toEqual([400, 'Parameter `filter_by` must be provided.'])
})

test('2.2: delete and update by filter', async () => {
  const name = await createShows()
  const documents = client().collections(name).documents()
  expect(await documents.update({ points: 0 } as object, { filter_by: 'points:<70' })).toEqual({
    num_updated: 2,
  })
  expect(await documents.delete({ filter_by: 'points:=0', return_id: true })).toMatchObject({
    num_deleted: 2,
  })
  expect((await documents.search({ q: '*' }, {})).found).toBe(3)
  expect(await documents.delete({ truncate: true })).toEqual({ num_deleted: 3 })
})

test('2.1: ids of every kind come back through the client', async () => {
  const name = await createPlain()
  const ids = ['a/b#c', 'x=y&z', '<p>', 'naïve (1), 日本']
  await client()
    .collections(name)
    .documents()
    .import(ids.map((id) => ({ id, title: id })))
  for (const id of ids) {
    expect(await client().collections(name).documents(id).retrieve()).toEqual({ id, title: id })
  }
})

test('2.1: vectors are stored and shown unless left out', async () => {
  const name = await createShows()
  const whole = (await client().collections(name).documents('reef').retrieve()) as { embedding: number[] }
  expect(whole.embedding).toHaveLength(384)
  const bare = await request('GET', `/collections/${name}/documents/reef?exclude_fields=embedding`)
  expect(bare.body).toEqual(SHOWS.find(({ id }) => id === 'reef'))
})

test('71: a field is added', async () => {
  const name = await createShows()
  const change = { fields: [{ name: 'year', type: 'int32', optional: true }] }
  const echo = await request('PATCH', `/collections/${name}`, change)
  expect(echo.status).toBe(200)
  expect(echo.body.fields).toHaveLength(1)
  // As Typesense 30 does, replies show where words are cut, also where nobody said so.
  expect(echo.body.fields[0]).toEqual({ ...change.fields[0], truncate_len: 100 })
  const { fields } = await client().collections(name).retrieve()
  expect(fields?.find((field) => field.name === 'year')).toMatchObject({
    type: 'int32',
    optional: true,
    sort: true,
    truncate_len: 100,
  })
  const cut = { fields: [{ name: 'tag', type: 'string', optional: true, truncate_len: 4 }] }
  expect((await request('PATCH', `/collections/${name}`, cut)).body).toEqual(cut)
  const drop = { fields: [{ name: 'tag', drop: true }] }
  expect((await request('PATCH', `/collections/${name}`, drop)).body).toEqual(drop)
})

test('71b: slashes at the end and repeated ones change nothing, as the Java client sends them', async () => {
  const name = await createShows()
  const documents = `/collections/${name}/documents`
  expect((await request('POST', `${documents}//`, { ...SHOWS[0], id: 'slashes' })).status).toBe(201)
  expect((await request('GET', `/${documents}/slashes/`)).body).toMatchObject({ id: 'slashes' })
  const deleted = await request('DELETE', `${documents}//?filter_by=id:slashes`)
  expect(deleted.body).toEqual({ num_deleted: 1 })
})

test('72: an alias of any name', async () => {
  const name = await createShows()
  const alias = `${unique('abc123')} /:=-_~&?#`
  expect(await client().aliases().upsert(alias, { collection_name: name })).toEqual({
    collection_name: name,
    name: alias,
  })
  expect(await client().aliases(alias).retrieve()).toEqual({ collection_name: name, name: alias })
  expect((await client().collections(alias).documents().search({ q: '*' }, {})).found).toBe(5)
  expect((await client().aliases().retrieve()).aliases).toContainEqual({ collection_name: name, name: alias })
  expect(await request('PUT', `/aliases/${encodeURIComponent(alias)}`, {})).toMatchObject({
    status: 400,
    body: { message: 'Parameter `collection_name` is required.' },
  })
  expect(await request('PUT', `/aliases/${name}`, { collection_name: name })).toMatchObject({
    status: 500,
    body: { message: `Name \`${name}\` conflicts with an existing collection name.` },
  })
  expect(await client().aliases(alias).delete()).toEqual({ collection_name: name, name: alias })
  await expect(client().aliases(alias).retrieve()).rejects.toMatchObject({ name: 'ObjectNotFound' })
})

test('2.1: collections are made once, listed and deleted', async () => {
  const name = await createPlain()
  const again = client()
    .collections()
    .create({ name, fields: [{ name: 'title', type: 'string' }] })
  await expect(again).rejects.toMatchObject({ name: 'ObjectAlreadyExists' })
  expect((await client().collections().retrieve()).map((collection) => collection.name)).toContain(name)
  expect(await client().collections(name).delete()).toMatchObject({ name, num_documents: 0 })
  await expect(client().collections(name).retrieve()).rejects.toMatchObject({ name: 'ObjectNotFound' })
  expect((await createAgain(name)).num_documents).toBe(0)
})

const createAgain = (name: string) =>
  client()
    .collections()
    .create({ name, fields: [{ name: 'title', type: 'string' }] })
