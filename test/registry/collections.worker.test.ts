/** Names: made, found, raced for, aliased, dropped. */
import { runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, it, vi } from 'vitest'
import { unwrap } from '../../src/errors'
import {
  cloneCollection,
  createCollection,
  deleteAlias,
  dropCollection,
  findCollection,
  getAlias,
  listAliases,
  listCollections,
  putAlias,
} from '../../src/registry/collections'
import { collectionObject } from '../../src/search/collection/handle'
import { Collection } from '../../src/search/collection/object'
import { exportAll, importAll, newObject } from '../search/object'

const FIELDS = [{ name: 'title', type: 'string' }]

const refused = (status: number, message: string) => expect.objectContaining({ status, message })

const named = async (name: string) => collectionObject(env, (await findCollection(env, name)).objectId)

describe('the catalog', () => {
  it('makes, finds, lists and drops collections', async () => {
    await expect(findCollection(env, 'books')).rejects.toEqual(refused(404, 'Collection not found'))
    const summary = await createCollection(env, { name: 'books', fields: FIELDS })
    expect(Object.keys(summary)).toEqual([
      'name',
      'num_documents',
      'created_at',
      'enable_nested_fields',
      'default_sorting_field',
      'token_separators',
      'symbols_to_index',
      'synonym_sets',
      'curation_sets',
      'fields',
    ])
    expect(summary.fields).toEqual([
      {
        name: 'title',
        type: 'string',
        facet: false,
        optional: false,
        index: true,
        sort: false,
        infix: false,
        locale: '',
        stem: false,
        store: true,
        stem_dictionary: '',
        truncate_len: 100,
      },
    ])
    await expect(createCollection(env, { name: 'books', fields: FIELDS })).rejects.toEqual(
      refused(409, 'A collection with name `books` already exists.'),
    )
    await expect(createCollection(env, { name: 'books', fields: [] })).rejects.toMatchObject({ status: 400 })
    await importAll(await named('books'), [{ title: 'a' }])
    await createCollection(env, { name: 'films', fields: FIELDS })
    const listed = await listCollections(env, { limit: 0, offset: 0 })
    expect(listed.map(({ name }) => name).sort()).toEqual(['books', 'films'])
    expect(await listCollections(env, { limit: 1, offset: 1 })).toHaveLength(1)
    expect(await dropCollection(env, 'books')).toMatchObject({ name: 'books', num_documents: 1 })
    await expect(findCollection(env, 'books')).rejects.toEqual(refused(404, 'Collection not found'))
    await expect(dropCollection(env, 'books')).rejects.toEqual(
      refused(404, 'No collection with name `books` found.'),
    )
    await createCollection(env, { name: 'books', fields: FIELDS })
    expect(await exportAll(await named('books'))).toEqual([])
  })

  it('lets one of several win a name, and keeps nothing of the others', async () => {
    const before = (await env.DB.prepare('SELECT 1 FROM collections').all()).results.length
    const results = await Promise.allSettled(
      Array.from({ length: 5 }, () => createCollection(env, { name: 'wanted', fields: FIELDS })),
    )
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const result of results) {
      if (result.status === 'rejected') {
        expect(result.reason).toEqual(refused(409, 'A collection with name `wanted` already exists.'))
      }
    }
    expect((await env.DB.prepare('SELECT 1 FROM collections').all()).results.length).toBe(before + 1)
  })

  it('gives a name back whose collection was only half dropped', async () => {
    await createCollection(env, { name: 'half', fields: FIELDS })
    await (await named('half')).destroy()
    expect((await listCollections(env, { limit: 0, offset: 0 })).some(({ name }) => name === 'half')).toBe(
      false,
    )
    expect(await createCollection(env, { name: 'half', fields: FIELDS })).toMatchObject({ num_documents: 0 })
  })

  it('clones a schema, and documents when asked', async () => {
    await createCollection(env, {
      name: 'source',
      fields: [
        ...FIELDS,
        {
          name: 'e',
          type: 'float[]',
          embed: { from: ['title'], model_config: { model_name: 'ts/e5-small' } },
        },
      ],
      enable_nested_fields: true,
      token_separators: ['-'],
    })
    await importAll(await named('source'), [{ title: 'a' }, { id: 'x', title: 'b' }])
    expect(await cloneCollection(env, 'source', { name: 'bare', fields: 'ignored' }, false)).toMatchObject({
      name: 'bare',
      num_documents: 0,
      enable_nested_fields: true,
      token_separators: ['-'],
      fields: [{ name: 'title' }, { name: 'e', num_dim: 384 }],
    })
    expect(await cloneCollection(env, 'source', { name: 'full' }, true)).toMatchObject({ num_documents: 2 })
    expect(await exportAll(await named('full'))).toEqual(await exportAll(await named('source')))
    await expect(cloneCollection(env, 'nowhere', { name: 'y' }, false)).rejects.toEqual(
      refused(400, 'Collection with name `nowhere` not found.'),
    )
    await expect(cloneCollection(env, 'source', {}, false)).rejects.toMatchObject({ status: 400 })
  })

  it('clones what is indexed and not stored', async () => {
    const fields = [...FIELDS, { name: 'words', type: 'string', store: false }]
    await createCollection(env, { name: 'secretive', fields })
    await importAll(await named('secretive'), [{ id: '1', title: 'a', words: 'whispered' }])
    expect(await cloneCollection(env, 'secretive', { name: 'echo' }, true)).toMatchObject({
      num_documents: 1,
    })
    const echo = await named('echo')
    const found = unwrap(await echo.search({ q: 'whispered', query_by: 'words' }))
    expect(found.hits!.map(({ document }) => document)).toEqual([{ id: '1', title: 'a' }])
    expect(await exportAll(echo)).toEqual([{ id: '1', title: 'a' }])
  })

  it('leaves no clone that lacks documents', async () => {
    await createCollection(env, { name: 'whole', fields: FIELDS })
    await importAll(await named('whole'), [{ id: '1', title: 'a' }])
    const results = JSON.stringify({ success: false, error: 'No room.', code: 400 })
    const refusing = vi
      .spyOn(Collection.prototype, 'importLines')
      .mockResolvedValue({ ok: true, value: { results, busy: false } })
    await expect(cloneCollection(env, 'whole', { name: 'part' }, true)).rejects.toEqual(
      refused(400, 'The documents of `whole` could not be copied: No room.'),
    )
    refusing.mockRestore()
    await expect(findCollection(env, 'part')).rejects.toMatchObject({ status: 404 })
    expect(await cloneCollection(env, 'whole', { name: 'part' }, true)).toMatchObject({ num_documents: 1 })
  })

  it('follows aliases, of any spelling', async () => {
    const alias = 'abc123 /:=-_~&?#'
    await createCollection(env, { name: 'one', fields: FIELDS })
    await createCollection(env, { name: 'two', fields: FIELDS })
    expect(await putAlias(env, alias, { collection_name: 'one' })).toEqual({
      collection_name: 'one',
      name: alias,
    })
    expect((await findCollection(env, alias)).name).toBe('one')
    await putAlias(env, alias, { collection_name: 'two' })
    expect((await findCollection(env, alias)).name).toBe('two')
    expect(await getAlias(env, alias)).toEqual({ collection_name: 'two', name: alias })
    expect(await listAliases(env)).toEqual([{ collection_name: 'two', name: alias }])
    await expect(putAlias(env, 'one', { collection_name: 'two' })).rejects.toMatchObject({ status: 500 })
    await expect(putAlias(env, 'x', {})).rejects.toEqual(
      refused(400, 'Parameter `collection_name` is required.'),
    )
    expect(await deleteAlias(env, alias)).toEqual({ collection_name: 'two', name: alias })
    await expect(getAlias(env, alias)).rejects.toEqual(refused(404, 'Collection not found'))
    await expect(deleteAlias(env, alias)).rejects.toMatchObject({ status: 404 })
    await expect(findCollection(env, alias)).rejects.toMatchObject({ status: 404 })
  })
})

describe('objects that nobody named', () => {
  const longAgo = 1_000_000

  it('remove themselves in time', async () => {
    const { object, objectId } = newObject()
    unwrap(await object.create({ name: 'orphan', fields: FIELDS }, longAgo))
    const stub = env.COLLECTION.get(env.COLLECTION.idFromName(objectId))
    await runDurableObjectAlarm(stub)
    expect(await object.summary()).toMatchObject({ error: { status: 404 } })
    await runInDurableObject(stub, (_, state) => {
      expect(
        state.storage.sql.exec(`SELECT name FROM sqlite_master WHERE name = 'documents'`).toArray(),
      ).toEqual([])
    })
  })

  it('are not taken for it when they hold documents: it is D1 that has lost them', async () => {
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {})
    const { object, objectId } = newObject()
    unwrap(await object.create({ name: 'forgotten', fields: FIELDS }, longAgo))
    await importAll(object, [{ id: 'a', title: 'kept' }])
    await runDurableObjectAlarm(env.COLLECTION.get(env.COLLECTION.idFromName(objectId)))
    expect((await exportAll(object)).map(({ id }) => id)).toEqual(['a'])
    const lines = logged.mock.calls.map(([line]) => JSON.parse(line))
    const reason = expect.stringContaining('holds documents')
    expect(lines).toEqual([expect.objectContaining({ type: 'collection', collection: objectId, reason })])
    logged.mockRestore()
  })

  it('are told from those that somebody did', async () => {
    await createCollection(env, { name: 'kept', fields: FIELDS })
    const { objectId } = await findCollection(env, 'kept')
    const stub = env.COLLECTION.get(env.COLLECTION.idFromName(objectId))
    await runInDurableObject(stub, (_, state) => {
      state.storage.sql.exec(`UPDATE meta SET value = ? WHERE key = 'created_at'`, String(longAgo))
    })
    await runDurableObjectAlarm(stub)
    expect(await (await named('kept')).summary()).toMatchObject({ ok: true })
  })
})
