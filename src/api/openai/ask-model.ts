/** A question in OpenAI's shapes: the assistant or model that it names is asked, and the answer written whole or streamed. */
import * as v from 'valibot'
import { answeringOf, answerOnce, type Chat } from '../../conversation/ask'
import { handleOf, idIn } from '../../conversation/conversation-id'
import { ApiError, badRequest } from '../../errors'
import { once } from '../../lib/once'
import { contentOf, textOf } from '../../lib/parts'
import type { Assistant } from '../../registry/assistants'
import type { Override } from '../../registry/overrides'
import type { Wording } from '../../turn/events'
import { byteLength } from '../../turn/prompt'
import { admitTurn, askerWith, enter, namedUser } from '../http/admit-turn'
import { parseJson, readText } from '../http/body'
import {
  admitAsker,
  type ChatParties,
  findChat,
  findOpenModel,
  openAssistant,
  prefetchChat,
} from '../http/chat-names'
import type { OpenCall } from '../http/router'
import {
  type AssistantAnswering,
  askAssistant,
  askedAgain,
  type Changes,
  inChat,
  resumptionOf,
} from '../shared/assistant'
import { frame, streamAnswer, type TurnEncoder, wholeAnswer } from '../shared/stream'
import { chunkWording, completion, completionEncoder, finishReason, usageOf } from './encoder'
import { errorBody, unknownModel } from './errors'
import {
  checkBody,
  common,
  Effort,
  Format,
  formOf,
  InvalidParameter,
  LONGEST_ID,
  type ModelQuestion,
  message,
  othersOf,
  pageTools,
  readMessages,
  SETTINGS,
  settings,
  Tokens,
  under,
} from './question'
import {
  DELTA_WORDING,
  itemNotFound,
  previousNotFound,
  readResponse,
  responseEncoder,
  responseOf,
} from './responses'

// =============================================================================
// Asks an assistant, which the request names as its model. Both of OpenAI's APIs use this.

interface ModelAnswering<Q extends ModelQuestion> extends AssistantAnswering {
  asked: Q
  assistant: Assistant
  /** names of parameters that were passed over, if there are any */
  ignored: string[] | undefined
  /** its reply does not name the conversation */
  unnamed?: boolean | undefined
}

/**
 * @param read reads the body
 * @param words how the pieces of a streamed answer are written
 * @param check looks at the conversation that was found; absent: one begins where there is none
 * @throws ApiError
 */
async function askModel<Q extends ModelQuestion>(
  call: OpenCall,
  read: (body: unknown) => Q,
  words?: (asked: Q) => Wording,
  check?: (asked: Q, chat: Chat | undefined) => void,
): Promise<ModelAnswering<Q>> {
  const { request, query } = call
  await enter(request)
  const access = await admitAsker(call)
  const bodyText = await readText(request)
  const asked = read(parseJson(bodyText))
  const { model } = asked
  const header = (name: string) => request.headers.get(name) || undefined
  const opened = header('x-openwebui-chat-id')
  const name = asked.conversation ?? header('x-conversation-id') ?? opened
  if (asked.unstored && (name ?? access.embedded.conversation_id) !== undefined) {
    throw new InvalidParameter(
      'With `store: false` nothing is kept, so the answer cannot belong to a conversation. Send what was said before as messages, and name no conversation and no earlier response.',
      'store',
    )
  }
  const user = namedUser(request, query) ?? asked.user ?? header('x-openwebui-user-id')
  const caller = { ...call, access, user }
  const assistant = await openAssistant(call, access, model, () => {
    prefetchChat({ ...caller, assistant: { name: model } }, { name, after: asked.after })
  }).catch((error) => {
    throw error instanceof ApiError && error.code === 'unknown_assistant' ? unknownModel(model) : error
  })
  const parties: ChatParties = { ...caller, assistant }
  if (isTask(asked, access.forPages)) {
    const answering = await askTask(parties, asked, bodyText)
    return { ...answering, asked, assistant, ignored: undefined }
  }
  const { changes, ignored, onDropped } = changesOf(assistant, asked, access.owner === 'admin')
  const { tools = [] } = ignored.has('tools') ? {} : asked
  if (asked.done && tools.length === 0) {
    throw new InvalidParameter(
      'The results of tools need the `tools` that were called, and an assistant that allows them.',
      'tools',
    )
  }
  const answering = await inChat(
    parties,
    async () => {
      const chat = name ? await findChat(parties, name, asked.after, !check) : undefined
      check?.(asked, chat)
      return chat
    },
    async (chat) => {
      const { results, after } = asked
      const resumed =
        results && chat && after !== undefined
          ? await resumptionOf(
              call.env,
              await askerWith(caller, 'conversations:create'),
              chat.conversationId,
              after,
              results,
            )
          : undefined
      return askAssistant({
        ...parties,
        transcript: asked.transcript,
        chat: chat && { ...chat, after: results ? undefined : after },
        ...(chat && name === opened && { replaces: askedAgain(asked) }),
        unstored: asked.unstored,
        question: asked.question,
        form: asked.form,
        changes,
        onDropped,
        tools,
        ...(asked.done && { resumes: { content: asked.done, decided: {} } }),
        words: asked.stream ? words?.(asked) : undefined,
        protocol: 'openai',
        bodyText,
        ...resumed,
      })
    },
  )
  return {
    ...answering,
    asked,
    assistant,
    unnamed: asked.unstored,
    ignored: ignored.size > 0 ? [...ignored] : undefined,
  }
}

/** Settings that change what the caller gets, so that no answer may do without them in silence. */
const SHAPING = ['stop', 'frequency_penalty', 'presence_penalty']

const unsupported = (name: string, by: string): InvalidParameter =>
  new InvalidParameter(
    `Unsupported parameter: \`${name}\` is not supported by ${by}. Leave it out.`,
    name,
    'unsupported_parameter',
  )

/** A conversation model's names for settings, where the request has others. */
const PROPERTIES: Record<string, string> = {
  max_completion_tokens: 'max_tokens',
  max_output_tokens: 'max_tokens',
  'reasoning.effort': 'reasoning_effort',
}

/**
 * The changes that the assistant allows, and the names of parameters that are passed over. `onDropped` adds those that the model
 * does not have. Clients send some of them by default.
 * @throws InvalidParameter, as `onDropped`, for one that may not be passed over
 */
function changesOf(
  { overrides, strict }: Assistant,
  { sampling, instructions, ...asked }: ModelQuestion,
  isAdmin: boolean,
) {
  const model: Record<string, unknown> = {}
  /** the request's names for settings, by the model's */
  const names: Record<string, string> = {}
  const ignored = new Set(asked.ignored)
  for (const [name, value] of Object.entries(sampling)) {
    const property = PROPERTIES[name] ?? name
    const override = property === 'max_tokens' ? 'max_response_tokens' : property
    // A text to stop at can only make an answer shorter.
    if (isAdmin || property === 'stop' || overrides.includes(override as Override)) {
      model[property] = value
      names[property] = name
    } else ignored.add(name)
  }
  // Clients send a system prompt by default. With a page's key it must not rewrite the assistant.
  if (instructions !== '' && !isAdmin) ignored.add('instructions')
  if (asked.tools && !isAdmin && !overrides.includes('tools')) ignored.add('tools')
  const [first] = ignored
  if (strict && first !== undefined) throw unsupported(first, 'this assistant')
  const prompt = isAdmin && instructions !== '' && { prompt: { append: [instructions] } }
  const changes: Changes = { model, ...prompt }
  const onDropped = (dropped: string[]) => {
    for (const name of dropped) {
      const isShaping = SHAPING.includes(name)
      // Clients send penalties of 0 by default, which a model without penalties keeps to.
      if (isShaping && !model[name]) continue
      if (isShaping || strict) throw unsupported(names[name]!, 'its model')
      ignored.add(names[name]!)
    }
  }
  return { changes, ignored, onDropped }
}

// =============================================================================
// POST /v1/chat/completions (contract 3.3): its body, and its answer.

export async function complete(call: OpenCall): Promise<Response> {
  const created = Math.floor(call.record.started / 1000)
  const answering = await askModel(call, readChatCompletion, ({ model, includeUsage }) =>
    chunkWording({ model, created }, includeUsage),
  )
  const { asked, assistant, ignored } = answering
  const shape = { model: asked.model, created, fields: assistant, unstored: asked.unstored, ignored }
  if (asked.stream) {
    return streamAnswer(answering, completionEncoder(shape, asked.includeUsage), { opensAt: 'text' })
  }
  return wholeAnswer(answering, (turn) => completion(turn, shape))
}

const Body = once(() =>
  v.looseObject({
    ...common(),
    messages: v.array(v.looseObject({ role: v.string(), ...message() })),
    stream_options: v.nullish(v.looseObject({ include_usage: v.nullish(v.boolean()) })),
    ...settings(),
    reasoning_effort: Effort(),
    modalities: v.nullish(v.array(v.literal('text', 'Answers are texts alone.'))),
    max_completion_tokens: v.nullish(Tokens()),
    response_format: v.nullish(Format()),
    metadata: v.nullish(
      v.looseObject({ conversation_id: v.nullish(v.pipe(v.string(), v.maxLength(LONGEST_ID))) }),
    ),
  }),
)

interface ChatCompletionRequest extends ModelQuestion {
  includeUsage: boolean
}

/** @param body parsed JSON @throws InvalidParameter */
export function readChatCompletion(body: unknown): ChatCompletionRequest {
  const {
    model,
    messages,
    stream,
    stream_options: options,
    user,
    metadata,
    store,
    response_format: format,
    n: _,
    tool_choice: choice,
    tools,
    ...given
  } = checkBody(Body(), body)
  const { include_usage: includeUsage, ...streamed } = options ?? {}
  const { conversation_id: conversation, ...labels } = metadata ?? {}
  // The newer name counts where both are given.
  if (given.max_completion_tokens != null) delete given.max_tokens
  const form = formOf(format, 'response_format')
  return {
    model,
    ...readMessages(messages, 'messages'),
    ...(choice !== 'none' && pageTools(tools)),
    stream: stream ?? false,
    includeUsage: includeUsage ?? false,
    ...(user && { user }),
    ...(store === false && { unstored: true }),
    ...(conversation && { conversation }),
    ...(form && { form }),
    ...othersOf({ ...given, ...under('stream_options', streamed), ...under('metadata', labels) }, [
      ...SETTINGS,
      'max_completion_tokens',
      'reasoning_effort',
    ]),
  }
}

// =============================================================================
// POST /v1/responses

export async function respond(call: OpenCall): Promise<Response> {
  let missing: InvalidParameter | undefined
  const answering = await askModel(
    call,
    readResponse,
    () => DELTA_WORDING,
    ({ previous, referred, conversation }, chat) => {
      if (previous !== undefined) missing = previousNotFound(previous)
      else if (referred !== undefined) missing = itemNotFound(referred)
      // A name could begin a new conversation. An earlier response has to be in an existing one.
      const isThere =
        chat?.named === false && conversation !== undefined && chat.conversationId === idIn(conversation)
      if (missing !== undefined && !isThere) throw missing
    },
  ).catch((error) => {
    const isMissing =
      error instanceof ApiError && (error.code === 'unknown_turn' || error.code === 'unknown_conversation')
    throw (isMissing && missing) || error
  })
  const { asked, assistant, ignored, conversationId } = answering
  const shape = {
    model: asked.model,
    created: Math.floor(call.record.started / 1000),
    fields: assistant,
    unstored: asked.unstored,
    ignored,
    previous: asked.previous ?? null,
    // A seal would vouch for a conversation that there is not.
    handle: asked.unstored ? conversationId : await handleOf(call.env, conversationId),
  }
  if (asked.stream) return streamAnswer(answering, responseEncoder(shape), { opensAt: 'text' })
  return wholeAnswer(answering, (turn) => responseOf(turn, shape))
}

// =============================================================================
// POST /v1/completions: OpenAI's older API, where a prompt is one text.

const body = once(() => {
  const none = (what: string) => v.nullish(v.union([v.literal(''), v.literal(false)], what))
  return v.looseObject({
    ...common(),
    prompt: v.union([
      v.string(),
      v.pipe(v.array(v.string()), v.length(1, 'One prompt can be answered at a time.')),
    ]),
    suffix: none('Nothing is written before a suffix.'),
    echo: none('A prompt is not repeated.'),
    best_of: v.nullish(v.literal(1, 'One answer can be written at a time: `best_of` must be 1.')),
    ...settings(),
  })
})

function readPrompt(given: unknown): ModelQuestion {
  const {
    model,
    prompt,
    stream,
    user,
    n: _,
    best_of: __,
    tool_choice: ___,
    ...others
  } = checkBody(body(), given)
  const content = typeof prompt === 'string' ? prompt : prompt[0]
  return {
    model,
    ...readMessages([{ role: 'user', content }], 'prompt'),
    stream: stream ?? false,
    ...(user && { user }),
    ...othersOf(others, SETTINGS),
  }
}

export async function completeText(call: OpenCall): Promise<Response> {
  const answering = await askModel(call, readPrompt)
  const { asked, ignored, conversationId } = answering
  const shape = {
    id: `cmpl-${conversationId}`,
    object: 'text_completion',
    created: Math.floor(call.record.started / 1000),
    model: asked.model,
    ...(ignored && { context: { ignored } }),
  }
  if (asked.stream) return streamAnswer(answering, textCompletionEncoder(shape), { opensAt: 'text' })
  return wholeAnswer(answering, (turn) => {
    const choices = [choiceOf(textOf(turn.answer), finishReason(turn.finishReason))]
    return { ...shape, choices, usage: usageOf(turn.usage) }
  })
}

const choiceOf = (text: string, finish_reason: string | null) => ({
  text,
  index: 0,
  logprobs: null,
  finish_reason,
})

const textCompletionEncoder = (shape: object): TurnEncoder => {
  const write = (text: string, reason: string | null): string =>
    frame({ ...shape, choices: [choiceOf(text, reason)] })
  return {
    encode(event) {
      if (event.type === 'delta') return write(event.text, null)
      return event.type === 'done' ? `${write('', finishReason(event.finish_reason))}data: [DONE]\n\n` : ''
    },
    fail: (failure) => frame(errorBody(failure)),
  }
}

// =============================================================================
// Requests that chat front ends make for themselves: titles, tags, next questions and queries of a chat, as Open
// WebUI and LibreChat do with their default prompts. The model answers such a prompt alone, without a search, and
// nothing is stored.

/** Open WebUI's prompts have two headings; LibreChat's are three sentences of its own. */
const TASKS = [
  /^\s*### Task:[\s\S]*(?:### Chat History|<chat_history>)/,
  /^\s*Provide a concise, 5-word-or-less title for the conversation/,
  /^\s*Please generate a concise,? (?:5-word-or-less )?title\b/,
  /^\s*Analyze this conversation and provide:\s+1\. The detected language/,
]

/** The most tokens of an answer. */
const MOST_TOKENS = 500
/** Share of the model's `max_bytes` that the prompt may take. */
const SHARE = 0.8

/** @param forPages whether visitors of a page have the key: they could write such a prompt, and get the model alone */
const isTask = ({ question }: Pick<ModelQuestion, 'question'>, forPages: boolean): boolean =>
  !forPages && TASKS.some((task) => task.test(question))

/** @throws ApiError 400, 401, 429 */
async function askTask(
  { env, request, record, access, assistant, user }: ChatParties,
  { question, form }: Pick<ModelQuestion, 'question' | 'form'>,
  bodyText: string,
): Promise<AssistantAnswering> {
  const model = await findOpenModel(env, [access], assistant.model)
  if (!model) throw badRequest('The conversation model of this assistant does not exist any more.')
  const { system_prompt: _, ...alone } = model
  const conversationId = crypto.randomUUID()
  const limits = [model.max_tokens, model.max_completion_tokens, MOST_TOKENS]
  const settings = { max_tokens: Math.min(...limits.filter((limit) => typeof limit === 'number')) }
  const reads = answerOnce(
    env,
    {
      question: contentOf(shortened(question, model.max_bytes * SHARE)),
      model: alone,
      settings,
      historyId: '',
      given: { passages: [], turns: 0, alone: true },
      onSearchError: 'fail',
      ...(form && { form }),
      protocol: 'openai',
      ...(await admitTurn({ env, request, record, accesses: [access], body: bodyText, userId: user }, model)),
    },
    conversationId,
  )
  return { ...answeringOf(conversationId, reads), retrievals: [], dropped: [] }
}

/**
 * Leaves out the middle of a prompt that is too long. The instructions are at its beginning, and the latest messages
 * at its end.
 */
function shortened(prompt: string, mostBytes: number): string {
  if (byteLength(prompt) <= mostBytes) return prompt
  // A UTF-16 unit is three bytes of UTF-8 at most.
  const half = Math.floor(mostBytes / 6)
  return `${prompt.slice(0, half)}\n…\n${prompt.slice(-half)}`
}
