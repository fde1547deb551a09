/** Shapes that the ML plugin's routes share. */
import { OpenSearchError } from '../errors'
import { isObject, type Json } from '../route'

/** The reply to a change or deletion of a document in a system index. */
export const written = (index: string, id: string, result: string, version = 1): Json => ({
  _index: index,
  _id: id,
  _version: version,
  result,
  forced_refresh: true,
  _shards: { total: 1, successful: 1, failed: 0 },
  _seq_no: version - 1,
  _primary_term: 1,
})

export const notFound = (message: string): OpenSearchError =>
  new OpenSearchError(404, 'status_exception', message)

export const badRequest = (message: string): OpenSearchError =>
  new OpenSearchError(400, 'illegal_argument_exception', message)

/** Requires a text. @throws ApiError 400 `missing` */
export function requireText(value: unknown, missing: string): string {
  if (typeof value !== 'string' || value.trim() === '') throw badRequest(missing)
  return value
}

export function allowText(body: Json, name: string): string | undefined {
  const value = body[name]
  if (value === undefined || value === null) return undefined
  if (typeof value !== 'string') throw badRequest(`[${name}] has to be a text`)
  return value
}

/** An object with all values as texts: a number becomes its digits. */
export function textsOf(value: unknown, name: string): Record<string, string> {
  if (value === undefined || value === null) return {}
  if (!isObject(value)) throw badRequest(`[${name}] has to be an object`)
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [key, typeof each === 'string' ? each : JSON.stringify(each)]),
  )
}

/** @throws ApiError 400 that names what is unknown */
export function requireKnown(body: Json, known: readonly string[], what: string): void {
  const unknown = Object.keys(body).find((key) => !known.includes(key))
  if (unknown !== undefined) throw badRequest(`[${unknown}] of ${what} is not supported here`)
}
