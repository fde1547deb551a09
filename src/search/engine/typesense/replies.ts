/** Reads what a Typesense cluster replies: its errors, fields and hits. */
import { ApiError, collectionGone } from '../../../errors'
import { isObject } from '../../schema/values'
import type { Hit, SearchResult } from '../../types'
import { ofEngine } from '../cluster'

/** The cluster's error as the caller reads it: its messages are this wire's own. */
export function refusalOf(status: number, message: string): ApiError {
  if (status === 401 || status === 403) {
    return ofEngine(
      'The Typesense cluster refuses the credentials. Connect again with a key that may use the collection.',
    )
  }
  if (status === 404 && /^(?:Not Found|Collection not found|No collection )/i.test(message)) {
    return collectionGone()
  }
  if (status >= 300 && status < 400) {
    return ofEngine('The Typesense cluster answers with a redirect. Give the address it leads to.')
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

export function messageOf(text: string): string {
  try {
    const reply: unknown = JSON.parse(text)
    if (isObject(reply) && typeof reply.message === 'string') return reply.message
  } catch {}
  return text.trim() || 'The Typesense cluster refused the request.'
}
