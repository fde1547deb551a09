/** What the client tests share: clients, names, schemas, and ways to read what came over the wire. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client, SearchClient } from 'typesense'
import { inject } from 'vitest'
import { historySchema } from '../history-schema'

/** where the Parley under test answers */
export let url = inject('url')
export const KEY = 'xyz'

export const FORBIDDEN = 'Forbidden - a valid `x-typesense-api-key` header must be sent.'
export const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

/** Turns all that is here to another Parley, for the tests of this file that follow. */
export function turnTo(other: string): void {
  url = other
}

const nodes = () => [{ host: new URL(url).hostname, port: Number(new URL(url).port), protocol: 'http' }]

/** The official client, with its own defaults but for the key. */
export const client = (apiKey = KEY, options: Record<string, unknown> = {}): Client =>
  new Client({ nodes: nodes(), apiKey, logLevel: 'silent', ...options })

export const searchClient = (apiKey = KEY): SearchClient =>
  new SearchClient({ nodes: nodes(), apiKey, logLevel: 'silent' })

let count = 0
const run = Math.random().toString(36).slice(2, 8)

/** A name that no other test uses. */
export const unique = (stem: string): string => `${stem}-${run}-${count++}`

export interface Reply {
  status: number
  contentType: string
  text: string
  /** biome-ignore lint/suspicious/noExplicitAny: replies are checked field by field */
  body: any
}

/** A request as curl makes it. `body` goes as it is when it is a string. */
export async function request(
  method: string,
  path: string,
  body?: unknown,
  key: string | null = KEY,
): Promise<Reply> {
  const response = await fetch(url + path, {
    method,
    headers: key === null ? {} : { 'X-TYPESENSE-API-KEY': key },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  const text = await response.text()
  const contentType = response.headers.get('content-type') ?? ''
  return {
    status: response.status,
    contentType,
    text,
    body: contentType.includes('json') ? JSON.parse(text) : text,
  }
}

/** The path of a search with its parameters. */
export const query = (path: string, parameters: Record<string, string | number | boolean>): string =>
  `${path}?${new URLSearchParams(Object.entries(parameters).map(([name, value]) => [name, String(value)]))}`

/** A question as Parley's own route takes it. */
export const question = (model: string, collection: string, more: Record<string, unknown> = {}) => ({
  question: 'an action series',
  model,
  collections: [collection],
  ...more,
})

/** Asks on Parley's own route. */
export const ask = (...asked: Parameters<typeof question>): Promise<Reply> =>
  request('POST', '/conversations', question(...asked))

type Asking = Record<string, string | number | boolean>

/** Asks by a search of a collection. */
export const askBySearch = (
  model: string,
  collection: string,
  q: string,
  more: Asking = {},
  key = KEY,
): Promise<Reply> => {
  const fields = { query_by: 'embedding', exclude_fields: 'embedding' }
  const asking = { q, ...fields, conversation: true, conversation_model_id: model, ...more }
  return request('GET', query(`/collections/${collection}/documents/search`, asking), undefined, key)
}

/** Asks by searches of several collections. */
export const askAcross = (
  model: string,
  searches: Record<string, unknown>[],
  q: string,
  more: Asking = {},
): Promise<Reply> =>
  request('POST', query('/multi_search', { q, conversation: true, conversation_model_id: model, ...more }), {
    searches,
  })

/** Makes a history collection of the documented schema. @returns its name */
export async function createHistory(): Promise<string> {
  const name = unique('history')
  const reply = await request('POST', '/collections', historySchema(name))
  if (reply.status !== 201) throw new Error(reply.text)
  return name
}

/** Makes a conversation model. @returns its id */
export async function createModel(config: Record<string, unknown>): Promise<string> {
  const body = { id: unique('model'), max_bytes: 16_384, api_key: 'sk-1234567890', ...config }
  const reply = await request('POST', '/conversations/models', {
    ...body,
    history_collection: config.history_collection ?? (await createHistory()),
  })
  if (reply.status !== 201) throw new Error(reply.text)
  return reply.body.id
}

/** Makes an assistant. @returns its name */
export async function createAssistant(config: Record<string, unknown>): Promise<string> {
  const name = unique('assistant')
  const reply = await request('PUT', `/assistants/${name}`, config)
  if (reply.status !== 200) throw new Error(reply.text)
  return name
}

export const SHOWS = [
  {
    id: 'salvage',
    title: 'Starship Salvage',
    overview: 'An action series about a crew that salvages warships.',
    points: 90,
  },
  {
    id: 'quest',
    title: 'Galactic Quest',
    overview: 'An action series about explorers between the planets.',
    points: 80,
  },
  {
    id: 'kitchen',
    title: 'Quiet Kitchen',
    overview: 'Slow cooking with old recipes from the countryside.',
    points: 70,
  },
  {
    id: 'court',
    title: 'Night Court',
    overview: 'A judge and her clerks settle odd cases after dark.',
    points: 60,
  },
  {
    id: 'reef',
    title: 'Reef',
    overview: 'A documentary about coral and the fish that live there.',
    points: 50,
  },
]

/** Makes a collection of shows with an auto-embedding field. @returns its name */
export async function createShows(): Promise<string> {
  const name = unique('tv_shows')
  const created = await request('POST', '/collections', {
    name,
    fields: [
      { name: 'title', type: 'string' },
      { name: 'overview', type: 'string' },
      { name: 'points', type: 'int32' },
      {
        name: 'embedding',
        type: 'float[]',
        embed: { from: ['title', 'overview'], model_config: { model_name: 'ts/all-MiniLM-L12-v2' } },
      },
    ],
  })
  if (created.status !== 201) throw new Error(created.text)
  await client().collections(name).documents().import(SHOWS)
  return name
}

/** Forgets collections of clusters: those whose nodes are gone would make every list of collections wait for them. */
export async function disconnect(names: readonly string[]): Promise<void> {
  for (const name of names) await request('DELETE', `/collections/${name}`)
}

export interface RawStream {
  status: number
  contentType: string
  /** one string for each read from the socket */
  reads: string[]
  text: string
  /** set when the connection broke */
  error?: unknown
}

/** Reads a stream to its end, as bytes came. */
export async function rawStream(path: string, init: RequestInit = {}): Promise<RawStream> {
  const response = await fetch(url + path, { ...init, headers: { 'X-TYPESENSE-API-KEY': KEY } })
  const stream: RawStream = {
    status: response.status,
    contentType: response.headers.get('content-type') ?? '',
    reads: [],
    text: '',
  }
  const decoder = new TextDecoder()
  try {
    for await (const bytes of response.body ?? []) stream.reads.push(decoder.decode(bytes, { stream: true }))
  } catch (error) {
    stream.error = error
  }
  stream.text = stream.reads.join('')
  return stream
}

/** A collection of its own, with documents. @returns its name @throws Error for a document that is refused */
export async function makeCollection(
  stem: string,
  fields: object[],
  documents: object[],
  schema: object = {},
): Promise<string> {
  const name = unique(stem)
  await client()
    .collections()
    .create({ name, fields, ...schema } as never)
  await client().collections(name).documents().import(documents)
  return name
}

/** Fires the cron trigger, as if at `time`. */
export async function sweep(time: number = Date.now()): Promise<void> {
  const response = await fetch(`${inject('entry')}/cdn-cgi/local/scheduled?time=${time}`)
  if (!response.ok) throw new Error(`the scheduled handler answered ${response.status}`)
}

/** where the real data sets lie, if they do */
export const SHARED = join(import.meta.dirname, '../../../shared/data')

/** Documents of the real data sets, or undefined, with a line, where they are absent. */
export function realDocuments(folder: string): Record<string, unknown>[] | undefined {
  const file = join(SHARED, folder, 'corpus.jsonl')
  if (!existsSync(file)) {
    console.log(`Left out: the data set ${folder} is not beside the project (../shared/data).`)
    return undefined
  }
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}
