/** Runs a stored tool: an HTTP action, or a tool of an MCP server. */
import { ApiError, badRequest } from '../errors'
import { withoutSecrets } from '../lib/mask'
import { outgoing } from '../lib/waiting'
import { parseObject, readEvents, readWholeBody } from '../models/call'
import { fillJson, fillText, namesIn } from '../models/connector'
import { requireAllowed } from '../models/egress'
import { argumentsOf } from '../models/language-model'
import { type Headers, type ListedTool, openTool, type Tool } from './tool'

/** Bytes of a reply that are read. A model is told less. */
const LARGEST_REPLY = 512 * 1024
/** Shorter values are no secrets, and removing them would garble a reply. */
const SHORTEST_SECRET = 4

/** A failure that a model may be told of. */
class ToolFailure extends Error {}

interface Called {
  text: string
  failed?: true
}

/**
 * Runs a tool. Never throws but for a stop: what went wrong is told to the model, without secrets.
 * @param call its id goes with an HTTP action as `Idempotency-Key`
 */
export async function callTool(
  env: Cloudflare.Env,
  { source }: Pick<Tool, 'source'>,
  call: { id: string; arguments: string },
  signal: AbortSignal,
): Promise<Called> {
  let secrets: string[] = []
  try {
    const tool = await openTool(env, source!.tool)
    secrets = secretsIn(tool.secrets)
    const given = argumentsOf(call)
    const reply = tool.mcp
      ? await callMcp(env, { url: tool.mcp.url, headers: tool.secrets }, source!.name!, given, signal)
      : { text: await callHttp(env, tool.http!, tool.secrets, given, call.id, signal) }
    return { ...reply, text: withoutSecrets(reply.text, secrets) }
  } catch (error) {
    signal.throwIfAborted()
    const isTold = error instanceof ToolFailure || (error instanceof ApiError && !error.confidential)
    const text = isTold ? error.message : 'The tool could not be reached.'
    return { text: withoutSecrets(text, secrets), failed: true }
  }
}

/** What no reply may show of headers: their values, and what stands behind a scheme, as in `Bearer TOKEN`. */
const secretsIn = (headers: Headers): string[] =>
  Object.values(headers)
    .flatMap((value) => [value, ...value.split(/[\s;,]+/).slice(1)])
    .filter((secret) => secret.length >= SHORTEST_SECRET)

/** Sends a request. Redirects are refused: one could carry the credentials to another host. */
async function send(
  env: Cloudflare.Env,
  url: string,
  init: RequestInit,
  signal: AbortSignal,
): Promise<Response> {
  requireAllowed(url, env, 'The URL of the tool')
  return outgoing(env, () => fetch(url, { ...init, redirect: 'manual', signal }), signal)
}

// =============================================================================
// HTTP actions. Their URL and body are templates with `${parameters.name}`, as those of connectors.

interface Action {
  method: string
  url: string
  body?: string
}

/** @throws ApiError 400 for an action that could not be called */
export function requireCallable(action: Action, env: Cloudflare.Env): void {
  const { method, url, body } = action
  const [host = ''] = /^\w+:\/\/[^/?#]*/.exec(url) ?? []
  if (namesIn(host, 'parameters').length > 0) {
    throw badRequest('`http.url`: Its host may have no parameter: the model fills them in.')
  }
  const filled = Object.fromEntries([...namesIn(url, 'parameters')].map((name) => [name, 'x']))
  requireAllowed(fillText(url, filled), env, '`http.url`')
  if (body === undefined) return
  if (method === 'GET') throw badRequest('`http.body`: A GET has no body.')
  try {
    fillJson(body, Object.fromEntries(namesIn(body, 'parameters').map((name) => [name, 'x'])))
  } catch {
    throw badRequest('`http.body`: It is not JSON once its parameters are filled in.')
  }
}

/** A value as a part of an address. Dots alone would lead to another path. */
function inAddress(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  if (/^\.{1,2}$/.test(text)) throw new ToolFailure(`\`${text}\` cannot be a part of an address.`)
  return encodeURIComponent(text)
}

async function callHttp(
  env: Cloudflare.Env,
  { method, url, body }: Action,
  headers: Headers,
  given: Record<string, unknown>,
  id: string,
  signal: AbortSignal,
): Promise<string> {
  const parts = Object.fromEntries(Object.entries(given).map(([name, value]) => [name, inAddress(value)]))
  const sent = method === 'GET' ? undefined : body === undefined ? given : fillJson(body, given)
  const response = await send(
    env,
    fillText(url, parts),
    {
      method,
      headers: {
        accept: 'application/json, text/plain;q=0.9',
        'idempotency-key': id,
        ...(sent && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(sent && { body: JSON.stringify(sent) }),
    },
    signal,
  )
  const { text, complete } = await readWholeBody(response.body, LARGEST_REPLY)
  if (!response.ok) throw new ToolFailure(`HTTP status ${response.status}: ${text.slice(0, 2_000)}`)
  if (!complete) throw new ToolFailure(TOO_LARGE)
  return text === '' ? `HTTP status ${response.status}` : text
}

// =============================================================================
// A client of MCP over streamable HTTP (https://modelcontextprotocol.io/specification/2025-06-18/basic/transports): it lists tools
// and calls one. The official client is 81 KB of gzip, of which this needs a tenth: requests, and their replies as JSON or as events.

const PROTOCOL = '2025-06-18'
/** Pages of a list of tools. */
const MOST_PAGES = 10

interface Server {
  url: string
  headers: Headers
}

interface Reply {
  id?: unknown
  result?: unknown
  error?: { message?: unknown } | null
}

/** A session with an MCP server, for one call. */
class McpSession {
  readonly #env: Cloudflare.Env
  readonly #server: Server
  readonly #signal: AbortSignal
  #headers: Headers = {}
  #calls = 0

  constructor(env: Cloudflare.Env, server: Server, signal: AbortSignal) {
    this.#env = env
    this.#server = server
    this.#signal = signal
  }

  async open(): Promise<void> {
    const clientInfo = { name: 'parley', version: '1' }
    const params = { protocolVersion: PROTOCOL, capabilities: {}, clientInfo }
    const { protocolVersion } = await this.request('initialize', params)
    this.#headers['mcp-protocol-version'] = typeof protocolVersion === 'string' ? protocolVersion : PROTOCOL
    const noted = await this.#post({ method: 'notifications/initialized' })
    await noted.body?.cancel()
  }

  /** @returns the result @throws ToolFailure with the server's words */
  async request(method: string, params: Record<string, unknown>): Promise<Record<string, unknown>> {
    const id = ++this.#calls
    const response = await this.#post({ id, method, params })
    const session = response.headers.get('mcp-session-id')
    if (session !== null) this.#headers['mcp-session-id'] = session
    const { result, error } = (await replyTo(id, response, this.#signal)) ?? {}
    if (error) throw new ToolFailure(typeof error.message === 'string' ? error.message : 'The call failed.')
    if (typeof result !== 'object' || result === null) {
      throw new ToolFailure(`The MCP server gave no reply to \`${method}\`.`)
    }
    return result as Record<string, unknown>
  }

  /** Ends the session, where there is one. Its server may refuse that. */
  async close(): Promise<void> {
    if (this.#headers['mcp-session-id'] === undefined) return
    const init = { method: 'DELETE', headers: { ...this.#headers, ...this.#server.headers } }
    const ended = await send(this.#env, this.#server.url, init, this.#signal).catch(() => undefined)
    await ended?.body?.cancel()
  }

  #post(message: Record<string, unknown>): Promise<Response> {
    return send(
      this.#env,
      this.#server.url,
      {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...this.#headers,
          ...this.#server.headers,
        },
        body: JSON.stringify({ jsonrpc: '2.0', ...message }),
      },
      this.#signal,
    )
  }
}

/** The reply to a request: a body of JSON, or one of the events of a stream, which its server may leave open. */
async function replyTo(id: number, response: Response, signal: AbortSignal): Promise<Reply | undefined> {
  const { body, headers, ok, status } = response
  const isEvents = ok && body && headers.get('content-type')?.includes('text/event-stream')
  if (!isEvents) {
    const { text, complete } = await readWholeBody(body, LARGEST_REPLY)
    if (!ok) throw new ToolFailure(`HTTP status ${status}: ${text.slice(0, 2_000)}`)
    if (!complete) throw new ToolFailure(TOO_LARGE)
    return parseObject(text)
  }
  let size = 0
  const count = ({ length }: Uint8Array): void => {
    size += length
    if (size > LARGEST_REPLY) throw new ToolFailure(TOO_LARGE)
  }
  for await (const data of readEvents(body, count, signal)) {
    const reply = parseObject(data)
    if (reply?.id === id) return reply
  }
  return undefined
}

const TOO_LARGE = `The reply has more than ${LARGEST_REPLY} bytes.`

async function inSession<T>(
  env: Cloudflare.Env,
  server: Server,
  signal: AbortSignal,
  work: (session: McpSession) => Promise<T>,
): Promise<T> {
  const session = new McpSession(env, server, signal)
  await session.open()
  try {
    return await work(session)
  } finally {
    await session.close()
  }
}

/** All tools of an MCP server. @throws ApiError 400 if it cannot be reached, with what it said */
export async function listMcpTools(
  env: Cloudflare.Env,
  server: Server,
  signal: AbortSignal,
): Promise<ListedTool[]> {
  try {
    return await inSession(env, server, signal, async (session) => {
      const found: ListedTool[] = []
      let cursor: unknown
      for (let page = 0; page < MOST_PAGES; page++) {
        const { tools, nextCursor } = await session.request('tools/list', cursor ? { cursor } : {})
        if (Array.isArray(tools)) found.push(...tools.flatMap(listed))
        cursor = nextCursor
        if (!cursor) break
      }
      return found
    })
  } catch (error) {
    if (error instanceof ApiError) throw error
    const why = error instanceof ToolFailure ? error.message : 'It could not be reached.'
    throw badRequest(`\`mcp.url\`: ${withoutSecrets(why, secretsIn(server.headers))}`)
  }
}

interface McpTool {
  name?: unknown
  title?: unknown
  description?: unknown
  inputSchema?: unknown
  annotations?: { title?: unknown; readOnlyHint?: unknown } | null
}

const LONGEST_DESCRIPTION = 2_000

function listed({ name, title, description, inputSchema, annotations }: McpTool): ListedTool[] {
  if (typeof name !== 'string' || typeof inputSchema !== 'object' || inputSchema === null) return []
  const shown = [title, annotations?.title].find((each) => typeof each === 'string')
  return [
    {
      name,
      ...(shown !== undefined && { title: String(shown).slice(0, 100) }),
      description: typeof description === 'string' ? description.slice(0, LONGEST_DESCRIPTION) : '',
      parameters: inputSchema as Record<string, unknown>,
      ...(annotations?.readOnlyHint === true && { readOnly: true as const }),
    },
  ]
}

async function callMcp(
  env: Cloudflare.Env,
  server: Server,
  name: string,
  given: Record<string, unknown>,
  signal: AbortSignal,
): Promise<Called> {
  const result = await inSession(env, server, signal, (session) =>
    session.request('tools/call', { name, arguments: given }),
  )
  const { content, structuredContent, isError } = result
  const texts = Array.isArray(content)
    ? content.flatMap((block) => (typeof block?.text === 'string' ? [block.text] : []))
    : []
  const text = texts.length > 0 ? texts.join('\n') : JSON.stringify(structuredContent ?? {})
  return { text, ...(isError === true && { failed: true as const }) }
}
