/** A model's own headers, sent with every request to its provider. Their values are treated as secrets. */
import { ApiError } from '../errors'

const MOST = 20
const LONGEST = 4_096

/** Headers of the connection or the message, or set by a provider's own properties. */
const RESERVED = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'host',
  'accept-encoding',
  'content-encoding',
  'content-length',
  'content-type',
  'cookie',
  'authorization',
  'api-key',
  'x-api-key',
  'x-goog-api-key',
  'cf-aig-authorization',
])

/** A signature has new headers for each request. */
const isReserved = (name: string): boolean => RESERVED.has(name) || name.startsWith('x-amz-')

const NAME = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}$/
// Latin-1 without control characters: what a header can carry (RFC 9110, 5.5).
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/

/** @throws ApiError 400 saying what is wrong with the property `headers` */
export function checkHeaders(headers: unknown): void {
  if (headers === undefined) return
  if (headers === null || typeof headers !== 'object' || Array.isArray(headers)) {
    throw new ApiError(400, 'Property `headers` is not an object of strings.')
  }
  const entries = Object.entries(headers)
  if (entries.length > MOST) throw new ApiError(400, `Property \`headers\` has more than ${MOST} headers.`)
  for (const [name, value] of entries) {
    if (!NAME.test(name)) throw new ApiError(400, 'Property `headers` has a name that no header can have.')
    if (isReserved(name.toLowerCase())) {
      throw new ApiError(400, `Property \`headers\` may not set \`${name}\`: leave it out.`)
    }
    if (typeof value !== 'string' || value.length > LONGEST || !VALUE.test(value)) {
      throw new ApiError(
        400,
        `Property \`headers.${name}\` is not a string of up to ${LONGEST} characters that a header can carry.`,
      )
    }
  }
}
