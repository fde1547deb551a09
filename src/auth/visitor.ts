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

/** The secret of a request: the header, or else the query parameter, since an EventSource cannot send headers. */
export const presentedVisitor = (
  request: Request,
  query: Readonly<Record<string, string>> = {},
): string | undefined => request.headers.get(VISITOR_HEADER) ?? query[VISITOR_HEADER]
