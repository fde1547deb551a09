/** `parley move`, as an operator runs it. Another collection of the same Parley plays the Typesense cluster. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { serve } from '../serve'
import {
  askBySearch,
  client,
  createHistory,
  createModel,
  createShows,
  KEY,
  query,
  request,
  unique,
  url,
} from './harness'
import { spawnParley } from './run-parley'

// Each run of the command line is a process of its own, and waits for other isolates to hear of the switch.
vi.setConfig({ testTimeout: 120_000 })

let folder = ''
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-move-'))
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const move = (name: string, to: string[], env: Record<string, string> = {}) =>
  spawnParley(folder, ['move', name, '--to', ...to], { PARLEY_CLUSTER_SECRET: KEY, ...env })

/** The documents as each engine exports them, by id. */
async function documentsOf(collection: string): Promise<Record<string, unknown>[]> {
  const { text } = await request('GET', `/collections/${collection}/documents/export`)
  const documents = text.split('\n').map((line) => JSON.parse(line) as { id: string })
  return documents.sort((a, b) => (a.id < b.id ? -1 : 1))
}

const engineOf = async (name: string) => (await request('GET', `/collections/${name}`)).body.engine?.type

const typesense = (there: string) => ['typesense', '--node', url, '--collection', there]

describe.concurrent('parley move', () => {
  test('takes a collection into a cluster and back, and its conversations go on', async () => {
    const name = await createShows()
    const there = unique('there')
    const before = await documentsOf(name)
    const model = await createModel({
      model_name: 'local/extractive',
      api_key: undefined,
      history_collection: await createHistory(),
    })
    const fields = { query_by: 'title,overview' }
    const first = await askBySearch(model, name, 'Which series is about a judge and her clerks?', fields)
    const { conversation_id: id } = first.body.conversation

    const moved = await move(name, typesense(there))
    expect([moved.code, moved.err]).toEqual([0, expect.stringContaining('sent 5')])
    expect(await engineOf(name)).toBe('typesense')
    expect(await documentsOf(name)).toEqual(before)
    expect((await request('GET', `/collections/${there}`)).body.num_documents).toBe(5)
    expect((await request('GET', `/collections/${name}-move`)).body).toMatchObject({
      name: `${name}-move`,
      num_documents: 5,
    })
    const second = await askBySearch(model, name, 'What do they settle?', { ...fields, conversation_id: id })
    expect(second.body.conversation).toMatchObject({ conversation_id: id, answer: expect.any(String) })
    const trace = await request('GET', `/conversations/${id}/trace`)
    expect(JSON.stringify(trace.body)).toContain('"engine":"typesense"')

    expect((await request('DELETE', `/collections/${name}-move`)).status).toBe(200)
    const back = await move(name, ['object', '--drop-old'])
    expect(back.code).toBe(0)
    expect(await engineOf(name)).toBeUndefined()
    expect(await documentsOf(name)).toEqual(before)
    expect((await request('GET', `/collections/${name}-move`)).status).toBe(404)
    expect((await request('GET', `/collections/${there}`)).body.num_documents).toBe(5)
    const found = await request(
      'GET',
      query(`/collections/${name}/documents/search`, { q: 'reef', query_by: 'title' }),
    )
    expect(found.body).toMatchObject({ found: 1, request_params: { collection_name: name } })
  })

  test('goes on after a break, and takes what was written meanwhile', async () => {
    const name = unique('broken')
    await client()
      .collections()
      .create({ name, fields: [{ name: 'title', type: 'string' }] })
    const lines = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, at) =>
        JSON.stringify({ id: `d${from + at}`, title: `Title ${from + at}` }),
      )
    const write = (text: string[]) =>
      request('POST', `/collections/${name}/documents/import?action=upsert`, text.join('\n'))
    await write(lines(0, 1_200))
    // From the mover's point of view the server dies at its second batch. While the first one is under way, others write.
    let batches = 0
    const proxy = await serve(async (incoming, outgoing) => {
      const isBatch = incoming.url?.includes('/documents/import') ?? false
      if (isBatch && ++batches >= 2) return void incoming.socket.destroy()
      const body: Buffer[] = []
      for await (const piece of incoming) body.push(piece)
      if (isBatch) {
        await write([JSON.stringify({ id: 'd0', title: 'Changed' }), ...lines(1_200, 1_210)])
        await request('DELETE', `/collections/${name}/documents/d1`)
      }
      const answer = await fetch(url + incoming.url, {
        method: incoming.method ?? 'GET',
        headers: incoming.headers as Record<string, string>,
        ...(body.length > 0 && { body: Buffer.concat(body) }),
      })
      outgoing.writeHead(answer.status, { 'content-type': 'application/json' })
      outgoing.end(await answer.text())
    })
    try {
      const broken = await move(name, typesense(`${name}-there`), { PARLEY_URL: proxy.url })
      expect(broken.code).toBe(3)
      expect(await engineOf(name)).toBeUndefined()
      batches = Number.NEGATIVE_INFINITY
      const whole = await move(name, typesense(`${name}-there`), { PARLEY_URL: proxy.url })
      expect([whole.code, whole.err]).toEqual([0, expect.stringContaining('Going on: 500 documents')])
    } finally {
      await proxy.stop()
    }
    expect(await engineOf(name)).toBe('typesense')
    const documents = await documentsOf(name)
    expect(documents).toHaveLength(1_209)
    expect(documents[0]).toEqual({ id: 'd0', title: 'Changed' })
    expect(documents[1]).toMatchObject({ id: 'd10' })
    expect(existsSync(join(folder, `${name}-move.jsonl`))).toBe(false)
  })

  test('switches nothing while a document is refused', async () => {
    const name = await createShows()
    const schema = join(folder, 'numbers.json')
    writeFileSync(schema, JSON.stringify({ fields: [{ name: 'title', type: 'int32' }] }))
    const ran = await move(name, [...typesense(unique('refusing')), '--schema', schema])
    expect(ran).toMatchObject({ code: 6, err: expect.stringContaining('5 documents were refused') })
    expect(await engineOf(name)).toBeUndefined()
  })

  test('writes into no collection of a cluster that has documents, and into no AI Search', async () => {
    const name = await createShows()
    const ran = await move(name, typesense(await createShows()))
    expect(ran).toMatchObject({ code: 2, err: expect.stringContaining('has documents') })
    expect(await engineOf(name)).toBeUndefined()
    expect((await request('GET', `/collections/${name}-move`)).status).toBe(404)
    const nowhere = await move(name, ['ai-search'])
    expect(nowhere).toMatchObject({ code: 2, err: expect.stringContaining('AI Search takes documents') })
  })
})

describe('PATCH with switch_with', () => {
  const change = (name: string, other: unknown, key = KEY) =>
    request('PATCH', `/collections/${name}`, { switch_with: other }, key)

  test('has two collections change places, if their counts are what the caller says', async () => {
    const [one, other] = [await createShows(), unique('other')]
    await client()
      .collections()
      .create({ name: other, fields: [{ name: 'title', type: 'string' }] })
    expect(await change(one, { collection: other, documents: 5 })).toMatchObject({
      status: 409,
      body: { message: expect.stringContaining(`\`${other}\` has 0`) },
    })
    expect((await change(one, { collection: other })).body).toMatchObject({ name: one, num_documents: 0 })
    expect((await request('GET', `/collections/${other}`)).body).toMatchObject({
      name: other,
      num_documents: 5,
    })
    expect((await change(one, { collection: other })).body).toMatchObject({ name: one, num_documents: 5 })
  })

  test.each([
    ['no collection', {}, 400, '`collection`'],
    ['another property', { collection: 'x', force: true }, 400, '`collection`'],
    ['a collection that there is not', { collection: 'nowhere-at-all' }, 404, 'nowhere-at-all'],
  ])('refuses %s', async (_, other, status, said) => {
    const reply = await change(await createShows(), other)
    expect(reply).toMatchObject({ status, body: { message: expect.stringContaining(said) } })
  })

  test('refuses a history, and every key but the admin key', async () => {
    const [shows, history] = [await createShows(), await createHistory()]
    expect(await change(shows, { collection: history })).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('messages') },
    })
    const { value } = await client()
      .keys()
      .create({ description: 'all', actions: ['*'], collections: ['*'] })
    expect((await change(shows, { collection: await createShows() }, value!)).status).toBe(401)
    expect((await request('GET', `/collections/${shows}`)).body.num_documents).toBe(5)
  })
})
