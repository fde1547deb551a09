/** `parley backup` of a running server, and `parley restore` into a fresh one, as an operator runs them. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { HISTORY_FIELDS } from '../history-schema'
import { KEY } from './harness'
import { OwnParley } from './own-parley'
import { type Paced, startPaced } from './paced'
import { runParley, spawnParley } from './run-parley'

const folder = mkdtempSync(join(tmpdir(), 'parley-backup-'))
const SECRET = 'sk-1234567890'

vi.setConfig({ testTimeout: 180_000 })

// biome-ignore lint/suspicious/noExplicitAny: replies are checked field by field
type Json = any

let paced: Paced
const old = new OwnParley({ VARS: JSON.stringify({ ENCRYPTION_KEY: 'the key of the old deployment' }) })
const fresh = new OwnParley({ VARS: JSON.stringify({ ENCRYPTION_KEY: 'the key of the new deployment' }) })

/** What the old server was told, by the name that the tests use. */
const made: { page: Json; reader: Json; asked: Json; own: Json; values: string[] } = {
  page: undefined,
  reader: undefined,
  asked: undefined,
  own: undefined,
  values: [],
}

async function call(
  server: OwnParley,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: Json }> {
  const response = await fetch(server.url + path, {
    method,
    headers: { 'x-typesense-api-key': KEY, ...headers },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.includes('json')
  return { status: response.status, body: isJson ? JSON.parse(text) : text }
}

async function done(...given: Parameters<typeof call>): Promise<Json> {
  const { status, body } = await call(...given)
  if (status >= 300) throw new Error(`${given[1]} ${given[2]}: ${status} ${JSON.stringify(body)}`)
  return body
}

const parley = (server: OwnParley, ...args: string[]) =>
  runParley(folder, [...args, '--json'], { PARLEY_URL: server.url })
const alone = (server: OwnParley, ...args: string[]) =>
  spawnParley(folder, [...args, '--json'], { PARLEY_URL: server.url })

beforeAll(async () => {
  paced = await startPaced()
  await Promise.all([old.boot(), fresh.boot()])
  const films = Array.from({ length: 300 }, (_, at) => ({
    id: `film-${at}`,
    title: at % 3 === 0 ? `The lighthouse at the sea, part ${at}` : `A quiet harbour ${at}`,
    text: `Keeper ${at % 7} tends the lamp. The running light turns ${at} times.`,
    year: 1900 + (at % 120),
  }))
  await done(old, 'POST', '/stemming/dictionaries/import?id=irregular', '{"word":"ran","root":"run"}')
  await done(old, 'PUT', '/synonym_sets/words', {
    items: [{ id: 'harbour', synonyms: ['harbour', 'port'] }],
  })
  await done(old, 'PUT', '/curation_sets/picks', {
    items: [{ id: 'top', rule: { query: 'sea', match: 'exact' }, includes: [{ id: 'film-9', position: 1 }] }],
  })
  await done(old, 'PUT', '/stopwords/common', { stopwords: ['the'] })
  await done(old, 'PUT', '/presets/listing', { value: { q: 'sea', query_by: 'title', sort_by: 'year:desc' } })
  // The first of the two refers to the second one, which is made later.
  await done(old, 'POST', '/collections', {
    name: 'directors',
    fields: [{ name: 'name', type: 'string' }],
  })
  await done(old, 'POST', '/collections', {
    name: 'films',
    synonym_sets: ['words'],
    curation_sets: ['picks'],
    fields: [
      { name: 'title', type: 'string' },
      { name: 'text', type: 'string', stem_dictionary: 'irregular' },
      { name: 'year', type: 'int32', facet: true },
      { name: 'director', type: 'string', reference: 'directors.id', optional: true },
      { name: '.*_note', type: 'string' },
      {
        name: 'embedding',
        type: 'float[]',
        embed: { from: ['title', 'text'], model_config: { model_name: 'ts/all-MiniLM-L12-v2' } },
      },
    ],
  })
  await done(old, 'POST', '/collections/directors/documents', { id: 'agnes', name: 'Agnes' })
  await done(
    old,
    'POST',
    '/collections/films/documents/import',
    films
      .map((film, at) => JSON.stringify(at === 0 ? { ...film, director: 'agnes', a_note: 'kept' } : film))
      .join('\n'),
  )
  await vi.waitFor(
    async () => expect((await done(old, 'GET', '/collections/films')).pending_embeddings ?? 0).toBe(0),
    { timeout: 60_000, interval: 200 },
  )
  await done(old, 'PUT', '/aliases/movies', { collection_name: 'films' })
  await done(old, 'POST', '/collections', { name: 'history', fields: HISTORY_FIELDS })
  await done(old, 'POST', '/collections', {
    name: 'counts',
    fields: [
      { name: 'q', type: 'string' },
      { name: 'count', type: 'int32' },
    ],
  })
  // Its documents are backed up where they are.
  await done(old, 'POST', '/collections', {
    name: 'linked',
    engine: {
      type: 'typesense',
      nodes: [old.url],
      credentials: { api_key: KEY },
      collection: 'directors',
    },
  })
  await done(old, 'POST', '/analytics/rules', {
    name: 'popular',
    type: 'popular_queries',
    collection: 'films',
    event_type: 'search',
    params: { destination_collection: 'counts', limit: 100 },
  })
  await done(old, 'POST', '/conversations/models', {
    id: 'plain',
    model_name: 'local/extractive',
    history_collection: 'history',
    max_bytes: 16_384,
  })
  await done(old, 'POST', '/conversations/models', {
    id: 'paid',
    model_name: 'openai/paced-10-1',
    openai_url: paced.url,
    api_key: SECRET,
    history_collection: 'history',
    max_bytes: 16_384,
  })
  await done(old, 'PUT', '/assistants/guide', { model: 'plain', collections: ['films'] })
  // The highest id is a deleted key's: it must not be given to another one.
  made.page = await done(old, 'POST', '/keys', {
    description: 'page',
    actions: ['documents:search', 'conversations:*'],
    collections: ['*'],
  })
  made.reader = await done(old, 'POST', '/keys', {
    description: 'reader',
    actions: ['documents:search'],
    collections: ['films'],
  })
  const gone = await done(old, 'POST', '/keys', { description: 'gone', actions: ['*'], collections: ['*'] })
  await done(old, 'DELETE', `/keys/${gone.id}`)
  const question = (text: string, more: object = {}) => ({
    question: text,
    model: 'plain',
    searches: [{ collection: 'films', query_by: 'title,text' }],
    ...more,
  })
  made.asked = await done(old, 'POST', '/conversations', question('Who tends the lamp of the lighthouse?'))
  const { conversation_id } = made.asked
  await done(old, 'POST', '/conversations', question('And how often does it turn?', { conversation_id }))
  await done(old, 'PUT', `/conversations/${conversation_id}/turns/1/feedback`, {
    rating: 'up',
    comment: 'Good',
  })
  made.own = await done(old, 'POST', '/conversations', question('Which harbour is quiet?'), {
    'x-typesense-api-key': made.page.value,
  })
}, 180_000)

afterAll(async () => {
  await Promise.all([old.remove(), fresh.remove()])
  await paced.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** Searches whose replies depend on words, stems, synonyms, curation, vectors, joins and order. */
const SEARCHES = [
  'q=lighthouse&query_by=title,text&per_page=50',
  'q=port&query_by=title&per_page=50',
  'q=sea&query_by=title&per_page=5',
  'q=ran&query_by=text&per_page=5',
  'q=the quiet&query_by=title&stopwords=common',
  'q=a lamp by the water&query_by=title,embedding&per_page=30',
  'q=*&facet_by=year&filter_by=year:>2000&sort_by=year:desc&per_page=20',
  'q=*&filter_by=$directors(name:=Agnes)&include_fields=$directors(name)',
  'preset=listing',
]

const hitsOf = async (server: OwnParley, query: string) => {
  const reply = await done(server, 'GET', `/collections/movies/documents/search?${query}`)
  const { search_time_ms: _, ...same } = reply
  return same
}

test('a deployment goes into a folder, and from there into a fresh one', async () => {
  const at = join(folder, 'whole')
  const backup = await alone(old, 'backup', at)
  expect([backup.code, backup.err]).toEqual([0, ''])
  expect(backup.json).toMatchObject({
    documents: { films: 300, directors: 1, history: 6, counts: 0 },
    rows: {
      conversations: 2,
      turns: 3,
      feedback: 1,
      models: 2,
      assistants: 1,
      aliases: 1,
      keys: 3,
      collections: 4,
    },
    clusters: ['linked'],
    secrets: ['models.paid.api_key'],
  })
  // Nothing in the folder opens anything.
  const files = Object.values(JSON.parse(readFileSync(join(at, 'manifest.json'), 'utf8')).parts) as {
    file: string
  }[]
  const text = files.map(({ file }) => readFileSync(join(at, file), 'utf8')).join('\n')
  for (const secret of [SECRET, made.page.value, made.reader.value]) expect(text).not.toContain(secret)

  const again = await parley(old, 'restore', at)
  expect([again.code, again.err]).toEqual([5, expect.stringContaining('is not empty: 5 collections')])

  const restored = await alone(fresh, 'restore', at)
  expect([restored.code, restored.err]).toEqual([0, ''])
  expect(restored.json).toMatchObject({
    refused: [],
    differences: [],
    unset: ['models.paid.api_key'],
    expired: 0,
  })
  expect(restored.json.keys.map((key: Json) => [key.id, key.description])).toEqual([
    [made.page.id, 'page'],
    [made.reader.id, 'reader'],
  ])

  made.values = restored.json.keys.map((key: Json) => key.value)
  for (const query of SEARCHES)
    expect([query, await hitsOf(fresh, query)]).toEqual([query, await hitsOf(old, query)])
  for (const path of [
    '/assistants',
    '/aliases',
    '/presets',
    '/stopwords',
    '/synonym_sets',
    '/curation_sets',
    '/analytics/rules',
    '/stemming/dictionaries/irregular',
    '/conversations',
    `/conversations/${made.asked.conversation_id}`,
    `/conversations/${made.asked.conversation_id}/trace`,
    `/conversations/${made.own.conversation_id}`,
    '/usage',
  ]) {
    expect([path, await done(fresh, 'GET', path)]).toEqual([path, await done(old, 'GET', path)])
  }
})

test('a restored conversation goes on, with what was said before', async () => {
  const { conversation_id } = made.asked
  const next = await done(fresh, 'POST', '/conversations', {
    question: 'And who tends it?',
    conversation_id,
    model: 'plain',
    searches: [{ collection: 'films', query_by: 'title,text' }],
  })
  expect(next.conversation_id).toBe(conversation_id)
  const { turns } = await done(fresh, 'GET', `/conversations/${conversation_id}`)
  expect(turns.map(({ turn, question }: Json) => [turn, question])).toEqual([
    [1, 'Who tends the lamp of the lighthouse?'],
    [2, 'And how often does it turn?'],
    [3, 'And who tends it?'],
  ])
  expect(turns[0].feedback).toMatchObject([{ rating: 'up', comment: 'Good' }])
  // The search for a follow-up includes the question before it.
  const { turns: traced } = await done(fresh, 'GET', `/conversations/${conversation_id}/trace?turn=3`)
  expect(JSON.stringify(traced[0].trace)).toContain('how often does it turn')
})

test('a restored conversation belongs to the key that began it, under its new value', async () => {
  const keys = await done(fresh, 'GET', '/keys')
  expect(keys.keys.map((key: Json) => [key.id, key.description])).toEqual([
    [made.page.id, 'page'],
    [made.reader.id, 'reader'],
  ])
  const id = made.own.conversation_id
  const question = {
    question: 'And where is it?',
    conversation_id: id,
    model: 'plain',
    searches: [{ collection: 'films', query_by: 'title' }],
  }
  // The next key does not get the id of the one that was deleted.
  const other = await done(fresh, 'POST', '/keys', {
    description: 'other',
    actions: ['documents:search', 'conversations:create'],
    collections: ['*'],
  })
  expect(other.id).toBe(made.reader.id + 2)
  for (const value of [made.page.value, other.value]) {
    const { status } = await call(fresh, 'POST', '/conversations', question, { 'x-typesense-api-key': value })
    expect([400, 401, 404]).toContain(status)
  }
  const mine = { 'x-typesense-api-key': made.values[0]! }
  expect((await call(fresh, 'POST', '/conversations', question, mine)).status).toBe(200)
  expect((await call(fresh, 'GET', `/conversations/${id}`, undefined, mine)).body.turns).toHaveLength(2)
})

test('a restored model has no secret until it is set again', async () => {
  expect((await done(fresh, 'GET', '/conversations/models/paid')).api_key).toBeUndefined()
  await done(fresh, 'PUT', '/conversations/models/paid', { api_key: SECRET })
  expect((await done(fresh, 'GET', '/conversations/models/paid')).api_key).toMatch(/^sk-12\*+$/)
  const answered = await done(fresh, 'POST', '/conversations', {
    question: 'Which harbour is quiet?',
    model: 'paid',
    searches: [{ collection: 'films', query_by: 'title' }],
  })
  expect(answered.answer).toContain('plain0')
})

test('a backup that broke off goes on, and a damaged one is not restored', async () => {
  const at = join(folder, 'half')
  expect((await parley(old, 'backup', at)).code).toBe(0)
  expect(await parley(old, 'backup', at)).toMatchObject({
    code: 2,
    err: expect.stringContaining('holds a backup'),
  })
  // As if it had ended after the first page of turns: what is behind it in the file is not known to be whole.
  const manifest = JSON.parse(readFileSync(join(at, 'manifest.json'), 'utf8'))
  const turns = readFileSync(join(at, 'turns.jsonl'), 'utf8')
  const first = `${turns.split('\n')[0]}\n`
  const { conversation_id, turn } = JSON.parse(first)
  manifest.parts.turns = {
    file: 'turns.jsonl',
    rows: 1,
    bytes: Buffer.byteLength(first),
    after: JSON.stringify([conversation_id, turn]),
  }
  manifest.documents = {}
  writeFileSync(join(at, 'progress.json'), JSON.stringify(manifest))
  writeFileSync(join(at, 'turns.jsonl'), `${turns.slice(0, -20)}`)
  rmSync(join(at, 'manifest.json'))
  expect(await parley(fresh, 'restore', at)).toMatchObject({
    code: 2,
    err: expect.stringContaining('is not whole'),
  })
  const { code, json } = await parley(old, 'backup', at)
  expect([code, json.rows.turns, json.documents.films]).toEqual([0, 3, 300])
  expect(readFileSync(join(at, 'turns.jsonl'), 'utf8')).toBe(turns)

  writeFileSync(join(at, 'turns.jsonl'), turns.replace('lamp', 'lump'))
  const damaged = await parley(fresh, 'restore', at, '--merge')
  expect([damaged.code, damaged.err]).toEqual([
    2,
    expect.stringContaining('turns.jsonl is missing or not what'),
  ])
})

test('a restore can be repeated: nothing is there twice, and keys keep their values', async () => {
  const before = await done(fresh, 'GET', '/operations/backup')
  const at = join(folder, 'whole')
  rmSync(join(at, `restore-${new URL(fresh.url).host.replace(':', '_')}.json`))
  const { code, json } = await parley(fresh, 'restore', at, '--merge')
  expect([code, json.keys, json.differences]).toEqual([0, [], []])
  expect(Object.values(json.documents)).toEqual([0, 0, 0, 0])
  expect(await done(fresh, 'GET', '/operations/backup')).toEqual(before)
})
