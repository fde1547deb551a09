/** The tools of the MCP server, with their inputs and results. */
import * as v from 'valibot'
import { requireAccess } from '../../auth/admit'
import { listConversations } from '../../conversation/conversations'
import { once } from '../../lib/once'
import { parseObject } from '../../models/call'
import { passagesOf } from '../../turn/passage'
import { LONGEST_QUESTION } from '../../turn/question-length'
import { askerOf } from '../http/admit-turn'
import { shaped } from '../http/body'
import { INVALID_PARAMS, RpcError, type RpcRequest, readMessage } from '../http/json-rpc'
import { maySearch, searchDocuments } from '../shared/documents'
import { sourcesOf } from '../shared/sources'
import { askStreaming, askWhole } from './ask'
import { fetchDocument } from './resources'
import { failedResult, type ToolResult } from './result'
import { definitions } from './schemas'
import type { Session } from './session'

const MOST_RESULTS = 50
const USUAL_RESULTS = 10

/** Models also write text as a number, and a number as text. */
const text = (longest: number) =>
  v.pipe(v.union([v.string(), v.pipe(v.number(), v.transform(String))]), v.nonEmpty(), v.maxLength(longest))

const limit = (most: number) =>
  v.optional(
    v.pipe(
      v.union([v.number(), v.pipe(v.string(), v.regex(/^\s*\d{1,9}(?:\.0+)?\s*$/), v.transform(Number))]),
      v.integer(),
      v.minValue(1),
      v.maxValue(most),
    ),
  )

/** Arguments as a model wrote them, as JSON in a string too, without those that it left empty. */
function written(given: unknown): unknown {
  const read = typeof given === 'string' ? (parseObject(given) ?? given) : given
  return isRecord(read)
    ? Object.fromEntries(Object.entries(read).filter(([, value]) => value !== null && value !== ''))
    : (read ?? {})
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

/** The inputs of the tools. The JSON schemas of schemas.ts describe the same to clients. */
export const INPUTS = once(() => ({
  search: v.strictObject({
    query: text(LONGEST_QUESTION),
    limit: limit(MOST_RESULTS),
  }),
  fetch: v.strictObject({ id: text(2_000) }),
  ask: v.strictObject({
    question: text(LONGEST_QUESTION),
    conversation_id: v.optional(text(512)),
  }),
  list_conversations: v.strictObject({
    q: v.optional(text(1_000)),
    limit: limit(100),
    cursor: v.optional(text(512)),
  }),
}))

type Name = keyof ReturnType<typeof INPUTS>
type Input<N extends Name> = v.InferOutput<ReturnType<typeof INPUTS>[N]>

/** The tools that the key may call. */
export const listTools = (session: Session) =>
  definitions().filter(({ name }) => name !== 'search' || maySearch(session))

/**
 * Calls a tool. A failure becomes the tool's result, so that the calling model can read the reason.
 * @throws RpcError for a tool that does not exist
 */
export async function callTool(session: Session, params: Record<string, unknown>): Promise<ToolResult> {
  const name = toolName(params)
  try {
    return await run(session, name, written(params.arguments))
  } catch (error) {
    return failedResult(error, session.call.record)
  }
}

/** Streams a call of `ask`, if the client reads streams. @returns undefined for any other message */
export async function streamTool(session: Session, { id, method, params }: RpcRequest) {
  const streams = session.request.headers.get('accept')?.includes('text/event-stream')
  if (method !== 'tools/call' || params.name !== 'ask' || !streams) return undefined
  const input = v.safeParse(INPUTS().ask, written(params.arguments))
  if (!input.success) return undefined
  const token = v.safeParse(Progress(), params._meta)
  try {
    return await askStreaming(
      session,
      id!,
      input.output,
      token.success ? token.output.progressToken : undefined,
    )
  } catch (error) {
    const result = failedResult(error, session.call.record)
    return Response.json({ jsonrpc: '2.0', id, result })
  }
}

/** The conversation that a message asks in, if it names one. */
export function conversationIn(body: unknown): string | undefined {
  const { params } = readMessage(body) ?? {}
  const input = v.safeParse(INPUTS().ask, params?.name === 'ask' ? written(params.arguments) : undefined)
  return input.success ? input.output.conversation_id : undefined
}

const Progress = once(() => v.object({ progressToken: v.union([v.string(), v.number()]) }))

function toolName({ name }: Record<string, unknown>): Name {
  if (typeof name === 'string' && Object.hasOwn(INPUTS(), name)) return name as Name
  throw new RpcError(
    INVALID_PARAMS,
    `There is no tool \`${name}\`. \`tools/list\` names those that there are.`,
  )
}

async function run(session: Session, name: Name, given: unknown): Promise<ToolResult> {
  switch (name) {
    case 'search':
      return search(session, checked(name, given))
    case 'fetch':
      return fetch(session, checked(name, given))
    case 'ask':
      return askWhole(session, checked(name, given))
    case 'list_conversations':
      return list(session, checked(name, given))
  }
}

function checked<N extends Name>(name: N, given: unknown): Input<N> {
  return shaped(INPUTS()[name], given, 'arguments') as Input<N>
}

/** Clients without support for structured content read the same as JSON in the text. */
const structured = (content: Record<string, unknown>): ToolResult => ({
  content: [{ type: 'text', text: JSON.stringify(content) }],
  structuredContent: content,
})

async function search(
  session: Session,
  { query, limit = USUAL_RESULTS }: Input<'search'>,
): Promise<ToolResult> {
  const { env, access, assistant, call } = session
  const { found } = await searchDocuments({ env, access, assistant, record: call.record }, query, limit)
  return structured({
    results: found.map(({ id, title, url, text }) => ({
      id,
      title,
      ...(url !== undefined && { url }),
      text,
    })),
  })
}

async function fetch(session: Session, { id }: Input<'fetch'>): Promise<ToolResult> {
  const { collection, document, text } = await fetchDocument(session, id)
  const [source] = sourcesOf(passagesOf([{ collection, document }]), session.assistant)
  const { title = id, url } = source ?? {}
  return structured({ id, title, text, ...(url !== undefined && { url }), metadata: { collection } })
}

async function list(session: Session, { limit = 20, ...narrowed }: Input<'list_conversations'>) {
  const { env, request, access, user, call } = session
  requireAccess(access, undefined, ['conversations:list', 'documents:search'], undefined, call.record)
  const asker = await askerOf({ request, accesses: [access], userId: user }, 'conversations:list')
  const { conversations, next_cursor: cursor } = await listConversations(env, asker, { ...narrowed, limit })
  return structured({
    conversations: conversations.map(({ id, title, turn_count, created_at, updated_at }) => ({
      id,
      title,
      turn_count,
      created_at,
      updated_at,
    })),
    ...(cursor !== undefined && { next_cursor: cursor }),
  })
}
