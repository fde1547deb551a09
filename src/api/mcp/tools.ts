/** The tools of the MCP server: their schemas, what they answer, and the resources that they lead to. */
import * as v from 'valibot'
import { ADMIN, requireAdmin } from '../../auth/access'
import { requireAccess } from '../../auth/authenticate'
import { chatOf } from '../../conversation/ask'
import { listConversations, listGaps } from '../../conversation/conversations'
import { ApiError, inFull } from '../../errors'
import { once } from '../../lib/once'
import { textOf } from '../../lib/parts'
import { parseObject } from '../../models/call'
import { titleOf } from '../../models/extractive/sentences'
import { quoted } from '../../search/filter/parse'
import { isObject } from '../../search/schema/values'
import type { Turn } from '../../turn/fold'
import { passagesOf } from '../../turn/passage'
import { LONGEST_QUESTION } from '../../turn/question-length'
import { askerWith } from '../http/admit-turn'
import { shaped } from '../http/body'
import type { ChatParties } from '../http/chat-names'
import { type FailedRequest, failureOf } from '../http/deliver'
import {
  INVALID_PARAMS,
  RpcError,
  type RpcId,
  type RpcRequest,
  readMessage,
  rpcFrame,
  rpcResult,
} from '../http/json-rpc'
import type { OpenCall } from '../http/router'
import { askAssistant } from '../shared/assistant'
import {
  type FoundDocument,
  lookUp,
  maySearch,
  requireSearch,
  type SourceFields,
  searchDocuments,
  sourceId,
  sourcesOf,
  wholeText,
} from '../shared/sources'
import { chatReader, streamAnswer, type TurnEncoder, turnEncoder, wholeTurn } from '../shared/stream'

/** One HTTP request, and who sends it to which assistant. */
export interface Session extends ChatParties {
  /** the body as it was sent */
  bodyText: string
}

// =============================================================================
// Documents as resources: `parley://documents/COLLECTION/ID`.

const PAGE = 50
const PREFIX = 'parley://documents/'
/** The number that the specification gives a resource that does not exist. */
const RESOURCE_NOT_FOUND = -32002

export const TEMPLATES = once(() => [
  {
    uriTemplate: `${PREFIX}{collection}/{id}`,
    name: 'document',
    title: 'Document',
    description: 'A document of one of the collections that the assistant searches, as text.',
    mimeType: 'text/plain',
  },
])

const addressOf = (collection: string, id: string): string =>
  `${PREFIX}${encodeURIComponent(collection)}/${encodeURIComponent(id)}`

/**
 * A page of the assistant's documents. The cursor is the number of the next page.
 * @throws ApiError 401 for a key that may ask the assistant, but not search
 */
export async function listResources(
  { env, access, assistant, record }: Session,
  { cursor }: Record<string, unknown>,
) {
  requireSearch({ access, assistant, record })
  const page = Number(cursor || 1)
  if (!Number.isInteger(page) || page < 1) {
    throw new RpcError(INVALID_PARAMS, '`cursor` must be the `nextCursor` of the page before.')
  }
  const { per_page, limit, page: fixed, offset = fixed } = access.embedded
  const perPage = Math.min(PAGE, Number(per_page ?? limit ?? PAGE) || PAGE)
  const found = await lookUp(env, access, assistant, { perPage, page })
  // Every collection has a page of its own.
  const counts = Map.groupBy(found, ({ collection }) => collection)
  const more = offset === undefined && [...counts.values()].some(({ length }) => length >= perPage)
  return {
    resources: found.map(({ collection, document }) => ({
      uri: addressOf(collection, document.id),
      name: sourceId(collection, document.id),
      title: titleOf(document) || document.id,
      mimeType: 'text/plain',
    })),
    ...(more && { nextCursor: String(page + 1) }),
  }
}

/** @throws RpcError */
export async function readResource(session: Session, { uri }: Record<string, unknown>) {
  if (typeof uri !== 'string') throw new RpcError(INVALID_PARAMS, '`uri` must be a string.')
  const place = placeOf(uri)
  const found = place && (await findDocument(session, place))
  if (!found) throw new RpcError(RESOURCE_NOT_FOUND, `There is no resource \`${uri}\` here.`)
  return { contents: [{ uri, mimeType: 'text/plain', text: textOfDocument(session, found) }] }
}

interface Place {
  collection: string
  id: string
}

function placeOf(uri: string): Place | undefined {
  if (!uri.startsWith(PREFIX)) return undefined
  const [collection, id, ...rest] = uri.slice(PREFIX.length).split('/').map(decoded)
  return collection && id && rest.length === 0 ? { collection, id } : undefined
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return ''
  }
}

/** @param name `COLLECTION/ID`, as `search` gives it. Names of collections have no slash */
async function fetchDocument(session: Session, name: string) {
  const slash = name.indexOf('/')
  const place = { collection: name.slice(0, Math.max(0, slash)), id: name.slice(slash + 1) }
  const found = slash > 0 ? await findDocument(session, place) : undefined
  if (!found)
    throw new ApiError(404, `There is no document \`${name}\`. Pass an \`id\` that \`search\` gave.`)
  return { ...found, text: textOfDocument(session, found) }
}

async function findDocument(
  { env, access, assistant }: Session,
  { collection, id }: Place,
): Promise<FoundDocument | undefined> {
  const found = await lookUp(env, access, assistant, { filterBy: `id:=${quoted(id)}`, perPage: 1 })
  return found.find((each) => each.collection === collection && each.document.id === id)
}

const textOfDocument = ({ assistant }: Session, { document }: FoundDocument): string =>
  wholeText(document, ['id', assistant.url_field])

// =============================================================================
// The descriptions of the tools for clients.

/** A schema, or what a text says. */
type Described = object | string

const arrayOf = (items: object) => ({ type: 'array', items })

/** @param required names, separated by blanks */
const object = (required: string, properties: Record<string, Described>) => ({
  type: 'object',
  properties: Object.fromEntries(
    Object.entries(properties).map(([name, given]) => [
      name,
      typeof given === 'string' ? { type: 'string', description: given } : given,
    ]),
  ),
  required: required.split(' ').filter(Boolean),
})

/** An input has no further properties. Outputs may get more. */
const input = (...given: Parameters<typeof object>) => ({ ...object(...given), additionalProperties: false })

const READS = { readOnlyHint: true, openWorldHint: false }
const INTEGER = { type: 'integer' }

const definitions = once(() => {
  const id = '`COLLECTION/ID`; pass it to `fetch`.'
  const title = 'Title.'
  const url = 'Address.'
  const limit = (most: number) => ({ type: 'integer', minimum: 1, maximum: most })
  return [
    {
      name: 'search',
      title: 'Search documents',
      description: 'Finds documents by words and by meaning, the best first.',
      inputSchema: input('query', { query: 'Words or a question.', limit: limit(50) }),
      outputSchema: object('results', {
        results: arrayOf(object('id title text', { id, title, url, text: 'Text, cut if it is long.' })),
      }),
      annotations: READS,
    },
    {
      name: 'fetch',
      title: 'Read a document',
      description: 'Returns the whole text of a document that `search` or `ask` named.',
      inputSchema: input('id', { id }),
      outputSchema: object('id title text metadata', {
        id,
        title,
        text: 'The whole text.',
        url,
        metadata: object('collection', { collection: 'Collection.' }),
      }),
      annotations: READS,
    },
    {
      name: 'ask',
      title: 'Ask a question',
      description:
        'Answers a question from the documents and names its sources. Pass `conversation_id` of an earlier answer to ask a follow-up.',
      inputSchema: input('question', {
        question: 'A question in plain language.',
        conversation_id: '`conversation_id` of the answer to go on from.',
      }),
      outputSchema: object('conversation_id turn answer sources', {
        conversation_id: 'Names the conversation.',
        turn: INTEGER,
        answer: 'The answer.',
        sources: arrayOf(object('id title cited', { id, title, url, cited: { type: 'boolean' } })),
        followups: arrayOf({ type: 'string' }),
      }),
      // Each question is stored as a turn of its conversation.
      annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
    },
    {
      name: 'list_conversations',
      title: 'List conversations',
      description: 'Lists earlier conversations of whoever holds the key, the last used first.',
      inputSchema: input('', {
        q: 'Words of a question or its answer.',
        limit: limit(100),
        cursor: '`next_cursor` of the page before.',
      }),
      outputSchema: object('conversations', {
        conversations: arrayOf(
          object('id title turn_count created_at updated_at', {
            id: 'Pass it to `ask` as `conversation_id`.',
            title: 'The first question.',
            turn_count: INTEGER,
            created_at: INTEGER,
            updated_at: INTEGER,
          }),
        ),
        next_cursor: 'Of the next page.',
      }),
      annotations: READS,
    },
    {
      name: 'gaps',
      title: 'List what the documents lack',
      description:
        'Lists questions that were declined, answered without a source or with a warning, rated down or asked again, grouped by meaning, the most asked first. With the documents that come nearest, and a later answer where there is one.',
      inputSchema: input('', { limit: limit(MOST_GAPS) }),
      outputSchema: object('turns gaps', {
        turns: INTEGER,
        since: INTEGER,
        gaps: arrayOf({ type: 'object' }),
      }),
      annotations: READS,
    },
  ]
})

// =============================================================================
// OAuth's metadata of a protected resource (RFC 9728). It names no authorization server, since Parley's keys are made by its
// operator. A client then asks for a token instead of starting a login.

/** Address of the server that a request is for, or that its metadata describes. */
export function resourceAddress({ request, path }: Pick<OpenCall, 'request' | 'path'>): string {
  const { assistant } = path
  return new URL(assistant === undefined ? '/mcp' : `/mcp/${encodeURIComponent(assistant)}`, request.url).href
}

export const protectedResource = (call: OpenCall) => ({
  resource: resourceAddress(call),
  resource_name: 'Parley',
  bearer_methods_supported: ['header'],
})

// =============================================================================
// Results of tools.

interface ToolResult {
  content: { type: 'text'; text: string }[]
  structuredContent?: Record<string, unknown>
  isError?: true
}

/** Words that a model reads: what went wrong, and when a retry can help. */
const failedText = (text: string): ToolResult => ({ content: [{ type: 'text', text }], isError: true })

function failedResult(error: unknown, request: FailedRequest): ToolResult {
  const failure = failureOf(error, request)
  const { retryAfter } = failure
  return failedText(
    inFull(failure) + (retryAfter === undefined ? '' : ` Try again in ${retryAfter} seconds.`),
  )
}

// =============================================================================
// The tool `ask`: a question to the assistant, with progress while its answer is written.

interface AskInput {
  question: string
  conversation_id?: string | undefined
}

const ask = (session: Session, { question, conversation_id: conversationId }: AskInput) =>
  askAssistant({ ...session, question, chat: chatOf(conversationId), protocol: 'mcp' })

/** @throws ApiError */
async function askWhole(session: Session, input: AskInput): Promise<ToolResult> {
  const { events, resume } = await ask(session, input)
  return answerOf(await wholeTurn(chatReader(events, resume)), session.assistant)
}

/** Writes a turn as progress notifications and one reply. @param token of the client; absent: it wants no notifications */
export const askEncoder = (id: RpcId, fields: SourceFields, token: RpcId | undefined): TurnEncoder =>
  turnEncoder((turn) => {
    let progress = 0
    /** @param steps the progress so far. The total is unknown, because the length of the answer is */
    const notify = (text: string, steps: number): string => {
      if (token === undefined || text === '') return ''
      progress += steps
      const params = { progressToken: token, progress, message: text }
      return rpcFrame({ jsonrpc: '2.0', method: 'notifications/progress', params })
    }
    return {
      retrieval: () => notify(`${turn.passages.length} documents found.`, 1),
      delta: ({ text }) => notify(text, text.length),
      done: () => rpcFrame(rpcResult(id, answerOf(turn, fields))),
      fail: (failure) => rpcFrame(rpcResult(id, failedText(inFull(failure)))),
    }
  })

/** The whole answer, with the cited sources in the text, or all if none is cited. @param turn one that is done */
export function answerOf(turn: Turn, fields: SourceFields): ToolResult {
  const answer = textOf(turn.answer)
  const cited = new Set(
    turn.citations.map(({ collection, document_id }) => sourceId(collection, document_id)),
  )
  const sources = sourcesOf(turn.passages, fields).map(({ id, title, url }) => ({
    id,
    title,
    ...(url !== undefined && { url }),
    cited: cited.has(id),
  }))
  const listed = sources.filter(({ cited: isCited }) => isCited || cited.size === 0)
  const lines = listed.map(({ id, title, url }) => `- ${title} (${url ?? id})`)
  const said = lines.length === 0 ? answer : `${answer}\n\nSources:\n${lines.join('\n')}`
  return {
    content: [{ type: 'text', text: said }],
    structuredContent: {
      conversation_id: turn.conversationId,
      turn: turn.turn,
      answer,
      sources,
      ...(turn.suggestions && { followups: turn.suggestions }),
    },
  }
}

// =============================================================================
// The tools of the MCP server, with their inputs and results.

const MOST_RESULTS = 50
const USUAL_RESULTS = 10
const MOST_GAPS = 200
const USUAL_GAPS = 20

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
  return isObject(read)
    ? Object.fromEntries(Object.entries(read).filter(([, value]) => value !== null && value !== ''))
    : (read ?? {})
}

/** The inputs of the tools. The JSON schemas above describe the same to clients. */
const INPUTS = once(() => ({
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
  gaps: v.strictObject({ limit: limit(MOST_GAPS) }),
}))

type Name = keyof ReturnType<typeof INPUTS>
type Input<N extends Name> = v.InferOutput<ReturnType<typeof INPUTS>[N]>

/** The tools that the key may call. */
export const listTools = (session: Session) =>
  definitions().filter(({ name }) => {
    if (name === 'gaps') return session.access.owner === ADMIN.owner
    return name !== 'search' || maySearch(session)
  })

/**
 * Calls a tool. A failure becomes the tool's result, so that the calling model can read the reason.
 * @throws RpcError for a tool that does not exist
 */
export async function callTool(session: Session, params: Record<string, unknown>): Promise<ToolResult> {
  const { name } = params
  if (typeof name !== 'string' || !Object.hasOwn(INPUTS(), name)) {
    const known = '`tools/list` names those that there are.'
    throw new RpcError(INVALID_PARAMS, `There is no tool \`${name}\`. ${known}`)
  }
  try {
    const input = shaped(INPUTS()[name as Name], written(params.arguments), 'arguments')
    return await CALLS[name as Name](session, input as never)
  } catch (error) {
    return failedResult(error, session.record)
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
    const encoder = askEncoder(id!, session.assistant, token.success ? token.output.progressToken : undefined)
    return await streamAnswer(await ask(session, input.output), encoder, { opensAt: 'once' })
  } catch (error) {
    const result = failedResult(error, session.record)
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

/** Clients without support for structured content read the same as JSON in the text. */
const structured = (content: Record<string, unknown>): ToolResult => ({
  content: [{ type: 'text', text: JSON.stringify(content) }],
  structuredContent: content,
})

async function search(
  session: Session,
  { query, limit = USUAL_RESULTS }: Input<'search'>,
): Promise<ToolResult> {
  const { found } = await searchDocuments(session, query, limit)
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
  const { env, access, record } = session
  requireAccess(access, undefined, ['conversations:list', 'documents:search'], undefined, record)
  const asker = await askerWith(session, 'conversations:list')
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

async function gaps(session: Session, { limit = USUAL_GAPS }: Input<'gaps'>): Promise<ToolResult> {
  requireAdmin(session.access, 'sees gaps here')
  const found = await listGaps(session.env, await askerWith(session, 'conversations:list'))
  return structured({ ...found, gaps: found.gaps.slice(0, limit) })
}

const CALLS: { [N in Name]: (session: Session, input: Input<N>) => Promise<ToolResult> } = {
  search,
  fetch,
  ask: askWhole,
  list_conversations: list,
  gaps,
}
