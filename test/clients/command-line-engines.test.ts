/** `parley connect`, as a user runs it. Another collection of the same Parley plays the Typesense cluster. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createShows, KEY, query, request, unique, url } from './harness'
import { runParley, spawnParley } from './run-parley'

let folder = ''
let remote = ''
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'parley-engines-'))
  remote = await createShows()
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const parley = (args: string[], env?: Record<string, string>) => runParley(folder, args, env)
const typesense = ['--engine', 'typesense', '--node', url]

describe('parley connect', () => {
  test('connects a collection with the secret of the environment, and shows it nowhere', async () => {
    const name = unique('connected')
    const args = ['connect', name, ...typesense, '--collection', remote]
    const ran = await spawnParley(folder, args, { PARLEY_CLUSTER_SECRET: KEY })
    expect(ran).toMatchObject({ code: 0, out: expect.stringContaining('5 documents in typesense') })
    const found = await request(
      'GET',
      query(`/collections/${name}/documents/search`, { q: 'reef', query_by: 'title' }),
    )
    expect(found.body.found).toBe(1)

    const file = join(folder, 'secret')
    writeFileSync(file, `${KEY}\n`)
    const changed = await parley([...args, '--secret-file', file, '--timeout', '4000', '--json'])
    expect(changed.json).toMatchObject({ created: false, collection: { engine: { timeout_ms: 4_000 } } })
    expect(JSON.stringify([ran, changed])).not.toContain(`"${KEY}"`)
  })

  test('has the cluster make a collection that it does not have', async () => {
    const name = unique('begun')
    const schema = join(folder, 'schema.json')
    writeFileSync(schema, JSON.stringify({ fields: [{ name: 'title', type: 'string' }] }))
    const args = ['connect', name, ...typesense, '--collection', `${name}_there`, '--schema', schema]
    expect((await parley(args, { THEIR_KEY: KEY })).code).toBe(2)
    expect((await parley([...args, '--secret-env', 'THEIR_KEY'], { THEIR_KEY: KEY })).code).toBe(0)
    expect((await request('GET', `/collections/${name}_there`)).body.fields).toMatchObject([
      { name: 'title' },
    ])
  })

  test.each([
    ['a secret', typesense, 'PARLEY_CLUSTER_SECRET'],
    ['nodes', ['--engine', 'opensearch', '--open'], '--node'],
    ['the right name of the collection there', [...typesense, '--index', 'x'], '--collection'],
    ['a key for Typesense', [...typesense, '--open'], '--open'],
  ])('asks for %s', async (_, args, said) => {
    const ran = await parley(['connect', unique('refused'), ...args])
    expect(ran).toMatchObject({ code: 2, err: expect.stringContaining(said) })
  })

  test('leaves a collection alone that does not live in a cluster', async () => {
    const ran = await parley(['connect', remote, ...typesense], { PARLEY_CLUSTER_SECRET: KEY })
    expect(ran).toMatchObject({ code: 2, err: expect.stringContaining('parley move') })
  })
})
