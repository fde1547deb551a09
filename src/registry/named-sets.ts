/**
 * What collections name and share: synonym sets and curation sets, lists of items that the API writes as a whole or one at a
 * time, and stemming dictionaries.
 */

import * as v from 'valibot'
import { RowCache } from '../db/client'
import {
  beginEntries,
  bytesOfKind,
  deleteResource,
  type Entries,
  entriesBody,
  entriesOf,
  findResource,
  idsOfKind,
  listResources,
  putEntries,
  putResource,
  type Sizes,
  sizesOf,
} from '../db/resources'
import { ApiError, badRequest } from '../errors'
import { tryJson } from '../lib/json'
import { once } from '../lib/once'
import { readStoredObject } from '../lib/stored-json'
import type { KeptSets } from '../search/kept-sets'
import { isObject } from '../search/schema/values'
import {
  CURATION_SET,
  curationSets,
  newCurationOf,
  SYNONYM_SET,
  shownCuration,
  synonymSets,
} from '../search/sets/curation'
import { synonymOf } from '../search/sets/synonym'
import { STEMMING_DICTIONARY, stemmingDictionaries } from '../search/text/analyzer'

/** Bytes of a set as stored JSON: a row of D1 holds 2 MB. */
const MAX_SET_BYTES = 1_000_000
/** Items of a set. */
const MAX_SET_ITEMS = 10_000
/** Sets of a kind. */
const MAX_SETS = 1_000
/** Bytes of a list of all sets. */
const MAX_LIST_BYTES = 16_000_000

type Item = { id: string }

/** A kind of named sets. */
export interface SetKind {
  kind: string
  /** what messages call a set: `Synonym` */
  title: string
  /** Before release 30, routes had one list for each collection. This names the set that stands for it now. */
  ofCollection: (collection: string) => string
  kept: Pick<KeptSets<unknown>, 'forget'>
  /** checks an item @returns it as it is stored and shown @throws ApiError 400 */
  parse(body: unknown): Item
}

export const SYNONYMS: SetKind = {
  kind: SYNONYM_SET,
  title: 'Synonym',
  // The name that release 30 gives to a collection's list from release 29.
  ofCollection: (collection) => `${collection}_synonyms_index`,
  kept: synonymSets,
  parse: synonymOf,
}

export const CURATIONS: SetKind = {
  kind: CURATION_SET,
  title: 'Curation',
  ofCollection: (collection) => `${collection}_curations_index`,
  kept: curationSets,
  parse: (body) => shownCuration(newCurationOf(body)),
}

const missing = ({ title }: SetKind): ApiError => new ApiError(404, `${title} index not found`)

const itemsIn = (entries: Entries): unknown[] => [...entries.values()].map((entry) => readStoredObject(entry))

/** @throws ApiError 422 for a set that would be too large, or if there are too many sets */
function requireRoom({ title }: SetKind, { others, bytes }: Pick<Sizes, 'others' | 'bytes'>): void {
  const what = title.toLowerCase()
  if (bytes > MAX_SET_BYTES) {
    throw new ApiError(
      422,
      `A ${what} set can have at most ${MAX_SET_BYTES} bytes. Divide it into several sets.`,
    )
  }
  if (others >= MAX_SETS) throw new ApiError(422, `There can be at most ${MAX_SETS} ${what} sets.`)
}

/** PUT: stores a set. It replaces one of the same name. @returns it as GET shows it @throws ApiError 400, 422 */
export async function putSet(
  env: Cloudflare.Env,
  kind: SetKind,
  name: string,
  body: unknown,
): Promise<unknown> {
  if (!isObject(body)) throw badRequest('Bad JSON.')
  if (!Array.isArray(body.items)) throw badRequest("Missing or invalid 'items' field")
  const entries: Entries = new Map()
  for (const given of body.items) {
    const item = kind.parse(given)
    entries.set(item.id, JSON.stringify(item))
  }
  if (entries.size > MAX_SET_ITEMS) throw tooManyItems(kind)
  const stored = entriesBody(entries)
  const { others } = await sizesOf(env.DB, kind.kind, name)
  requireRoom(kind, { others, bytes: bytesOf(stored) })
  await putResource(env.DB, { kind: kind.kind, id: name, body: stored })
  kind.kept.forget(name)
  return { items: itemsIn(entries), name }
}

const tooManyItems = ({ title }: SetKind): ApiError =>
  new ApiError(
    422,
    `A ${title.toLowerCase()} set can have at most ${MAX_SET_ITEMS} items. Divide it into several sets.`,
  )

const bytesOf = (text: string): number => new TextEncoder().encode(text).length

async function readSet(env: Cloudflare.Env, kind: SetKind, name: string): Promise<Entries | undefined> {
  const row = await findResource(env.DB, kind.kind, name)
  return row && entriesOf(row.body)
}

async function requireSet(env: Cloudflare.Env, kind: SetKind, name: string): Promise<Entries> {
  const entries = await readSet(env, kind, name)
  if (entries === undefined) throw missing(kind)
  return entries
}

/** @throws ApiError 404 */
export async function getSet(env: Cloudflare.Env, kind: SetKind, name: string): Promise<unknown> {
  return { items: itemsIn(await requireSet(env, kind, name)), name }
}

/** @throws ApiError 422 where they are too large for one reply */
export async function listSets(env: Cloudflare.Env, kind: SetKind): Promise<unknown[]> {
  if ((await bytesOfKind(env.DB, kind.kind)) > MAX_LIST_BYTES) {
    throw new ApiError(
      422,
      `A list of sets can have at most ${MAX_LIST_BYTES} bytes. Read them one by one, by their names.`,
    )
  }
  const rows = await listResources(env.DB, kind.kind)
  return rows.map(({ id, body }) => ({ items: itemsIn(entriesOf(body)), name: id }))
}

/** @throws ApiError 404 */
export async function deleteSet(env: Cloudflare.Env, kind: SetKind, name: string): Promise<unknown> {
  const deleted = await deleteResource(env.DB, kind.kind, name)
  kind.kept.forget(name)
  if (!deleted) throw missing(kind)
  return { name }
}

/** Some items of a set, all by default. @throws ApiError 400 for an offset past the end, 404 */
export async function listItems(
  env: Cloudflare.Env,
  kind: SetKind,
  name: string,
  { limit, offset }: { limit: number; offset: number },
): Promise<unknown[]> {
  const items = itemsIn(await requireSet(env, kind, name))
  if (offset > 0 && offset >= items.length) throw badRequest('Invalid offset param.')
  return items.slice(offset, limit > 0 ? offset + limit : undefined)
}

/** The items of a set; none if there is no such set. */
export async function itemsOf(env: Cloudflare.Env, kind: SetKind, name: string): Promise<unknown[]> {
  const entries = await readSet(env, kind, name)
  return entries ? itemsIn(entries) : []
}

/** @throws ApiError 404 */
export async function getItem(
  env: Cloudflare.Env,
  kind: SetKind,
  name: string,
  id: string,
): Promise<unknown> {
  const entry = (await requireSet(env, kind, name)).get(id)
  if (entry === undefined) throw new ApiError(404, 'Not Found')
  return readStoredObject(entry)
}

/**
 * Stores an item. It replaces one of the same id.
 * @param begins whether to make the set if there is none
 * @returns the body with the id @throws ApiError 400, 404, 422
 */
export async function putItem(
  env: Cloudflare.Env,
  kind: SetKind,
  { name, id, begins = false }: { name: string; id: string; begins?: boolean },
  body: unknown,
): Promise<unknown> {
  if (!isObject(body)) throw badRequest('Bad JSON.')
  const given = { ...body, id }
  const stored = JSON.stringify(kind.parse(given))
  const db = env.DB
  const { others, bytes, entries, has } = await sizesOf(db, kind.kind, name, id)
  requireRoom(kind, { others, bytes: bytes + bytesOf(stored) })
  if (!has && entries >= MAX_SET_ITEMS) throw tooManyItems(kind)
  if (begins) await beginEntries(db, kind.kind, name)
  if (!(await putEntries(db, kind.kind, name, [[id, stored]]))) throw missing(kind)
  kind.kept.forget(name)
  return given
}

/** @throws ApiError 404 */
export async function deleteItem(
  env: Cloudflare.Env,
  kind: SetKind,
  name: string,
  id: string,
): Promise<unknown> {
  if (!(await requireSet(env, kind, name)).has(id)) throw new ApiError(404, 'Could not find that `id`.')
  await putEntries(env.DB, kind.kind, name, [[id, null]])
  kind.kept.forget(name)
  return { id }
}

// Stemming dictionaries: roots of words, for fields that name one in `stem_dictionary`.

/** Bytes of a dictionary as stored JSON: a row of D1 holds 2 MB. */
const MAX_DICTIONARY_BYTES = 1_500_000
const MAX_DICTIONARIES = 100

/**
 * POST /stemming/dictionaries/import?id=: adds words to a dictionary. Creates the dictionary if there is none. A known
 * word gets the new root.
 * @param text JSONL, each line `{"word": ..., "root": ...}`
 * @returns the lines
 * @throws ApiError 400, 422
 */
export async function importDictionary(env: Cloudflare.Env, id: string, text: string): Promise<string> {
  const lines = text.split('\n').filter((line) => line.trim() !== '')
  if (lines.length === 0) throw invalid()
  const words: Entries = new Map()
  for (const line of lines) words.set(...wordOf(line))
  const db = env.DB
  const { others, bytes } = await sizesOf(db, STEMMING_DICTIONARY, id)
  if (others >= MAX_DICTIONARIES) {
    throw new ApiError(422, `There can be at most ${MAX_DICTIONARIES} stemming dictionaries.`)
  }
  if (bytes + new TextEncoder().encode(JSON.stringify([...words])).length > MAX_DICTIONARY_BYTES) {
    throw new ApiError(422, `A stemming dictionary can have at most ${MAX_DICTIONARY_BYTES} bytes.`)
  }
  await beginEntries(db, STEMMING_DICTIONARY, id)
  await putEntries(db, STEMMING_DICTIONARY, id, words)
  stemmingDictionaries.forget(id)
  return lines.join('\n')
}

const invalid = (): ApiError => badRequest('Invalid dictionary format.')

function wordOf(line: string): [word: string, root: string] {
  const entry = tryJson(line)
  if (!isObject(entry)) throw invalid()
  const { word, root } = entry
  if (typeof word !== 'string' || typeof root !== 'string') {
    throw badRequest('dictionary lines should contain `word` and `root` values.')
  }
  return [word, root]
}

/** The ids of all dictionaries. */
export const listDictionaries = (env: Cloudflare.Env): Promise<string[]> =>
  idsOfKind(env.DB, STEMMING_DICTIONARY)

/** @throws ApiError 404 */
export async function getDictionary(env: Cloudflare.Env, id: string): Promise<unknown> {
  const row = await findResource(env.DB, STEMMING_DICTIONARY, id)
  if (row === undefined) throw missingDictionary(id)
  return { id, words: [...entriesOf(row.body)].map(([word, root]) => ({ word, root })) }
}

/** @throws ApiError 404 */
export async function deleteDictionary(env: Cloudflare.Env, id: string): Promise<void> {
  const deleted = await deleteResource(env.DB, STEMMING_DICTIONARY, id)
  stemmingDictionaries.forget(id)
  if (!deleted) throw missingDictionary(id)
}

const missingDictionary = (id: string): ApiError =>
  new ApiError(404, `Stemming dictionary \`${id}\` not found.`)

// =============================================================================
// Presets and stopword sets: named parts of searches that are kept on the server. Rows of D1's `resources`.

/** How long a set is cached, in milliseconds. Another isolate searches with a changed one that much later. */
const CACHE_MS = 3_000

/** A kind of them. @param title as messages call one */
function kept<Value>(kind: string, title: string, shape: () => v.GenericSchema<unknown, Value>) {
  const cache = new RowCache<Value>(`a set of the kind ${kind}`, CACHE_MS)
  const valueIn = ({ body }: { body: string }): Value => v.parse(shape(), JSON.parse(body))
  const find = (env: Cloudflare.Env, id: string): Promise<Value | undefined> =>
    cache.find(id, async () => {
      const row = await findResource(env.DB, kind, id)
      return row && valueIn(row)
    })
  /** @throws ApiError 404 */
  const get = async (env: Cloudflare.Env, id: string): Promise<Value> => {
    const found = await find(env, id)
    if (found === undefined) throw new ApiError(404, `${title} \`${id}\` not found.`)
    return found
  }
  return {
    find,
    get,
    async put(env: Cloudflare.Env, id: string, value: Value): Promise<void> {
      await putResource(env.DB, { kind, id, body: JSON.stringify(value) })
      cache.forget(id)
    },
    async list(env: Cloudflare.Env): Promise<{ id: string; value: Value }[]> {
      return (await listResources(env.DB, kind)).map((row) => ({ id: row.id, value: valueIn(row) }))
    },
    /** @returns what it was @throws ApiError 404 */
    async delete(env: Cloudflare.Env, id: string): Promise<Value> {
      cache.forget(id)
      const value = await get(env, id)
      await deleteResource(env.DB, kind, id)
      cache.forget(id)
      return value
    },
  }
}

/** Search parameters, or a whole /multi_search body with `searches`. */
export const presets = kept(
  'preset',
  'Preset',
  once(() => v.record(v.string(), v.unknown())),
)

/** Words to leave out of queries. */
export const stopwordSets = kept(
  'stopwords',
  'Stopword',
  once(() => v.object({ stopwords: v.array(v.string()), locale: v.optional(v.string()) })),
)

/** PUT /presets/:name. @returns the body with the name @throws ApiError 400 */
export async function putPreset(env: Cloudflare.Env, name: string, body: unknown): Promise<unknown> {
  if (!isObject(body)) throw badRequest('Bad JSON.')
  if (!('value' in body)) throw badRequest('Parameter `value` is required.')
  if (!isObject(body.value)) throw badRequest('Search preset is not an object.')
  await presets.put(env, name, body.value)
  return { ...body, name }
}

/** PUT /stopwords/:id. @returns the body with the id @throws ApiError 400 in Typesense's words */
export async function putStopwords(env: Cloudflare.Env, id: string, body: unknown): Promise<unknown> {
  if (!isObject(body)) throw badRequest('Bad JSON.')
  if (!('stopwords' in body)) throw badRequest('Parameter `stopwords` is required')
  const { stopwords, locale } = body
  if (Array.isArray(stopwords) && stopwords.length === 0) {
    throw badRequest('Parameter `stopwords` is empty')
  }
  if (!Array.isArray(stopwords) || !stopwords.every((word) => typeof word === 'string')) {
    throw badRequest('Parameter `stopwords` is required as string array value')
  }
  if (locale !== undefined && typeof locale !== 'string') {
    throw badRequest('Parameter `locale` is required as string value')
  }
  await stopwordSets.put(env, id, { stopwords, ...(locale !== undefined && { locale }) })
  return { ...body, id }
}

/** The words of a set that a search names. @throws ApiError 404 in the words of a search */
export async function wordsOfSet(env: Cloudflare.Env, id: string): Promise<string[]> {
  const found = await stopwordSets.find(env, id)
  if (found === undefined) throw new ApiError(404, `Could not find the stopword set named \`${id}\`.`)
  return found.stopwords
}
