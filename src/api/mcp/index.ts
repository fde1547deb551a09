/**
 * The Model Context Protocol over streamable HTTP (https://modelcontextprotocol.io/specification).
 *
 * The server is stateless: it creates no sessions, and each request brings its key.
 *
 * The official SDK needs 50 KB of gzip without its validator, 91 KB with it. This is a seventh of the Worker's whole
 * budget, so these few methods follow the specification directly, and tests check them with the SDK's own client.
 */
import { requireFewSearches, requireRate } from '../../auth/authenticate'
import { ApiError } from '../../errors'
import { once } from '../../lib/once'
import { parseJson, readText } from '../http/body'
import { openParties } from '../http/chat-names'
import {
  INVALID_REQUEST,
  METHOD_NOT_FOUND,
  PARSE_ERROR,
  RpcError,
  type RpcRequest,
  readMessage,
  rpcError,
  rpcRefusal,
  rpcResult,
} from '../http/json-rpc'
import { type Answered, type App, type OpenCall, openRoute, register } from '../http/router'
import type { Session } from './tools'
import * as tools from './tools'

const METADATA = '/.well-known/oauth-protected-resource'

/** An error as JSON-RPC. A 401 says where the metadata is (RFC 9728, section 5.1). */
function refuse(error: unknown, call: OpenCall): Response {
  const refusal = rpcRefusal(error, call.record)
  if (refusal.status === 401) {
    const { origin, pathname } = new URL(tools.resourceAddress(call))
    refusal.headers.set(
      'www-authenticate',
      `Bearer realm="Parley", resource_metadata="${origin}${METADATA}${pathname}"`,
    )
  }
  return refusal
}

export const mountMcp = (app: App): void =>
  register(app, [
    openRoute('POST', '/mcp', serve, { refuse }),
    openRoute('POST', '/mcp/:assistant', serve, { refuse }),
    ...['', '/mcp', '/mcp/:assistant'].map((path) =>
      openRoute('GET', METADATA + path, tools.protectedResource),
    ),
  ])

/** Revisions of the specification that this server speaks, the newest first. */
const VERSIONS = ['2025-11-25', '2025-06-18', '2025-03-26']

/** Messages in one request, which revision 2025-03-26 allows. */
const MOST_MESSAGES = 20

async function serve(call: OpenCall): Promise<Answered> {
  const read = once(() => readText(call.request))
  const parties = await openParties(call, {
    chat: async () => ({ name: tools.conversationIn(parsed(await read())), onlyId: true }),
  })
  requireVersion(call.request)
  const bodyText = await read()
  const body = parsed(bodyText)
  const session: Session = { ...parties, bodyText }
  if (Array.isArray(body)) return serveBatch(session, body)
  const message = readMessage(body)
  if (message?.id === undefined) return new Response(null, { status: 202 })
  const streamed = await tools.streamTool(session, message)
  return streamed ?? reply(session, message)
}

/** @throws RpcError for a revision that this server does not speak. Requests before the first choice name none */
function requireVersion({ headers }: Request): void {
  const version = headers.get('mcp-protocol-version')
  if (version === null || VERSIONS.includes(version)) return
  throw new RpcError(
    INVALID_REQUEST,
    `\`MCP-Protocol-Version\`: ${version} is not spoken here. Use one of ${VERSIONS.join(', ')}.`,
  )
}

function parsed(text: string): unknown {
  try {
    return parseJson(text)
  } catch (error) {
    throw error instanceof ApiError
      ? new RpcError(PARSE_ERROR, [error.message, error.detail].filter(Boolean).join(' '))
      : error
  }
}

/** Methods that search. */
const SEARCHING = ['tools/call', 'resources/list', 'resources/read']

/** Each request counts towards the key's rate. A question needs a request of its own. */
async function serveBatch(session: Session, body: unknown[]): Promise<Answered> {
  if (body.length === 0 || body.length > MOST_MESSAGES) {
    throw new RpcError(INVALID_REQUEST, `Send 1 to ${MOST_MESSAGES} messages in one request.`)
  }
  const messages = body.map(readMessage)
  if (messages.some((message) => message?.params.name === 'ask')) {
    throw new RpcError(INVALID_REQUEST, 'Send a call of `ask` in a request of its own.')
  }
  const searching = messages.filter((message) => message && SEARCHING.includes(message.method))
  requireFewSearches(session.access, searching.length)
  await requireRate(session.env, 'RATE_LIMIT', session.access, messages.length - 1)
  const replies: unknown[] = []
  for (const message of messages) {
    if (message?.id !== undefined) replies.push(await reply(session, message))
  }
  return replies.length === 0 ? new Response(null, { status: 202 }) : replies
}

async function reply(session: Session, message: RpcRequest): Promise<object> {
  const id = message.id!
  try {
    return rpcResult(id, await dispatch(session, message))
  } catch (error) {
    return rpcError(error, id, session.record)
  }
}

async function dispatch(session: Session, { method, params }: RpcRequest): Promise<unknown> {
  switch (method) {
    case 'initialize':
      return initialized(session, params)
    case 'ping':
      return {}
    case 'tools/list':
      return { tools: tools.listTools(session) }
    case 'tools/call':
      return tools.callTool(session, params)
    case 'resources/list':
      return tools.listResources(session, params)
    case 'resources/templates/list':
      return { resourceTemplates: tools.TEMPLATES() }
    case 'resources/read':
      return tools.readResource(session, params)
    default:
      throw new RpcError(METHOD_NOT_FOUND, `There is no method \`${method}\` here.`)
  }
}

/** A client that asks for another revision gets the newest, and decides whether to continue. */
function initialized({ assistant }: Session, { protocolVersion }: Record<string, unknown>) {
  return {
    protocolVersion: VERSIONS.find((version) => version === protocolVersion) ?? VERSIONS[0],
    capabilities: { tools: {}, resources: {} },
    serverInfo: { name: 'parley', title: `Parley: ${assistant.name}`, version: '0.1.0' },
    instructions:
      'Call `ask` for an answer with its sources; pass `conversation_id` of its result to go on. ' +
      'Call `search` and then `fetch` to read documents yourself.',
  }
}
