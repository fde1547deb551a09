/**
 * A visitor's secret: a random value that a browser makes and sends with each request, so that visitors who share the key
 * of a page can be told apart. It is stored as a digest only.
 */
import { ApiError } from '../errors'
import { sha256 } from './digest'

export const VISITOR_HEADER = 'x-parley-visitor'

/** At least as many characters as 24 random bytes have in base64. */
const SECRET = /^[A-Za-z0-9_-]{32,256}$/

/**
 * What is remembered of a visitor: a digest of the secret, another one for each key, so that nobody can follow a visitor
 * from one page to the next.
 * @param owner the key that the request came with
 * @throws ApiError 400 for a secret that is too short to be one
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

/** The secret that a request brings: its header first, else its query parameter, since an EventSource sends no headers. */
export const presentedVisitor = (
  request: Request,
  query: Readonly<Record<string, string>> = {},
): string | undefined => request.headers.get(VISITOR_HEADER) ?? query[VISITOR_HEADER]
