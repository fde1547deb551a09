/**
 * Which hosts outbound calls may reach. Every URL of a provider is checked when a model is created and again when it
 * is called: otherwise anyone who can create a model could reach hosts inside the network that Parley runs in.
 *
 * URLs are checked after the platform's parser has normalised them, so 2130706433, 0x7f.1 and 127.0.0.1 are the same
 * address. Numeric addresses are never public: providers have names, and no list of internal ranges is complete. What
 * a name resolves to is not visible here. Hence names that are not listed need https: an internal machine would need
 * a trusted certificate for that name.
 */
import { ApiError } from '../errors'

export interface Egress {
  /**
   * Hosts besides the providers' own, separated by commas: `host`, `host:port`, `*.suffix`, or `*` for every public
   * name over https. A listed host may be private and may use plain http.
   */
  ALLOWED_HOSTS?: string
}

/** Hosts of known providers: always allowed, over https on its default port. */
const PROVIDERS = [
  /^(?:[a-z]{2}\.)?api\.openai\.com$/,
  /^[a-z0-9-]+\.openai\.azure\.com$/,
  /^[a-z0-9-]+\.cognitiveservices\.azure\.com$/,
  /^[a-z0-9-]+\.services\.ai\.azure\.com$/,
  /^(?:generativelanguage|oauth2|[a-z0-9-]+-aiplatform)\.googleapis\.com$/,
  /^(?:api|gateway\.ai)\.cloudflare\.com$/,
  /^api\.anthropic\.com$/,
  /^bedrock-runtime(?:-fips)?\.[a-z0-9-]+\.amazonaws\.com$/,
]

/** Names that are internal by custom or standard (RFC 6761, RFC 6762, RFC 8375, cloud metadata). */
const INSIDE =
  /\.(?:localhost|local|localdomain|internal|intranet|private|lan|home|corp|home\.arpa|arpa|onion)$/

/**
 * @param url complete, as it will be fetched
 * @param what the subject of the error message
 * @throws ApiError 400 that tells how to allow it
 */
export function requireAllowed(url: string, env: Egress, what = 'The URL of the model'): void {
  const target = parse(url)
  if (target === undefined) {
    throw refused(`${what} is not a complete \`https://\` or \`http://\` URL.`)
  }
  if (target.username !== '' || target.password !== '') {
    throw refused(`${what} may not carry a user name or a password.`)
  }
  // A name with the root's dot at its end is the same host.
  const host = target.hostname.replace(/(?<!\.)\.+$/, '')
  const entries = (env.ALLOWED_HOSTS ?? '').split(',').map((entry) => entry.trim().toLowerCase())
  if (target.protocol === 'https:') {
    if (target.port === '' && PROVIDERS.some((provider) => provider.test(host))) return
    if (entries.includes('*') && isPublicName(host)) return
  }
  if (entries.some((entry) => isListed(host, target, entry))) return
  throw refused(
    `Calls to \`${target.protocol}//${target.host}\` are not allowed. To allow them, add \`${host}\` to the variable ALLOWED_HOSTS of the deployment.`,
  )
}

/** The message names a host and a variable, for the operator. */
const refused = (message: string): ApiError => new ApiError(400, message, undefined, true)

function parse(url: string): URL | undefined {
  try {
    const parsed = new URL(url)
    return parsed.protocol === 'https:' || parsed.protocol === 'http:' ? parsed : undefined
  } catch {
    return undefined
  }
}

/** Whether a host is a public name: not a number, not a single word, not an internal name. */
const isPublicName = (host: string): boolean =>
  host.includes('.') && !host.startsWith('[') && !/(?:^|\.)\d+$/.test(host) && !INSIDE.test(`.${host}`)

function isListed(host: string, target: URL, entry: string): boolean {
  if (entry === '' || entry === '*') return false
  if (entry.startsWith('*.')) return !host.startsWith('[') && host.endsWith(entry.slice(1))
  const port = target.port || (target.protocol === 'https:' ? '443' : '80')
  return entry === host || entry === `${host}:${port}`
}
