/** Search results as readers see them: with the question that was asked, even if a rewritten one was searched. */
import type { SearchResult } from '../../search/types'
import type { SearchReply } from '../../turn/events'

/** Typesense's wire has the question in two places (contract 1.6 and 1.7). */
export function asAsked(result: SearchResult, question: string): SearchResult {
  if (!result.request_params) return result
  return { ...result, request_params: { ...result.request_params, first_q: question, q: question } }
}

/** The reply of a search in Typesense's shape: its result, or its error. */
export const shownReply = (
  reply: SearchReply,
  question: string,
): SearchResult | { code: number; error: string } =>
  'result' in reply ? asAsked(reply.result, question) : { code: reply.code, error: reply.error }
