/**
 * A visitor's secret: a random value that a browser creates and sends with each request, so that visitors who share a
 * page's key can be told apart. Only a digest of it is stored.
 */
import { ApiError } from '../errors'
import { sha256 } from './digest'

export const VISITOR_HEADER = 'x-parley-visitor'

/** At least as many characters as 24 random bytes have in base64. */
const SECRET = /^[A-Za-z0-9_-]{32,256}$/

/**
 * The stored digest of a secret. It differs for each key, so that visitors cannot be tracked from page to page.
 * @param owner the key of the request
 * @throws ApiError 400 for a secret that is too short
 */
export async function visitorDigest(owner: string, secret: string): Promise<string> {
  if (!SECRET.test(secret)) {
    throw new ApiError(
      400,
      '`X-Parley-Visitor` must be a random value of 32 to 256 letters, digits, dashes and underscores, such as two of `crypto.randomUUID()` in a row.',
    )
  }
  return sha256(JSON.stringify(['visitor', owner, secret]))
}

/**
 * The secret of a request: its header or its query parameter, since an EventSource and a browser's WebSocket send no headers of the
 * page's. It counts on every route, so that nothing that a visitor asks is left without an owner.
 * @throws ApiError 400 if there are two
 */
export function presentedVisitor(request: Request): string | undefined {
  const at = request.url.indexOf('?')
  const given = new Set(at < 0 ? [] : inQuery(request.url.slice(at)))
  const header = request.headers.get(VISITOR_HEADER)
  if (header !== null) given.add(header)
  if (given.size > 1) throw new ApiError(400, 'The request has two secrets in `X-Parley-Visitor`. Send one.')
  return [...given][0]
}

const inQuery = (query: string): string[] =>
  [...new URLSearchParams(query)].flatMap(([name, value]) =>
    name.toLowerCase() === VISITOR_HEADER ? [value] : [],
  )
