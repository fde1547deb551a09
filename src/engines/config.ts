/** The `engine` of a collection in an existing cluster, as callers give it and as the registry stores it. */
import * as v from 'valibot'
import { badRequest } from '../errors'
import { maskSecret } from '../lib/mask'
import { once } from '../lib/once'
import { type Egress, requireAllowed } from '../models/egress'

/** A cluster call that takes longer is given up, in milliseconds. */
const DEFAULT_TIMEOUT_MS = 5_000
const LONGEST_TIMEOUT_MS = 60_000
const MOST_NODES = 20
const LONGEST_TEXT = 2_048

const Text = () => v.pipe(v.string(), v.minLength(1), v.maxLength(LONGEST_TEXT))

const Nodes = () => v.pipe(v.array(Text()), v.minLength(1), v.maxLength(MOST_NODES))
const Timeout = () =>
  v.optional(
    v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(LONGEST_TIMEOUT_MS)),
    DEFAULT_TIMEOUT_MS,
  )

/** It is sent in a header. With other characters no call could be made, and each would look like a dead node. */
const Token = () => v.pipe(Text(), v.regex(/^[!-~]+$/, 'A key or token has visible ASCII characters only'))

const TypesenseCredentials = once(() => v.strictObject({ api_key: Token() }))
/** Empty for a cluster that asks for no credentials. */
const OpenSearchCredentials = once(() =>
  v.union([
    v.strictObject({ username: Text(), password: Text() }),
    v.strictObject({ api_key: Token() }),
    v.strictObject({}),
  ]),
)

/** Empty where the binding AI_SEARCH is used. */
const AiSearchCredentials = once(() => v.union([v.strictObject({ api_token: Token() }), v.strictObject({})]))
const CLOUDFLARE = 'https://api.cloudflare.com'

const Engine = once(() =>
  v.variant('type', [
    v.strictObject({
      type: v.literal('typesense'),
      nodes: Nodes(),
      credentials: TypesenseCredentials(),
      collection: v.optional(Text()),
      timeout_ms: Timeout(),
    }),
    v.strictObject({
      type: v.literal('ai-search'),
      nodes: v.optional(Nodes(), [CLOUDFLARE]),
      credentials: v.optional(AiSearchCredentials(), {}),
      account_id: v.optional(Text()),
      instance: v.optional(Text()),
      timeout_ms: Timeout(),
    }),
    v.strictObject({
      type: v.literal('opensearch'),
      nodes: Nodes(),
      credentials: v.optional(OpenSearchCredentials(), {}),
      index: v.optional(Text()),
      timeout_ms: Timeout(),
    }),
  ]),
)

/** Where a collection lives, without the credentials. This is stored as JSON. */
const Stored = once(() => {
  const shared = {
    nodes: v.array(v.string()),
    timeout_ms: v.number(),
    /** the credentials, masked */
    masked: v.record(v.string(), v.string()),
  }
  return v.variant('type', [
    v.object({ type: v.literal('typesense'), collection: v.string(), ...shared }),
    v.object({ type: v.literal('opensearch'), index: v.string(), ...shared }),
    v.object({
      type: v.literal('ai-search'),
      account_id: v.optional(v.string()),
      instance: v.string(),
      ...shared,
    }),
  ])
})

export type StoredEngine = v.InferOutput<ReturnType<typeof Stored>>

const Credentials = once(() => v.union([AiSearchCredentials(), OpenSearchCredentials()]))
export type Credentials = v.InferOutput<ReturnType<typeof Credentials>>

/** What an adapter needs to reach its cluster. */
export interface Connection {
  /** the collection's name here */
  name: string
  engine: StoredEngine
  credentials: Credentials
  env: Egress & Pick<Cloudflare.Env, 'AI_SEARCH'>
}

/**
 * Checks an `engine` of a request.
 * @param name of the collection; in the cluster it is called the same unless `collection` says otherwise
 * @throws ApiError 400 that names the property, or the host that may not be called
 */
export function parseEngine(
  given: unknown,
  name: string,
  env: Egress,
): { engine: StoredEngine; credentials: Credentials } {
  const parsed = v.safeParse(Engine(), given)
  if (!parsed.success) {
    const [issue] = parsed.issues
    const path = ['engine', ...(issue.path ?? []).map(({ key }) => String(key))].join('.')
    throw badRequest(`\`${path}\`: ${sentence(issue)}`)
  }
  const { credentials, ...engine } = parsed.output
  const masked = Object.fromEntries(
    Object.entries(credentials).map(([property, secret]) => [property, maskSecret(secret)]),
  )
  const shared = { masked, nodes: engine.nodes.map((node) => addressOf(node, env)) }
  if (engine.type === 'typesense') {
    return { engine: { ...engine, collection: engine.collection ?? name, ...shared }, credentials }
  }
  if (engine.type === 'opensearch') {
    return { engine: { ...engine, index: engine.index ?? name, ...shared }, credentials }
  }
  if ('api_token' in credentials && engine.account_id === undefined) {
    throw badRequest('`engine.account_id`: It is missing. An `api_token` is for the REST API of an account.')
  }
  return { engine: { ...engine, instance: engine.instance ?? name, ...shared }, credentials }
}

function sentence({ type, received, message }: v.BaseIssue<unknown>): string {
  if (type === 'variant') return `Use \`typesense\`, \`opensearch\` or \`ai-search\`, not ${received}.`
  if (type === 'strict_object') return `There is no such property. ${ENGINE_HELP}`
  return received === 'undefined' ? `It is missing. ${ENGINE_HELP}` : `${message}.`
}

const ENGINE_HELP =
  'An engine has `type`, `nodes` (URLs), `credentials`, and optionally `collection` (Typesense), `index` (OpenSearch) or `instance` (AI Search), and `timeout_ms`.'

/** The URL of a node without a slash at its end. @throws ApiError 400 */
function addressOf(node: string, env: Egress): string {
  requireAllowed(node, env, 'The URL of the node')
  const { origin, pathname, search, hash } = new URL(node)
  if (search !== '' || hash !== '') {
    throw badRequest('`engine.nodes`: A node is a URL without a query and a fragment.')
  }
  return origin + pathname.replace(/(?<!\/)\/+$/, '')
}

export const parseStoredEngine = (json: string): StoredEngine => v.parse(Stored(), JSON.parse(json))

export const parseCredentials = (json: string): Credentials => v.parse(Credentials(), JSON.parse(json))

/** An engine as replies show it: its credentials are masked. */
export const shownEngine = ({ masked, ...engine }: StoredEngine): Record<string, unknown> => ({
  ...engine,
  credentials: masked,
})
