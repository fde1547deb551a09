/** Reads the common parts of requests to both of OpenAI's APIs. Pure. */

import * as v from 'valibot'
import { type Access, ASK_ACTIONS, SEARCH_ACTION } from '../../auth/access'
import { admit } from '../../auth/authenticate'
import { openRow } from '../../conversation/conversations'
import type { MemoryRow } from '../../conversation/messages'
import { ApiError } from '../../errors'
import { namesOf } from '../../lib/nearest'
import { once } from '../../lib/once'
import { contentOf, type Part, type ToolCallPart } from '../../lib/parts'
import type { AnswerForm } from '../../models/language-model'
import type { Tool } from '../../tools/tool'
import { requireSchema } from '../../turn/form'
import type { TranscriptMessage } from '../../turn/look-back'
import { LONGEST_QUESTION, QUESTION_TOO_LONG } from '../../turn/question-length'
import type { Asker, Decision } from '../../turn/request'
import { askerWith, namedUser } from '../http/admit-turn'
import { shaped } from '../http/body'
import { presentedKey } from '../http/cors'
import type { OpenCall } from '../http/router'
import { type PageFunction, pageTool } from '../shared/assistant'
import { textIn } from '../shared/foreign'

export const LONGEST_ID = 512

/** The most tokens of an answer. Some clients send -1 where they mean no limit of their own. */
export const Tokens = once(() =>
  v.pipe(
    v.number(),
    v.safeInteger(),
    v.check((tokens) => tokens >= 1 || tokens === -1, 'The number of tokens must be 1 or more.'),
    v.transform((tokens) => (tokens === -1 ? undefined : tokens)),
  ),
)

const named = () => ({
  name: v.optional(v.pipe(v.string(), v.regex(/^[\w-]{1,64}$/)), 'answer'),
  schema: v.record(v.string(), v.unknown()),
  strict: v.nullish(v.boolean()),
})

/** The form of an answer, as both APIs ask for it: a schema stands in `json_schema`, or beside the type. */
export const Format = once(() => {
  const schema = named()
  return v.variant('type', [
    v.looseObject({ type: v.literal('text') }),
    v.looseObject({ type: v.literal('json_object') }),
    v.pipe(
      v.object({ type: v.literal('json_schema'), json_schema: v.object(schema) }),
      v.transform(({ type, json_schema }) => ({ type, ...json_schema })),
    ),
    v.object({ type: v.literal('json_schema'), ...schema }),
  ])
})

/** @throws InvalidParameter for a schema that cannot be checked @param param where the format stands */
export function formOf(
  format: v.InferOutput<ReturnType<typeof Format>> | null | undefined,
  param: string,
): AnswerForm | undefined {
  if (format == null || format.type === 'text') return undefined
  if (format.type === 'json_object') return { type: 'json' }
  const { name, schema, strict } = format
  inParameter(param, () => requireSchema(schema))
  return { type: 'schema', name, schema, ...(strict != null && { strict }) }
}

const Called = once(() =>
  v.pipe(
    v.unknown(),
    v.check(
      (choice) => choice == null || choice === 'auto' || choice === 'none',
      'The model decides itself which tools it calls. Accepted: `auto` and `none`.',
    ),
  ),
)

/** Functions of the caller that a request may bring. */
const MOST_TOOLS = 64

const fn = () => ({
  name: v.pipe(v.string(), v.regex(/^[\w-]{1,64}$/)),
  description: v.nullish(v.pipe(v.string(), v.maxLength(4_000))),
  parameters: v.nullish(v.record(v.string(), v.unknown())),
})

/** A function that the caller runs, as each of the APIs has it. Tools of other types are OpenAI's own. */
const Offered = once(() =>
  v.union([
    v.looseObject({ type: v.literal('function'), function: v.looseObject(fn()) }),
    v.looseObject({ type: v.literal('function'), ...fn() }),
    v.looseObject({ type: v.pipe(v.string(), v.notValue('function')) }),
  ]),
)

/** The caller's functions as tools whose calls the caller runs. @throws InvalidParameter for a schema that cannot be checked */
export const pageTools = (
  offered: readonly v.InferOutput<ReturnType<typeof Offered>>[] | null | undefined,
): Pick<ModelQuestion, 'tools'> => {
  const tools = (offered ?? []).flatMap((tool, at) => {
    if (tool.type !== 'function') return []
    const given = ('function' in tool ? tool.function : tool) as PageFunction
    return [inParameter(`tools.${at}`, () => pageTool(given))]
  })
  return tools.length > 0 ? { tools } : {}
}

/** What is checked by a rule that all protocols share. @throws InvalidParameter @param param what it is about */
function inParameter<T>(param: string, check: () => T): T {
  try {
    return check()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw new InvalidParameter(error.message, param)
  }
}

const Penalty = () => v.nullish(v.pipe(v.number(), v.minValue(-2), v.maxValue(2)))

/** How hard a reasoning model thinks. */
export const Effort = once(() => v.nullish(v.pipe(v.string(), v.regex(/^[a-z]{1,20}$/))))

/** Settings that the APIs of chat and of text completions have. */
export const SETTINGS = namesOf(`
  temperature top_p seed frequency_penalty presence_penalty stop max_tokens
`)

export const settings = once(() => {
  const Stop = v.pipe(v.string(), v.minLength(1), v.maxLength(500))
  return {
    n: v.nullish(v.literal(1, 'One answer can be written at a time: `n` must be 1.')),
    seed: v.nullish(v.pipe(v.number(), v.safeInteger())),
    frequency_penalty: Penalty(),
    presence_penalty: Penalty(),
    stop: v.nullish(
      v.pipe(
        v.union([Stop, v.pipe(v.array(Stop), v.maxLength(16))]),
        v.transform((stop) => (stop.length === 0 ? undefined : stop)),
      ),
    ),
    max_tokens: v.nullish(Tokens()),
  }
})

/** Open WebUI describes the user by an object. */
const NamedUser = once(() =>
  v.pipe(
    v.looseObject({ id: v.optional(v.string()) }),
    v.transform(({ id }) => id ?? ''),
  ),
)

/** Properties that both APIs have. */
export const common = once(() => ({
  model: v.pipe(v.string(), v.minLength(1)),
  stream: v.nullish(v.boolean()),
  temperature: v.nullish(v.pipe(v.number(), v.minValue(0), v.maxValue(2))),
  top_p: v.nullish(v.pipe(v.number(), v.minValue(0), v.maxValue(1))),
  user: v.nullish(v.union([v.string(), NamedUser()])),
  tool_choice: v.optional(Called()),
  tools: v.nullish(v.pipe(v.array(Offered()), v.maxLength(MOST_TOOLS))),
  store: v.nullish(v.boolean()),
}))

export interface ModelQuestion {
  /** name of an assistant */
  model: string
  question: string
  /** what was said before, oldest first, without instructions */
  transcript: TranscriptMessage[]
  /** functions that the caller runs; absent: none */
  tools?: Tool[]
  /** what was done for the question already: calls of those functions, and their results */
  done?: Part[]
  /** results of calls for which the turn `after` waits; there is no question then */
  results?: Record<string, Decision>
  /** the texts of messages with the roles `system` and `developer` */
  instructions: string
  stream: boolean
  user?: string
  /** present: neither the question nor its answer is to be kept */
  unstored?: true
  /** the client's name for the conversation, or its id */
  conversation?: string
  /** the turn that the question continues from; absent: the last one */
  after?: number
  /** the form that the answer has to have; absent: text */
  form?: AnswerForm
  /** settings of the language model, by the names that the request has for them */
  sampling: Record<string, unknown>
  /** names of other parameters, which nothing here makes use of */
  ignored: string[]
}

/** An error in one parameter of the request. */
export class InvalidParameter extends ApiError {
  constructor(
    message: string,
    readonly param: string | null,
    /** OpenAI's word for the fault */
    readonly type?: string,
    status = 400,
  ) {
    super(status, message)
  }
}

/** @throws InvalidParameter for the first fault */
export const checkBody = <S extends v.GenericSchema>(schema: S, body: unknown): v.InferOutput<S> =>
  shaped(schema, body, null, (message, param) => new InvalidParameter(message, param))

/** A call of a tool in an earlier answer. */
const ToolCall = () =>
  v.looseObject({
    id: v.string(),
    function: v.looseObject({ name: v.string(), arguments: v.string() }),
  })

/** Properties of a message in a list. */
export const message = () => ({
  content: v.optional(v.unknown()),
  tool_calls: v.nullish(v.array(ToolCall())),
  tool_call_id: v.optional(v.string()),
})

export interface SaidMessage {
  role: string
  content?: unknown
  tool_calls?: v.InferOutput<ReturnType<typeof ToolCall>>[] | null | undefined
  tool_call_id?: string | undefined
}

const callPart = ({ id, function: called }: v.InferOutput<ReturnType<typeof ToolCall>>): ToolCallPart => ({
  type: 'tool_call',
  id,
  name: called.name,
  arguments: called.arguments,
})

/** The question, and what was said before it. @param list the parameter that the messages are in @throws InvalidParameter */
export function readMessages(
  messages: readonly SaidMessage[],
  list: string,
): Pick<ModelQuestion, 'question' | 'transcript' | 'instructions' | 'done'> {
  // The caller's functions were called for the last question, and their results come with it.
  const isDone = messages.at(-1)?.role === 'tool'
  const at = isDone ? messages.findLastIndex(({ role }) => role === 'user') : messages.length - 1
  const asked = messages[at]
  if (asked?.role !== 'user') {
    throw new InvalidParameter('The last message must have the role `user`: it is the question.', list)
  }
  const question = textOf(asked.content, `${list}.${at}.content`)
  if (question.trim() === '') throw new InvalidParameter('The last message has no text.', list)
  requireQuestion(question, `${list}.${at}.content`)
  const transcript: TranscriptMessage[] = []
  const instructions: string[] = []
  const done: Part[] = []
  for (const [
    index,
    { role, content, tool_calls: calls = [], tool_call_id: id = '' },
  ] of messages.entries()) {
    const message = textIn(content, false)
    const said: Part[] =
      role === 'tool'
        ? [{ type: 'tool_result', id, text: message }]
        : [...contentOf(message), ...(calls ?? []).map(callPart)]
    if (role === 'system' || role === 'developer') instructions.push(message)
    else if (index > at) done.push(...said)
    else if (index < at && (role === 'user' || role === 'assistant' || role === 'tool')) {
      // Results of tools that another model called are part of the transcript, too.
      transcript.push({ role: role === 'user' ? 'user' : 'assistant', content: said })
    }
  }
  return {
    question,
    transcript,
    instructions: instructions.join('\n\n').trim(),
    ...(isDone && { done }),
  }
}

/** @param param where the question stands @throws InvalidParameter for one that is too long */
export function requireQuestion(question: string, param: string): void {
  if (question.length <= LONGEST_QUESTION) return
  throw new InvalidParameter(QUESTION_TOO_LONG, param, 'string_above_max_length')
}

/** The text of a message. @throws InvalidParameter for a file, or what is neither a text nor parts */
export const textOf = (content: unknown, param: string): string =>
  inParameter(param, () => textIn(content, true))

/** Values, as JSON, that ask for nothing or for what happens anyway. Clients send them by default. */
const IDLE = ['false', '0', '""', '[]', '{}', '"auto"', '"default"', '"disabled"', '["text"]']

/**
 * What is left of a body: settings of the language model, and parameters that ask for something which is not done here.
 * @param settings names of those that its API has
 */
export function othersOf(
  given: Readonly<Record<string, unknown>>,
  settings: readonly string[],
): Pick<ModelQuestion, 'sampling' | 'ignored'> {
  const some = Object.entries(given).filter(([, value]) => value != null)
  return {
    sampling: Object.fromEntries(some.filter(([name]) => settings.includes(name))),
    ignored: some.flatMap(([name, value]) =>
      settings.includes(name) || IDLE.includes(JSON.stringify(value)) ? [] : [name],
    ),
  }
}

/** The properties of a parameter that is an object, by their paths. */
export const under = (name: string, given: object): Record<string, unknown> =>
  Object.fromEntries(Object.entries(given).map(([key, value]) => [`${name}.${key}`, value]))

// =============================================================================
// Who calls a route about stored responses and conversations. The rules are those of `/conversations/ID`.

export interface Caller {
  access: Access
  asker: Asker
}

/** @param does what is done to the conversation; `say` adds to it or begins it. @throws ApiError 401, 429 */
export async function callerOf(
  { env, request, query, path, record, prefetch }: OpenCall,
  does: 'get' | 'update' | 'delete' | 'stop' | 'say',
): Promise<Caller> {
  const action = `conversations:${does === 'say' ? 'create' : does}`
  record.action = action
  record.target = Object.values(path).join('/')
  const actions = does === 'say' ? ASK_ACTIONS : [action, SEARCH_ACTION]
  const access = await admit(env, presentedKey(request), actions, undefined, record, prefetch)
  return { access, asker: await askerWith({ request, access, user: namedUser(request, query) }, action) }
}

/** Opens a conversation. @throws InvalidParameter 404 in the same words for one that is somebody else's */
export async function openConversationRow(
  env: Cloudflare.Env,
  asker: Asker,
  id: string,
  otherwise = conversationNotFound(id),
): Promise<MemoryRow> {
  const row = await openRow(env, asker, id)
  if (typeof row === 'string') throw otherwise
  return row
}

const conversationNotFound = (id: string): InvalidParameter =>
  new InvalidParameter(`Conversation with id '${id}' not found.`, null, undefined, 404)
