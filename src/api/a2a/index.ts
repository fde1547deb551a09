/**
 * Agent2Agent, revision 1.0, over JSON-RPC (https://a2a-protocol.org): an assistant as another agent's agent. Messages to it are
 * tasks that end with an artifact, the answer.
 */
import * as v from 'valibot'
import { handleOf, isSealed } from '../../conversation/conversation-id'
import { ApiError } from '../../errors'
import { once } from '../../lib/once'
import { isTerminal } from '../../turn/events'
import { parseJson, readText } from '../http/body'
import { type ChatParties, findChat, openParties } from '../http/chat-names'
import {
  INVALID_PARAMS,
  METHOD_NOT_FOUND,
  PARSE_ERROR,
  RpcError,
  type RpcId,
  type RpcRequest,
  readMessage,
  rpcError,
  rpcRefusal,
  rpcResult,
} from '../http/json-rpc'
import { type Answered, type App, type OpenCall, openRoute, register } from '../http/router'
import { type AssistantQuestion, askAssistant, endedTurnOf, runningTurn, stopChat } from '../shared/assistant'
import { requireOwn } from '../shared/foreign'
import { chatReader, streamAnswer, streamTurn, wholeTurn } from '../shared/stream'
import { endedTask, task, taskEncoder } from './encoder'

const CARD = '/.well-known/agent-card.json'

const REFUSED = { refuse: (error: unknown, { record }: OpenCall) => rpcRefusal(error, record) }

export const mountA2a = (app: App): void =>
  register(app, [
    openRoute('GET', CARD, cardOf, REFUSED),
    openRoute('GET', `/a2a/:assistant${CARD}`, cardOf, REFUSED),
    openRoute('POST', '/a2a/:assistant', serve, REFUSED),
  ])

/** A2A's numbers for its own errors. */
const TASK_NOT_FOUND = -32001
const TASK_NOT_CANCELABLE = -32002
const UNSUPPORTED_OPERATION = -32004

const Id = once(() => v.pipe(v.string(), v.maxLength(512)))

const Message = once(() =>
  v.looseObject({
    messageId: v.pipe(Id(), v.nonEmpty()),
    contextId: v.optional(Id()),
    taskId: v.optional(Id()),
    role: v.literal('ROLE_USER'),
    parts: v.pipe(
      v.array(v.looseObject({ text: v.string('Only parts with `text` can be read here.') })),
      v.check((parts) => parts.some(({ text }) => text.trim() !== ''), 'Expected a question.'),
    ),
  }),
)

async function serve(call: OpenCall): Promise<Answered> {
  const read = once(() => readText(call.request))
  const parties = await openParties(call, {
    chat: async () => ({ name: contextIn(parseJson(await read())) }),
  })
  const bodyText = await read()
  const body = parsed(bodyText)
  const message = readMessage(body)
  if (message?.id === undefined) return new Response(null, { status: 202 })
  const { id } = message
  try {
    requireOwn(body, 'a2a', parties.assistant.name)
    const result = await dispatch(parties, message, bodyText)
    return result instanceof Response ? result : rpcResult(id, result)
  } catch (error) {
    return rpcError(error, id, call.record)
  }
}

/** The context of a question. */
function contextIn(body: unknown): string | undefined {
  const { method, params } = readMessage(body) ?? {}
  const read = v.safeParse(Message(), method?.startsWith('Send') ? params?.message : undefined)
  return read.success ? read.output.contextId : undefined
}

function parsed(text: string): unknown {
  try {
    return parseJson(text)
  } catch (error) {
    throw error instanceof ApiError ? new RpcError(PARSE_ERROR, error.message) : error
  }
}

async function dispatch(
  parties: ChatParties,
  { method, params, id }: RpcRequest,
  bodyText: string,
): Promise<unknown> {
  switch (method) {
    case 'SendMessage': {
      const { events, resume, conversationId } = await ask(parties, params, bodyText)
      const turn = await wholeTurn(chatReader(events, resume))
      return { task: endedTask(turn, parties.assistant, await handleOf(parties.env, conversationId)) }
    }
    case 'SendStreamingMessage': {
      const answering = await ask(parties, params, bodyText)
      const context = await handleOf(parties.env, answering.conversationId)
      return streamAnswer(answering, taskEncoder(id!, parties.assistant, context), { opensAt: 'event' })
    }
    case 'SubscribeToTask':
      return followTask(parties, params, id!)
    case 'GetTask':
      return readTask(parties, params)
    case 'CancelTask':
      return cancelTask(parties, params)
    default:
      throw new RpcError(METHOD_NOT_FOUND, `There is no method \`${method}\` here.`)
  }
}

async function ask(parties: ChatParties, params: Record<string, unknown>, bodyText: string) {
  const read = v.safeParse(Message(), params.message, { abortEarly: true })
  if (!read.success) {
    const [issue] = read.issues
    const place = ['message', v.getDotPath(issue)].filter(Boolean).join('.')
    throw new RpcError(INVALID_PARAMS, `\`${place}\`: ${issue.message}`)
  }
  const { contextId, taskId, parts } = read.output
  if (taskId) {
    await readTask(parties, { id: taskId })
    throw new RpcError(
      UNSUPPORTED_OPERATION,
      'A task takes no further message. Leave out `taskId`: `contextId` goes on from its answer.',
    )
  }
  const question = parts.map(({ text }) => text).join('\n')
  const asked = { ...parties, question, protocol: 'a2a', bodyText }
  return contextId ? askIn(contextId, asked) : askAssistant(asked)
}

/**
 * Asks in a context. A client may make up the name of a new context. An id that this server made may belong to a
 * first answer that is still being written: nothing of it is stored yet, so only its conversation knows whether it is
 * the caller's.
 * @throws RpcError for an id that this server made and that is not open to the caller
 */
async function askIn(contextId: string, asked: AssistantQuestion) {
  const chat = await findChat(asked, contextId, undefined, true)
  const isNew = chat.named && !(await isSealed(asked.env, contextId))
  if (isNew || (chat.conversationId === contextId && !chat.seen)) return askAssistant({ ...asked, chat })
  try {
    return await askAssistant({
      ...asked,
      chat: chat.vouched || chat.seen ? chat : { conversationId: contextId },
    })
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error
    throw new RpcError(TASK_NOT_FOUND, 'There is no such context. Leave out `contextId` to begin one.')
  }
}

const noTask = (): RpcError => new RpcError(TASK_NOT_FOUND, 'There is no such task.')

/** The place of a task's turn. @throws RpcError for an id that Parley did not make */
function placeOf({ id }: Record<string, unknown>): { context: string; turn: number } {
  const [, context, turn] = /^([0-9a-f-]{36,45})\.(\d{1,9})$/.exec(String(id)) ?? []
  if (context === undefined) throw noTask()
  return { context, turn: Number(turn) }
}

/** The number of the turn that is being written in a context. @returns undefined if none is */
async function runningIn(parties: ChatParties, context: string): Promise<number | undefined> {
  const read = await runningTurn(parties, context)
  if (!read) return undefined
  try {
    const last = (await read())?.at(-1)
    return last && !isTerminal(last) ? last.turn : undefined
  } finally {
    await read.stop()
  }
}

/** @throws RpcError for a task that does not exist or is not the caller's */
async function readTask(parties: ChatParties, params: Record<string, unknown>) {
  const { context, turn } = placeOf(params)
  const id = String(params.id)
  if ((await runningIn(parties, context)) === turn) return task(context, id, 'TASK_STATE_WORKING')
  const ended = await endedTurnOf(parties, context, turn)
  if (!ended) throw noTask()
  return endedTask(ended, parties.assistant, context)
}

/** The running answer of a task, from its beginning. @throws RpcError for a task that is unknown or has ended */
async function followTask(
  parties: ChatParties,
  params: Record<string, unknown>,
  id: RpcId,
): Promise<Response> {
  const { context, turn } = placeOf(params)
  if ((await runningIn(parties, context)) === turn) {
    const read = await runningTurn(parties, context)
    const encoder = taskEncoder(id, parties.assistant, context)
    if (read) return streamTurn(read, encoder, { headers: {}, opensAt: 'once' })
  }
  await readTask(parties, params)
  throw new RpcError(UNSUPPORTED_OPERATION, 'This task has ended. Read it with `GetTask`.')
}

/** Stops the answer of this task only, not of a later one. @throws RpcError for a task that is unknown or has ended */
async function cancelTask(parties: ChatParties, params: Record<string, unknown>) {
  const { context, turn } = placeOf(params)
  if ((await runningIn(parties, context)) === turn && (await stopChat(parties, context))) {
    return task(context, String(params.id), 'TASK_STATE_CANCELED')
  }
  await readTask(parties, params)
  throw new RpcError(TASK_NOT_CANCELABLE, 'This task has ended.')
}

// =============================================================================
// The card by which other agents find an assistant. It needs a key, because it reveals which assistants exist.

/** @throws ApiError 401, 404 */
async function cardOf(call: OpenCall) {
  const { assistant } = await openParties(call)
  const { name, questions } = assistant
  const url = new URL(`/a2a/${encodeURIComponent(name)}`, call.request.url).href
  return {
    name,
    description: `Answers questions from the documents of ${name}, and names its sources.`,
    version: '0.1.0',
    supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: { streaming: true, pushNotifications: false },
    securitySchemes: { bearer: { httpAuthSecurityScheme: { scheme: 'Bearer' } } },
    securityRequirements: [{ schemes: { bearer: { list: [] } } }],
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [
      {
        id: 'ask',
        name: 'Ask a question',
        description: 'Answers a question in plain language; follow-ups go on in the same context.',
        tags: ['search', 'question answering'],
        examples: questions,
      },
    ],
  }
}
