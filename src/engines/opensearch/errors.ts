/** An OpenSearch cluster's errors as the caller reads them. */
import * as v from 'valibot'
import { ApiError, coded, collectionGone } from '../../errors'
import { once } from '../../lib/once'

const Reason = once(() => v.object({ type: v.optional(v.string()), reason: v.nullish(v.string()) }))

const ErrorReply = once(() =>
  v.object({
    error: v.union([
      v.string(),
      v.object({ ...Reason().entries, root_cause: v.optional(v.array(Reason()), []) }),
    ]),
  }),
)

/** @param text the body of the reply */
export function refusalOf(status: number, text: string): ApiError {
  const { type, reason } = reasonIn(text)
  if (type === 'index_not_found_exception') return collectionGone()
  return new ApiError(status, reason || 'The OpenSearch cluster refused the request.')
}

function reasonIn(text: string): { type: string; reason: string } {
  let parsed: unknown
  try {
    parsed = JSON.parse(text)
  } catch {}
  const read = v.safeParse(ErrorReply(), parsed)
  if (!read.success) return { type: '', reason: text.trim() }
  const { error } = read.output
  if (typeof error === 'string') return { type: '', reason: error }
  const [cause] = error.root_cause
  return { type: error.type ?? '', reason: cause?.reason ?? error.reason ?? '' }
}

/** Seconds after which a cluster may have found its lost shards. */
const PARTIAL_SECONDS = 2

export const partial = (): ApiError =>
  coded(
    'search_unavailable',
    503,
    'Some shards of the OpenSearch cluster do not answer, so the result would not be whole.',
    PARTIAL_SECONDS,
  )
