/** Presets and stopword sets: named parts of searches that are kept on the server. Rows of D1's `resources`. */
import * as v from 'valibot'
import { database } from '../db/client'
import { deleteResource, findResource, listResources, putResource } from '../db/resources'
import { RowCache } from '../db/row-cache'
import { ApiError } from '../errors'
import { once } from '../lib/once'
import { isObject } from '../search/schema/values'

/** How long a set is cached, in milliseconds. Another isolate searches with a changed one that much later. */
const CACHE_MS = 3_000

const PRESET = 'preset'
const STOPWORDS = 'stopwords'

const Preset = once(() => v.record(v.string(), v.unknown()))
const Stopwords = once(() => v.object({ stopwords: v.array(v.string()), locale: v.optional(v.string()) }))

/** The content of a preset: search parameters, or a whole /multi_search body with `searches`. */
export type Preset = v.InferOutput<ReturnType<typeof Preset>>

/** A set of words to leave out of queries. */
export type StopwordSet = v.InferOutput<ReturnType<typeof Stopwords>> & { id: string }

const presets = new RowCache<Preset>('a preset', CACHE_MS)
const stopwordSets = new RowCache<StopwordSet>('a stopword set', CACHE_MS)

/** PUT /presets/:name. @returns the body with the name @throws ApiError 400 */
export async function putPreset(env: Cloudflare.Env, name: string, body: unknown): Promise<unknown> {
  if (!isObject(body)) throw new ApiError(400, 'Bad JSON.')
  if (!('value' in body)) throw new ApiError(400, 'Parameter `value` is required.')
  if (!isObject(body.value)) throw new ApiError(400, 'Search preset is not an object.')
  await putResource(database(env), { kind: PRESET, id: name, body: JSON.stringify(body.value) })
  presets.forget(name)
  return { ...body, name }
}

/** @throws ApiError 404 */
export async function getPreset(env: Cloudflare.Env, name: string): Promise<Preset> {
  const found = await presets.find(name, async () => {
    const row = await findResource(database(env), PRESET, name)
    return row && v.parse(Preset(), JSON.parse(row.body))
  })
  if (found === undefined) throw new ApiError(404, `Preset \`${name}\` not found.`)
  return found
}

export async function listPresets(env: Cloudflare.Env): Promise<{ name: string; value: Preset }[]> {
  const rows = await listResources(database(env), PRESET)
  return rows.map(({ id, body }) => ({ name: id, value: v.parse(Preset(), JSON.parse(body)) }))
}

/** @returns the deleted preset @throws ApiError 404 */
export async function deletePreset(env: Cloudflare.Env, name: string): Promise<Preset> {
  presets.forget(name)
  const value = await getPreset(env, name)
  await deleteResource(database(env), PRESET, name)
  presets.forget(name)
  return value
}

/** PUT /stopwords/:id. @returns the body with the id @throws ApiError 400 in Typesense's words */
export async function putStopwords(env: Cloudflare.Env, id: string, body: unknown): Promise<unknown> {
  if (!isObject(body)) throw new ApiError(400, 'Bad JSON.')
  if (!('stopwords' in body)) throw new ApiError(400, 'Parameter `stopwords` is required')
  const { stopwords, locale } = body
  if (Array.isArray(stopwords) && stopwords.length === 0) {
    throw new ApiError(400, 'Parameter `stopwords` is empty')
  }
  if (!Array.isArray(stopwords) || !stopwords.every((word) => typeof word === 'string')) {
    throw new ApiError(400, 'Parameter `stopwords` is required as string array value')
  }
  if (locale !== undefined && typeof locale !== 'string') {
    throw new ApiError(400, 'Parameter `locale` is required as string value')
  }
  const stored = { stopwords, ...(locale !== undefined && { locale }) }
  await putResource(database(env), { kind: STOPWORDS, id, body: JSON.stringify(stored) })
  stopwordSets.forget(id)
  return { ...body, id }
}

const findStopwords = (env: Cloudflare.Env, id: string): Promise<StopwordSet | undefined> =>
  stopwordSets.find(id, async () => {
    const row = await findResource(database(env), STOPWORDS, id)
    return row && { id, ...v.parse(Stopwords(), JSON.parse(row.body)) }
  })

/** @throws ApiError 404 */
export async function getStopwords(env: Cloudflare.Env, id: string): Promise<StopwordSet> {
  const found = await findStopwords(env, id)
  if (found === undefined) throw new ApiError(404, `Stopword \`${id}\` not found.`)
  return found
}

/** The words of a set that a search names. @throws ApiError 404 in the words of a search */
export async function wordsOfSet(env: Cloudflare.Env, id: string): Promise<string[]> {
  const found = await findStopwords(env, id)
  if (found === undefined) throw new ApiError(404, `Could not find the stopword set named \`${id}\`.`)
  return found.stopwords
}

export async function listStopwords(env: Cloudflare.Env): Promise<StopwordSet[]> {
  const rows = await listResources(database(env), STOPWORDS)
  return rows.map(({ id, body }) => ({ id, ...v.parse(Stopwords(), JSON.parse(body)) }))
}

/** @throws ApiError 404 */
export async function deleteStopwords(env: Cloudflare.Env, id: string): Promise<void> {
  const deleted = await deleteResource(database(env), STOPWORDS, id)
  stopwordSets.forget(id)
  if (!deleted) throw new ApiError(404, `Stopword \`${id}\` not found.`)
}
