/** Fetches what a source is made of: past no rule of ALLOWED_HOSTS, and pages within their site and no longer than a page is. */
import { outgoing } from '../lib/waiting'
import { readWholeBody } from '../models/call'
import { type Egress, requireAllowed } from '../models/egress'
import type { KnownPage } from './source'

const TIMEOUT_MS = 20_000
/** Bytes of a page, or of a file. */
export const LONGEST_PAGE = 4 << 20
/** Redirects that are followed, each checked like the first address. */
const MOST_REDIRECTS = 5

/** What is at an address, as a site answers it. */
export interface Fetched {
  status: number
  /** where redirects led */
  address: string
  headers: Headers
  bytes: Uint8Array
}

/**
 * @param agent who asks
 * @param known of the page: what did not change is not sent
 * @throws Error in words for whoever runs the source; ApiError for an address that may not be called
 */
export async function fetchPage(
  env: Cloudflare.Env & Egress,
  url: string,
  agent: string,
  known: KnownPage = {},
): Promise<Fetched> {
  const headers = {
    'user-agent': agent,
    accept: 'text/html, application/xhtml+xml, */*;q=0.5',
    ...(known.etag !== undefined && { 'if-none-match': known.etag }),
    ...(known.modified !== undefined && { 'if-modified-since': known.modified }),
  }
  const isOfSite = (address: string) => new URL(address).origin === new URL(url).origin
  const { response, address } = await followed(env, url, headers, AbortSignal.timeout(TIMEOUT_MS), isOfSite)
  if (!isOfSite(address)) return { status: 204, address, headers: response.headers, bytes: new Uint8Array() }
  return { status: response.status, address, headers: response.headers, bytes: await bytesOf(response) }
}

/**
 * The answer of an address, or of that to which its redirects lead.
 * @param goesOn whether a redirect to an address is followed; one that is not is the answer
 * @throws Error, ApiError as `fetchPage`
 */
export async function followed(
  env: Cloudflare.Env & Egress,
  url: string,
  headers: Record<string, string>,
  signal: AbortSignal,
  goesOn: (address: string) => boolean = () => true,
): Promise<{ response: Response; address: string }> {
  let address = url
  for (let redirects = 0; ; redirects += 1) {
    requireAllowed(address, env, 'The address of the page')
    const asked = address
    const call = () => fetch(asked, { redirect: 'manual', signal, headers })
    const response = await outgoing(env, call, signal)
    const location = response.headers.get('location')
    const { status } = response
    if (status < 300 || status >= 400 || status === 304 || location === null) return { response, address }
    await response.body?.cancel()
    if (redirects === MOST_REDIRECTS) throw new Error('redirects too often')
    if (!URL.canParse(location, address)) throw new Error('redirects to no address')
    address = new URL(location, address).href
    if (!goesOn(address)) return { response, address }
  }
}

async function bytesOf({ body }: Response): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  const { complete } = await readWholeBody(body, LONGEST_PAGE, (bytes) => pieces.push(bytes))
  if (!complete) throw new Error(`is longer than ${LONGEST_PAGE >> 20} MiB`)
  return new Uint8Array(await new Blob(pieces).arrayBuffer())
}
