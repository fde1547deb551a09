/** Stemming dictionaries: roots of words, for fields that name one in `stem_dictionary`. */
import { database } from '../db/client'
import { beginEntries, type Entries, entriesOf, idsOfKind, putEntries, sizesOf } from '../db/resource-entries'
import { deleteResource, findResource } from '../db/resources'
import { ApiError } from '../errors'
import { isObject } from '../search/schema/values'
import { STEMMING_DICTIONARY, stemmingDictionaries } from '../search/text/dictionaries'

/** Bytes of a dictionary as stored JSON: a row of D1 holds 2 MB. */
export const MAX_DICTIONARY_BYTES = 1_500_000
export const MAX_DICTIONARIES = 100

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
  const db = database(env)
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

const invalid = (): ApiError => new ApiError(400, 'Invalid dictionary format.')

function wordOf(line: string): [word: string, root: string] {
  let entry: unknown
  try {
    entry = JSON.parse(line)
  } catch {
    throw invalid()
  }
  if (!isObject(entry)) throw invalid()
  const { word, root } = entry
  if (typeof word !== 'string' || typeof root !== 'string') {
    throw new ApiError(400, 'dictionary lines should contain `word` and `root` values.')
  }
  return [word, root]
}

/** The ids of all dictionaries. */
export const listDictionaries = (env: Cloudflare.Env): Promise<string[]> =>
  idsOfKind(database(env), STEMMING_DICTIONARY)

/** @throws ApiError 404 */
export async function getDictionary(env: Cloudflare.Env, id: string): Promise<unknown> {
  const row = await findResource(database(env), STEMMING_DICTIONARY, id)
  if (row === undefined) throw missing(id)
  return { id, words: [...entriesOf(row.body)].map(([word, root]) => ({ word, root })) }
}

/** @throws ApiError 404 */
export async function deleteDictionary(env: Cloudflare.Env, id: string): Promise<void> {
  const deleted = await deleteResource(database(env), STEMMING_DICTIONARY, id)
  stemmingDictionaries.forget(id)
  if (!deleted) throw missing(id)
}

const missing = (id: string): ApiError => new ApiError(404, `Stemming dictionary \`${id}\` not found.`)
