/** What the tests of the console take for replies of Parley, where openapi.json describes none, is what Parley replies. */
import { afterAll, expect, test } from 'vitest'
import { shapeFault } from '../console/contract'
import { SHAPES } from '../console/shapes'
import { createHistory, createShows, disconnect, KEY, request, unique, url } from './harness'

const seen = new Set<string>()
/** names of what this file made */
const OWN = new Set<unknown>()
const connected: string[] = []

afterAll(() => disconnect(connected))

/** Asks a route and holds its reply against its shape. @returns the reply */
async function ask(route: string, path: string, body?: unknown) {
  const [method = ''] = route.split(' ')
  const reply = await request(method, path, body)
  const shape = SHAPES[route]
  expect([route, reply.status]).toEqual([route, shape?.status ?? 200])
  // Other files have made some of what is listed, with more properties than the console knows.
  const { body: all } = reply
  const nameOf = ({ name, id }: { name?: string; id?: string }) => name ?? id ?? ''
  const ownOf = (list: object[]) => list.filter((each) => OWN.has(nameOf(each)))
  if (method === 'POST') OWN.add(nameOf(all))
  const own = Array.isArray(all) ? ownOf(all) : all?.keys ? { keys: ownOf(all.keys) } : all
  if (shape?.reply !== undefined) expect(shapeFault(route, own)).toBe('')
  seen.add(route)
  return reply.body
}

test('collections, their documents and their nodes', async () => {
  const name = unique('shown')
  const at = `/collections/${name}`
  await ask('POST /collections', '/collections', {
    name,
    fields: [
      { name: 'title', type: 'string' },
      { name: 'tag', type: 'string', facet: true },
      {
        name: 'embedding',
        type: 'float[]',
        embed: { from: ['title'], model_config: { model_name: 'ts/all-MiniLM-L12-v2' } },
      },
    ],
    metadata: { questions: ['Why?'] },
  })
  const lines = ['{"id":"a","title":"Tides","tag":"sea"}', '{"id":"b","title":5,"tag":"sea"}'].join('\n')
  const imported = await ask(
    'POST /collections/{name}/documents/import',
    `${at}/documents/import?action=upsert&return_id=true`,
    lines,
  )
  expect(imported.split('\n').map((line: string) => JSON.parse(line))).toEqual([
    { success: true, id: 'a' },
    { success: false, id: 'b', error: expect.any(String), code: 400 },
  ])
  await ask('GET /collections', '/collections')
  await request('PUT', `/aliases/${unique('alias')}`, { collection_name: name })
  await ask('GET /aliases', '/aliases')
  await ask('GET /collections/{name}', at)
  const query = 'q=tides&query_by=embedding,title&facet_by=tag&exclude_fields=embedding'
  const { hits, facet_counts } = await ask(
    'GET /collections/{name}/documents/search',
    `${at}/documents/search?${query}`,
  )
  expect([hits.length, facet_counts.length]).toEqual([1, 1])
  await ask('POST /multi_search', '/multi_search', {
    searches: [{ collection: name, q: '*', per_page: 250, exclude_fields: 'embedding' }],
  })
  await ask('GET /collections/{name}/documents/export', `${at}/documents/export`)
  await ask('PATCH /collections/{name}/documents/{id}', `${at}/documents/a`, {
    title: 'High tides',
    tag: 'sea',
  })
  await ask('PATCH /collections/{name}', at, {
    fields: [{ name: 'year', type: 'int32', optional: true }],
  })
  await ask('DELETE /collections/{name}/documents/{id}', `${at}/documents/a`)
  await ask('POST /collections/{name}/documents', `${at}/documents`, { title: 'Ebb', tag: 'sea' })
  const { data } = await ask('POST /v1/embeddings', '/v1/embeddings', {
    model: name,
    input: ['Why?', 'When?'],
  })
  expect(data).toHaveLength(2)
  // Questions are compared by Parley's own model, which costs nothing.
  const { fields } = await ask('GET /collections/{name}', at)
  const [served] = fields.flatMap(({ embed }: { embed?: { served_by: string } }) => embed?.served_by ?? [])
  expect(served).toMatch(/^local\//)
  await ask('DELETE /collections/{name}', at)
  const linked = unique('linked')
  connected.push(linked)
  const engine = {
    type: 'typesense',
    nodes: [url],
    credentials: { api_key: KEY },
    collection: await createShows(),
  }
  await ask('POST /collections', '/collections', { name: linked, engine })
  await ask('GET /collections/{name}', `/collections/${linked}`)
  await ask('GET /collections', '/collections')
  await ask('GET /collections/{name}/nodes', `/collections/${linked}/nodes`)
})

test('models and keys', async () => {
  const id = unique('model')
  const history_collection = await createHistory()
  await ask('POST /conversations/models', '/conversations/models', {
    id,
    model_name: 'local/extractive',
    history_collection,
    max_bytes: 16_384,
    max_tokens: 1_024,
  })
  await ask('GET /conversations/models', '/conversations/models')
  await ask('PUT /conversations/models/{id}', `/conversations/models/${id}`, {
    temperature: 0.2,
    system_prompt: 'Be brief.',
    max_tokens: null,
  })
  // What is null is taken away, whatever it is.
  const without = await ask('PUT /conversations/models/{id}', `/conversations/models/${id}`, {
    system_prompt: null,
  })
  expect(Object.keys(without)).not.toContain('system_prompt')
  await ask('DELETE /conversations/models/{id}', `/conversations/models/${id}`)
  const limits = { assistant: 'help', allowed_origins: ['https://www.example.com'], turns_per_day: 2 }
  const key = await ask('POST /keys', '/keys', {
    description: 'page of help',
    actions: ['documents:search'],
    collections: ['*'],
    limits,
  })
  await ask('GET /keys', '/keys')
  await ask('PATCH /keys/{id}', `/keys/${key.id}`, { limits: { turns_per_day: 5 } })
  await ask('DELETE /keys/{id}', `/keys/${key.id}`)
})

test('what searches go by', async () => {
  const name = unique('rules')
  const items = [{ id: 'coat', synonyms: ['coat', 'jacket'] }]
  await ask('PUT /synonym_sets/{name}', `/synonym_sets/${name}`, { items })
  await request('PUT', `/curation_sets/${name}`, {
    items: [{ id: 'a', rule: { query: 'refund', match: 'contains' }, includes: [{ id: 'x', position: 1 }] }],
  })
  await request('PUT', `/presets/${name}`, { value: { query_by: 'title' } })
  await request('PUT', `/stopwords/${name}`, { stopwords: ['the'] })
  for (const kind of ['synonym_sets', 'curation_sets', 'presets', 'stopwords'])
    await ask(`GET /${kind}`, `/${kind}`)
  await ask('DELETE /synonym_sets/{name}', `/synonym_sets/${name}`)
})

test('rules of one collection, whose sets are made and named in it by the first one', async () => {
  const name = unique('ruled')
  const at = `/collections/${name}`
  await request('POST', '/collections', { name, fields: [{ name: 'title', type: 'string' }] })
  for (const title of ['Refunds', 'Tides of money'])
    await request('POST', `${at}/documents`, { id: title, title })
  const synonym = `${at}/synonyms/money%20%2F%20refund`
  const pin = `${at}/overrides/money%20back%3F`
  await ask('PUT /collections/{name}/synonyms/{id}', synonym, { synonyms: ['cash', 'refunds'] })
  await ask('PUT /collections/{name}/overrides/{id}', pin, {
    rule: { query: 'money back?', match: 'contains' },
    includes: [{ id: 'Refunds', position: 1 }],
  })
  const found = async (q: string) => {
    const query = new URLSearchParams({ q, query_by: 'title' })
    const { hits } = (await request('GET', `${at}/documents/search?${query}`)).body
    return hits.map(({ document }: { document: { id: string } }) => document.id)
  }
  // Another isolate may search by earlier rules for three seconds.
  await expect.poll(() => found('cash'), { timeout: 10_000 }).toEqual(['Refunds'])
  await expect.poll(async () => (await found('My money back!'))[0], { timeout: 10_000 }).toBe('Refunds')
  await ask('DELETE /collections/{name}/synonyms/{id}', synonym)
  await ask('DELETE /collections/{name}/overrides/{id}', pin)
  await expect.poll(() => found('cash'), { timeout: 10_000 }).toEqual([])
})

test('are all of those that are told', () => {
  expect([...seen].sort()).toEqual(Object.keys(SHAPES).sort())
})
