/** Collections that live in a Typesense cluster. Another collection of the same Parley plays the cluster: it speaks the wire. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import {
  client,
  createHistory,
  createModel,
  createShows,
  disconnect,
  KEY,
  query,
  type Reply,
  request,
  SHOWS,
  searchClient,
  unique,
  url,
} from './harness'
import { Relay } from './relay'

/** the collection in the cluster */
let remote: string
const relays: Relay[] = []
const connected: string[] = []

beforeAll(async () => {
  remote = await createShows()
})

afterAll(() => disconnect(connected))

afterEach(async () => {
  for (const relay of relays.splice(0)) await relay.close()
})

async function relay(): Promise<Relay> {
  const opened = await new Relay(url).open()
  relays.push(opened)
  return opened
}

const engine = (nodes: string[], more: Record<string, unknown> = {}) => ({
  type: 'typesense',
  nodes,
  credentials: { api_key: KEY },
  collection: remote,
  ...more,
})

/** Connects a collection. @returns its name here */
async function connect(nodes = [url], more: Record<string, unknown> = {}): Promise<string> {
  const name = unique('connected')
  connected.push(name)
  const reply = await request('POST', '/collections', { name, engine: engine(nodes, more) })
  if (reply.status !== 201) throw new Error(reply.text)
  return name
}

const search = (collection: string, parameters: Record<string, string | number>, key = KEY): Promise<Reply> =>
  request('GET', query(`/collections/${collection}/documents/search`, parameters), undefined, key)

const found = (reply: Reply): string[] =>
  reply.body.hits.map(({ document }: { document: { id: string } }) => document.id)

describe('a collection of a cluster', () => {
  test('has the schema of the cluster, and shows no credentials', async () => {
    const name = await connect()
    const own = await client().collections(remote).retrieve()
    const { engine: shown, ...rest } = (await request('GET', `/collections/${name}`)).body
    expect(rest).toEqual({ ...own, name })
    expect(shown).toMatchObject({ type: 'typesense', nodes: [url], collection: remote })
    const listed = (await request('GET', '/collections')).body
    expect(listed.find((one: { name: string }) => one.name === name).fields).toEqual(own.fields)
    expect(JSON.stringify([shown, listed])).not.toContain(`"${KEY}"`)
  })

  test('is searched as it is there, with the official client', async () => {
    const name = await connect()
    const parameters = {
      q: 'action',
      query_by: 'title,overview',
      sort_by: 'points:asc',
      filter_by: 'points:<100',
      highlight_start_tag: '<b>',
      highlight_end_tag: '</b>',
      exclude_fields: 'embedding',
    }
    const without = ({ search_time_ms: _, request_params: __, ...rest }: object & Record<string, unknown>) =>
      rest
    const there = await client().collections(remote).documents().search(parameters, {})
    const here = await searchClient().collections(name).documents().search(parameters, {})
    expect(without(here as never)).toEqual(without(there as never))
    expect(here.request_params?.collection_name).toBe(name)
    const { results } = (
      await request('POST', '/multi_search', {
        searches: [
          { collection: name, ...parameters },
          { collection: name, q: 'reef', query_by: 'nothing' },
        ],
      })
    ).body
    expect(without(results[0])).toEqual(without(there as never))
    expect(results[1]).toMatchObject({ code: 404, error: expect.stringContaining('nothing') })
  })

  test('takes, changes, gives and removes documents', async () => {
    const name = await connect()
    const documents = client().collections(name).documents()
    const show = { id: 'via', title: 'Through', overview: 'Written through another server.', points: 1 }
    expect(await documents.create(show)).toMatchObject(show)
    await expect(documents.create(show)).rejects.toMatchObject({ httpStatus: 409 })
    expect(await client().collections(remote).documents('via').retrieve()).toMatchObject(show)
    expect(await client().collections(name).documents('via').update({ points: 2 })).toMatchObject({
      points: 2,
    })
    const lines = await documents.import(
      [show, { ...show, id: 'bad', points: 'many' }] as never,
      {
        action: 'upsert',
        throwOnFail: false,
      } as never,
    )
    expect(lines).toMatchObject([{ success: true }, { success: false }])
    const exported = (await documents.export({ filter_by: 'points:<50' })).split('\n')
    expect(exported.map((line) => JSON.parse(line).id)).toEqual(['via'])
    expect(await documents.update({ points: 3 }, { filter_by: 'id:via' })).toEqual({ num_updated: 1 })
    expect(await documents.delete({ filter_by: 'points:=3' })).toMatchObject({ num_deleted: 1 })
    await expect(client().collections(name).documents('via').retrieve()).rejects.toMatchObject({
      httpStatus: 404,
    })
  })

  test('answers questions in a conversation, with a follow-up', async () => {
    const name = await connect()
    const model = await createModel({
      model_name: 'local/extractive',
      api_key: undefined,
      history_collection: await createHistory(),
    })
    const asked = {
      q: 'Which series is about a judge and her clerks?',
      query_by: 'title,overview',
      exclude_fields: 'embedding',
      conversation: 'true',
      conversation_model_id: model,
    }
    const first = await search(name, asked)
    expect(first.status).toBe(200)
    expect(first.body.conversation.answer).toContain('judge')
    const { conversation_id: id } = first.body.conversation
    const second = await search(name, { ...asked, q: 'What do they settle?', conversation_id: id })
    expect(second.body.conversation.conversation_id).toBe(id)
    const trace = await request('GET', `/conversations/${id}/trace`)
    expect(JSON.stringify(trace.body)).toContain('"engine":"typesense"')
    expect(JSON.stringify(trace.body)).not.toContain(`"${KEY}"`)
  })

  test('is created in the cluster if that does not have it, and outlives its name here', async () => {
    const [name, there] = [unique('begun'), unique('begun_there')]
    const fields = [{ name: 'title', type: 'string' }]
    const body = { name, fields, engine: engine([url], { collection: there }) }
    expect((await request('POST', '/collections', body)).status).toBe(201)
    await client()
      .collections(name)
      .documents()
      .create({ id: 'one', title: 'One' } as never)
    expect((await request('POST', '/collections', body)).status).toBe(409)
    expect((await request('DELETE', `/collections/${name}`)).status).toBe(200)
    expect((await request('GET', `/collections/${name}`)).status).toBe(404)
    expect((await client().collections(there).retrieve()).num_documents).toBe(1)
  })

  test('takes new nodes and credentials, and only whole', async () => {
    const name = await connect()
    const change = (body: object) => request('PATCH', `/collections/${name}`, body)
    const other = await relay()
    expect((await change({ engine: engine([other.url]) })).status).toBe(200)
    expect((await search(name, { q: 'reef', query_by: 'title' })).status).toBe(200)
    expect(other.asked).toContain('POST /multi_search')
    const { credentials: _, ...without } = engine([url])
    expect(await change({ engine: without })).toMatchObject({
      status: 400,
      body: { message: expect.stringContaining('engine.credentials') },
    })
    const wrong = engine([url], { credentials: { api_key: 'wrong' } })
    const refused = { status: 400, body: { message: expect.stringContaining('refuses the credentials') } }
    expect(await change({ engine: wrong })).toMatchObject(refused)
    expect(await request('POST', '/collections', { name: unique('wrong'), engine: wrong })).toMatchObject(
      refused,
    )
    expect((await search(name, { q: 'reef', query_by: 'title' })).status).toBe(200)
  })
})

describe('what is refused', () => {
  test.each([
    ['an unknown engine', { type: 'solr' }, 'engine.type'],
    ['no nodes', { nodes: [] }, 'engine.nodes'],
    ['an unknown property', { password: 'x' }, 'engine.password'],
    ['a private address', { nodes: ['http://10.0.0.1:8108'] }, 'ALLOWED_HOSTS'],
    ['the metadata of a cloud', { nodes: ['http://169.254.169.254'] }, 'ALLOWED_HOSTS'],
    ['a password in the address', { nodes: ['https://a:b@example.com'] }, 'password'],
    ['a file', { nodes: ['file:///etc/passwd'] }, 'complete'],
    ['a key that no header can hold', { credentials: { api_key: 'a\nb' } }, 'engine.credentials'],
    ['a key beyond ASCII', { credentials: { api_key: 'schlüssel' } }, 'engine.credentials'],
    ['a step up as the name of a collection', { collection: '..' }, 'address'],
    ['a query', { nodes: [`${url}/?a=b`] }, 'query'],
  ])('%s', async (_, change, said) => {
    const reply = await request('POST', '/collections', {
      name: unique('refused'),
      engine: { ...engine([url]), ...change },
    })
    expect(reply.status).toBe(400)
    expect(reply.body.message).toContain(said)
  })

  test('joins, what only an object has, and a collection that the cluster does not have', async () => {
    const name = await connect()
    const join = await search(name, { q: '*', filter_by: '$others(id:*)' })
    expect(join).toMatchObject({ status: 400, body: { message: expect.stringContaining('Joins') } })
    const rule = { id: 'a', root: 'x', synonyms: ['y'] }
    const synonyms = await request('PUT', `/collections/${name}/synonyms/a`, rule)
    expect(synonyms).toMatchObject({ status: 400, body: { message: expect.stringContaining('cluster') } })
    const documents = await request('GET', `/operations/backup/documents/${name}`)
    expect(documents).toMatchObject({ status: 400, body: { message: expect.stringContaining('cluster') } })
    const missing = { name: unique('missing'), engine: engine([url], { collection: 'nowhere' }) }
    const reply = await request('POST', '/collections', missing)
    expect([reply.status, reply.body.message]).toEqual([404, expect.stringContaining('`fields`')])
  })
})

describe('a key with a filter', () => {
  async function scoped(name: string, embedded: object): Promise<string> {
    const { value } = await client()
      .keys()
      .create({ description: 'a page', actions: ['documents:search'], collections: [name] } as never)
    return client().keys().generateScopedSearchKey(value!, embedded)
  }

  test.each([
    ['everything', { q: '*' }],
    ['an or', { q: '*', filter_by: 'points:>0 || points:<1000' }],
    ['a pin', { q: '*', pinned_hits: 'reef:1' }],
    ['a filter that closes the bracket', { q: '*', filter_by: 'points:>0) || (points:>0' }],
    ['an open quote', { q: '*', filter_by: 'title:=`a' }],
  ])('shows nothing else to %s', async (_, parameters) => {
    const name = await connect()
    const key = await scoped(name, { filter_by: 'points:>75' })
    const reply = await search(name, { query_by: 'title', ...parameters }, key)
    if (reply.status === 200) expect(found(reply).sort()).toEqual(['quest', 'salvage'])
    else expect(reply.status).toBe(400)
  })

  test('holds when a quoted part of a value has the signs of another clause', async () => {
    const name = await connect()
    const key = await scoped(name, { filter_by: 'points:>75' })
    const filter_by = 'title:a`) || (points:>0) || (points:>0`'
    expect(found(await search(name, { q: '*', query_by: 'title', filter_by }, key))).toEqual([])
  })

  test('cannot search by a hidden document, and shows no hidden field', async () => {
    const name = await connect()
    const filtered = await scoped(name, { filter_by: 'points:>75' })
    const near = await search(name, { q: '*', vector_query: 'embedding:([], id: reef)' }, filtered)
    expect(near.status).toBe(400)
    const hiding = await scoped(name, { exclude_fields: 'overview,embedding' })
    const reply = await search(
      name,
      { q: 'reef', query_by: 'title', include_fields: 'overview,title' },
      hiding,
    )
    expect(reply.body.hits[0].document).toEqual({ title: 'Reef' })
  })
})

describe('a cluster that fails', () => {
  test('is asked at another node while one is cut off', async () => {
    const [dead, alive] = [await relay(), await relay()]
    const name = await connect([dead.url, alive.url])
    dead.fault = 'cut'
    for (let round = 0; round < 6; round++) {
      const reply = await search(name, { q: 'reef', query_by: 'title' })
      expect(found(reply)).toEqual(['reef'])
    }
    // After its first failure it is left alone.
    const tries = dead.asked.filter((path) => path.includes('multi_search'))
    expect(tries.length).toBeLessThanOrEqual(2)
  })

  test('is told as such, with the time after which to try again', async () => {
    const only = await relay()
    const name = await connect([only.url])
    only.fault = 'cut'
    const response = await fetch(
      `${url}${query(`/collections/${name}/documents/search`, { q: 'reef', query_by: 'title' })}`,
      { headers: { 'X-TYPESENSE-API-KEY': KEY } },
    )
    expect(response.status).toBe(503)
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0)
    const { message } = (await response.json()) as { message: string }
    expect(message).toContain('The Typesense cluster')
    const before = only.asked.length
    expect((await search(name, { q: 'reef', query_by: 'title' })).status).toBe(503)
    expect(only.asked.length).toBe(before)
  })

  test('that stalls is given up in time, and one slow search cuts nobody off', async () => {
    const only = await relay()
    const name = await connect([only.url], { timeout_ms: 300 })
    only.fault = 'stall'
    const late = await search(name, { q: 'reef', query_by: 'title' })
    expect(late).toMatchObject({ status: 503, body: { message: expect.stringContaining('300 ms') } })
    only.fault = undefined
    expect(found(await search(name, { q: 'reef', query_by: 'title' }))).toEqual(['reef'])
  })

  test.each([
    ['a short time limit', 'stall', { timeout_ms: 50 }],
    ['searches that make the node fail', 500, {}],
  ] as const)('%s of one collection cuts no other off', async (_, fault, more) => {
    const only = await relay()
    const [one, other] = [await connect([only.url], more), await connect([only.url])]
    only.fault = fault
    for (let times = 0; times < 4; times++) {
      expect((await search(one, { q: 'reef', query_by: 'title' })).status).toBe(503)
    }
    only.fault = undefined
    expect(found(await search(other, { q: 'reef', query_by: 'title' }))).toEqual(['reef'])
  })

  test('that stalls in an export is given up, and the last line says so', async () => {
    const only = await relay()
    const name = await connect([only.url], { timeout_ms: 300 })
    only.fault = 'begun'
    const reply = await request('GET', `/collections/${name}/documents/export`)
    const lines = reply.text.split('\n').filter((line) => line !== '')
    expect(JSON.parse(lines[0]!)).toEqual({ id: 'begun' })
    expect(JSON.parse(lines.at(-1)!)).toEqual({
      code: 503,
      error: expect.stringContaining('Typesense cluster'),
    })
  })

  test('to answer some searches in time still answers other collections and requests', async () => {
    const only = await relay()
    const [one, other] = [await connect([only.url], { timeout_ms: 300 }), unique('other')]
    const there = await createShows()
    connected.push(other)
    const second = { ...engine([only.url], { timeout_ms: 300 }), collection: there }
    expect((await request('POST', '/collections', { name: other, engine: second })).status).toBe(201)
    only.fault = 'stall'
    only.faultFor = `"${remote}"`
    for (let times = 0; times < 4; times++) {
      expect((await search(one, { q: 'reef', query_by: 'title' })).status).toBe(503)
    }
    const asked = only.asked.length
    // These searches are given up at once for a while, and nothing else is.
    expect((await search(one, { q: 'reef', query_by: 'title' })).status).toBe(503)
    expect(only.asked.length).toBe(asked)
    expect((await request('GET', `/collections/${one}/documents/reef`)).status).toBe(200)
    expect(found(await search(other, { q: 'reef', query_by: 'title' }))).toEqual(['reef'])
  })

  test('that stalls in an error is given up too', async () => {
    const only = await relay()
    const name = await connect([only.url], { timeout_ms: 300 })
    only.fault = 'half'
    expect((await search(name, { q: 'reef', query_by: 'title' })).status).toBe(400)
  })

  test('follows no redirect with its credentials', async () => {
    const only = await relay()
    const name = await connect([only.url])
    only.fault = 307
    const reply = await search(name, { q: 'reef', query_by: 'title' })
    expect(reply).toMatchObject({ status: 503, body: { message: expect.stringContaining('redirect') } })
  })

  test('hides no collection from the list', async () => {
    const only = await relay()
    const name = await connect([only.url])
    await only.close()
    const listed = (await request('GET', '/collections')).body
    expect(listed.map((one: { name: string }) => one.name)).toContain(name)
    expect((await request('DELETE', `/collections/${name}`)).status).toBe(200)
  })
})

test('one multi_search asks a cluster and an object', async () => {
  const name = await connect()
  const searches = [name, remote].map((collection) => ({ collection, q: 'judge', query_by: 'overview' }))
  const { results } = (await request('POST', '/multi_search', { searches })).body
  expect(results.map(({ found: count }: { found: number }) => count)).toEqual([1, 1])
  const union = await client().multiSearch.perform({
    union: true,
    searches,
    remove_duplicates: false,
  } as never)
  expect((union as { hits: object[] }).hits).toHaveLength(2)
  expect(SHOWS).toHaveLength(5)
})
