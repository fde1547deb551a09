/** Reads what a Typesense cluster replies: its errors, fields and hits. */
import { ApiError, collectionGone } from '../../errors'
import { parseExact } from '../../lib/exact-json'
import { isObject } from '../../search/schema/values'
import type { Hit, SearchResult } from '../../search/types'

/** The cluster's error as the caller reads it: its messages are this wire's own. */
export function refusalOf(status: number, message: string): ApiError {
  if (status === 404 && /^(?:Not Found|Collection not found|No collection )/i.test(message)) {
    return collectionGone()
  }
  return new ApiError(status, message)
}

/** Match scores as numbers: they have more digits than a double, and only their order counts. */
export function withScores(result: SearchResult): SearchResult {
  const scored = (hit: Hit): Hit =>
    hit.text_match === undefined ? hit : { ...hit, text_match: Number(hit.text_match) }
  return {
    ...result,
    ...(result.hits && { hits: result.hits.map(scored) }),
    ...(result.grouped_hits && {
      grouped_hits: result.grouped_hits.map((group) => ({ ...group, hits: group.hits.map(scored) })),
    }),
  }
}

/**
 * A result for each line of an import, in order. The cluster has not told of the last ones if it broke off.
 * @param text the reply as far as it came
 * @param count of the lines that were sent
 */
export function importResults(text: string, complete: boolean, count: number): string {
  // What follows the last line feed of a reply that broke off may be half a line.
  const told = (complete ? text : text.slice(0, text.lastIndexOf('\n') + 1)).split('\n')
  const results = told.filter((line) => line.trim() !== '').slice(0, count)
  const untold = JSON.stringify({ success: false, error: UNTOLD, code: 503 })
  return [...results, ...Array.from({ length: count - results.length }, () => untold)].join('\n')
}

const UNTOLD = 'The Typesense cluster broke off its reply. It may have written the document.'

const BEFORE = '{"results":['
const AFTER = ']}'
const PARAMETERS = '"request_params":{'

/**
 * The one result of a search as the cluster wrote it, under the collection's name here. Only the end is parsed, where the cluster
 * writes the parameters: hits stay as they are, with all digits of their scores.
 * @param reply of /multi_search
 * @returns undefined for an error, and for a reply of another form: those have to be read whole
 */
export function resultText(reply: string, name: string): string | undefined {
  const at = reply.lastIndexOf(PARAMETERS)
  if (at < 0 || !reply.startsWith(`${BEFORE}{`) || !reply.endsWith(`}${AFTER}`)) return undefined
  try {
    // This parses only if the object that has the parameters is the last one, so not if a document has such a property.
    const end = parseExact(`{${reply.slice(at, -AFTER.length)}`)
    if (!isObject(end) || !isObject(end.request_params)) return undefined
    const renamed = { ...end, request_params: { ...end.request_params, collection_name: name } }
    return reply.slice(BEFORE.length, at) + JSON.stringify(renamed).slice(1)
  } catch {
    return undefined
  }
}

export function messageOf(text: string): string {
  try {
    const reply: unknown = JSON.parse(text)
    if (isObject(reply) && typeof reply.message === 'string') return reply.message
  } catch {}
  return text.trim() || 'The Typesense cluster refused the request.'
}
