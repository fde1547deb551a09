/**
 * Where outbound calls may go. Every URL of a provider passes here when a model is made and again when it is
 * called, since whoever may write a model could otherwise use it to reach inside the network that Parley runs in.
 *
 * A URL is judged after the platform's own parser has read it, so that 2130706433, 0x7f.1 and 127.0.0.1 are one
 * address. An address written in numbers is never public: providers have names, and which ranges lead inside is
 * a list that nobody keeps complete. What a name resolves to cannot be seen from here. Hence https for names that
 * are not listed one by one: a machine inside would need a trusted certificate for the name that was asked.
 */
import { ApiError } from '../errors'

export interface Egress {
  /**
   * Hosts besides the providers' own, separated by commas: `host`, `host:port`, `*.suffix`, or `*` for every
   * public name over https. A host that is listed by name may be private and may speak plain http.
   */
  ALLOWED_HOSTS?: string
}

/** Hosts of the providers that Parley knows: always allowed, over https and its own port. */
const PROVIDERS = [
  /^(?:[a-z]{2}\.)?api\.openai\.com$/,
  /^[a-z0-9-]+\.openai\.azure\.com$/,
  /^[a-z0-9-]+\.cognitiveservices\.azure\.com$/,
  /^[a-z0-9-]+\.services\.ai\.azure\.com$/,
  /^generativelanguage\.googleapis\.com$/,
  /^(?:api|gateway\.ai)\.cloudflare\.com$/,
  /^api\.anthropic\.com$/,
  /^bedrock-runtime(?:-fips)?\.[a-z0-9-]+\.amazonaws\.com$/,
]

/** Names that lead inside by custom or by standard (RFC 6761, RFC 6762, RFC 8375, the metadata of clouds). */
const INSIDE =
  /\.(?:localhost|local|localdomain|internal|intranet|private|lan|home|corp|home\.arpa|arpa|onion)$/

/**
 * @param url complete, as it is about to be fetched
 * @throws ApiError 400 saying how to allow it
 */
export function requireAllowed(url: string, env: Egress): void {
  const target = parse(url)
  if (target === undefined) {
    throw refused('The URL of the model is not a complete `https://` or `http://` URL.')
  }
  if (target.username !== '' || target.password !== '') {
    throw refused('The URL of the model may not carry a user name or a password.')
  }
  // A name may end in the dot of the root: the same host.
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

/** The message names a host and a variable: it is for whoever runs the server. */
const refused = (message: string): ApiError => new ApiError(400, message, undefined, true)

function parse(url: string): URL | undefined {
  try {
    const parsed = new URL(url)
    return parsed.protocol === 'https:' || parsed.protocol === 'http:' ? parsed : undefined
  } catch {
    return undefined
  }
}

/** Whether a host is a name of the public internet: not a number, not a single word, not a name for inside. */
const isPublicName = (host: string): boolean =>
  host.includes('.') && !host.startsWith('[') && !/(?:^|\.)\d+$/.test(host) && !INSIDE.test(`.${host}`)

function isListed(host: string, target: URL, entry: string): boolean {
  if (entry === '' || entry === '*') return false
  if (entry.startsWith('*.')) return !host.startsWith('[') && host.endsWith(entry.slice(1))
  const port = target.port || (target.protocol === 'https:' ? '443' : '80')
  return entry === host || entry === `${host}:${port}`
}
