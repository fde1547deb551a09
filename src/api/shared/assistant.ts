/** A question to an assistant, as every protocol that has assistants asks it. */
import type { Access } from '../../auth/access'
import { type Answering, answeringOf, ask, askOnce, type Chat } from '../../conversation/ask'
import { conversationObject } from '../../conversation/conversation-object'
import { answeredTurns, endedTurn, openRow } from '../../conversation/conversations'
import { deleteConversation } from '../../conversation/expiry'
import { ApiError, badRequest, coded, unwrap } from '../../errors'
import { once } from '../../lib/once'
import { contentOf, type FilePart, picturesOf, textOf } from '../../lib/parts'
import { isTextFile, MOST_PICTURES } from '../../lib/text-file'
import type { AnswerForm, ConversationModelConfig } from '../../models/language-model'
import { namespaceOf, requireFormOf } from '../../models/providers'
import { acceptedBy } from '../../models/sampling'
import { type Assistant, toolNamesOf } from '../../registry/assistants'
import { type Tool, toolsOf } from '../../tools/tool'
import { hasGuardrail } from '../../turn/answer'
import { unknownConversation } from '../../turn/errors'
import type { Reading, Wording } from '../../turn/events'
import type { Turn } from '../../turn/fold'
import { requireSchema } from '../../turn/form'
import type { TranscriptMessage } from '../../turn/look-back'
import { byteLength, defaultPromptOf, formBytes } from '../../turn/prompt'
import type { Asker, Replacement, Resumption } from '../../turn/request'
import { WAITING_MS, waitingIn } from '../../turn/tools'
import { admitTurn, askerWith } from '../http/admit-turn'
import { parseJson, readText } from '../http/body'
import {
  type ChatName,
  type ChatParties,
  chatIds,
  findChat,
  findHistory,
  findOpenModel,
  openParties,
} from '../http/chat-names'
import { type AssistantRetrieval, planRetrieval, type SearchChanges } from '../http/plan'
import { originOf } from '../http/request-log'
import type { OpenCall } from '../http/router'
import { requireOwn } from './foreign'
import { chatReader } from './stream'

/** Changes of a request to its assistant, for one turn. The protocol has checked that the assistant allows it. */
export interface Changes extends SearchChanges {
  /** properties that replace those of the conversation model, such as `temperature` */
  model?: Record<string, unknown>
  prompt?: {
    /** replaces the assistant's system prompt */
    replace?: string
    /** added after it */
    append?: string[]
  }
}

export interface AssistantQuestion extends ChatParties {
  question: string
  /** its conversation; absent: a new one, or the one that the key fixes */
  chat?: Chat | undefined
  /** true: the question belongs to no conversation, and neither it nor its answer is kept */
  unstored?: boolean | undefined
  /** earlier turns that the answer replaces */
  replaces?: Replacement | undefined
  /** what was said before, oldest first. Only a new conversation uses it */
  transcript?: TranscriptMessage[]
  /** texts sent with the question */
  files?: FilePart[]
  changes?: Changes
  /** gets the names of settings in `changes.model` that the model does not support, before it is asked. What it throws refuses the question */
  onDropped?(names: string[]): void
  /** the form that the answer has to have */
  form?: AnswerForm | undefined
  /** whether the protocol can ask the visitor for leave to call a tool */
  asks?: true
  /** tools that the caller brings, which its page runs */
  tools?: readonly Tool[]
  /** the turn goes on from one that waited for the visitor (turn/tools.ts) */
  resumes?: Resumption
  /** whether to suggest next questions; absent: as the assistant says */
  suggests?: boolean | undefined
  /** whether the answer is to cite documents as `[label]`, by the assistant's `citation_field` */
  labels?: boolean
  /** what the protocol reads of the turn besides the usual events */
  read?: Reading
  /** how the conversation's object writes the pieces of a streamed answer; absent: the Worker writes them */
  words?: Wording | undefined
  /** the wire it came in on */
  protocol: string
  /** the body as it was sent */
  bodyText: string
}

export interface AssistantAnswering extends Answering {
  /** each search and its mode */
  retrievals: AssistantRetrieval[]
  /** settings in `changes.model` that the model does not support */
  dropped: string[]
}

/**
 * Asks the assistant, or joins the turn that the same request began before (conversation/ask.ts).
 * @throws ApiError 400, 401, 404, 422, 429
 */
export async function askAssistant(asked: AssistantQuestion): Promise<AssistantAnswering> {
  const { env, request, access, record, prefetch, assistant, changes = {}, protocol, user, bodyText } = asked
  const { embedded } = access
  const files = asked.files ?? []
  // An assistant without a setting for files accepts them only on the AI Chat Protocol, whose clients send them.
  if (files.length > 0 && !(assistant.attachments ?? protocol === 'ai-chat')) {
    throw badRequest(
      `\`files\`: The assistant \`${assistant.name}\` takes no files: it has no \`attachments\`.`,
    )
  }
  const question = embedded.q ?? asked.question
  record.question = question
  const [retrievals, own] = await Promise.all([
    planRetrieval(env, access, assistant, changes),
    toolsOf(env, toolNamesOf(assistant)),
  ])
  const tools = [...own, ...(asked.tools ?? [])]
  const model = await modelOf(env, access, assistant, changes)
  const settings = settingsOf(model, changes)
  const accepted = acceptedBy(model.model_name, changes.model ?? {})
  const dropped = Object.keys(changes.model ?? {}).filter((name) => !(name in accepted))
  asked.onDropped?.(dropped)
  requireRoom(files, model, asked.form)
  if (asked.form) requireFormOf(model, asked.form)
  const fixed = embedded.conversation_id
  const chat = fixed === undefined ? asked.chat : { conversationId: fixed }
  const { citation_field: field } = assistant
  const turn = {
    question: [...contentOf(question), ...files],
    model,
    ...(settings && { settings }),
    historyId: await findHistory(env, model),
    searches: retrievals.map(({ search }) => search),
    // If a single search fails, that is the error. If one of several does, the others are enough to answer from.
    onSearchError: retrievals.length === 1 ? ('fail' as const) : ('go_on' as const),
    ...(asked.read && { read: asked.read }),
    // Calls stand between pieces of the answer, and the object writes the pieces alone.
    ...(asked.words && tools.length === 0 && { words: asked.words }),
    ...(tools.length > 0 && { tools }),
    ...(asked.asks && { asks: true as const }),
    ...(asked.resumes && { resumes: asked.resumes }),
    ...(asked.form && { form: asked.form }),
    // Text beside the JSON would break it.
    suggests: !asked.form && (asked.suggests ?? assistant.followups),
    ...(assistant.minimum_support !== undefined && {
      support: { minimum: assistant.minimum_support, below: assistant.below_support ?? ('warn' as const) },
    }),
    ...(asked.transcript && { transcript: asked.transcript }),
    // With the admin key they are the operator's own words, which no guardrail needs to judge.
    ...(access.owner !== 'admin' && {
      instructions: [changes.prompt?.replace, ...(changes.prompt?.append ?? [])].filter(
        (text) => !!text,
      ) as string[],
    }),
    ...(asked.labels && { labels: field === undefined ? {} : { field } }),
    protocol,
    assistant: assistant.name,
    ...(await admitTurn({ env, request, record, accesses: [access], body: bodyText, userId: user }, model)),
  }
  const alone = crypto.randomUUID()
  const answering = asked.unstored
    ? answeringOf(alone, await askOnce(env, turn, alone))
    : await ask(
        env,
        {
          ...turn,
          chat,
          ...(asked.replaces && { replaces: asked.replaces }),
        },
        { prefetch, signal: request.signal },
      )
  return { ...answering, retrievals, dropped }
}

async function modelOf(
  env: Cloudflare.Env,
  access: Access,
  { model: id, system_prompt: prompt }: Assistant,
  changes: Changes,
): Promise<ConversationModelConfig> {
  const model = await findOpenModel(env, [access], id)
  if (!model) throw badRequest('The conversation model of this assistant does not exist any more.')
  const { replace, append = [] } = changes.prompt ?? {}
  const system = [replace ?? prompt ?? defaultPromptOf(model), ...append].filter(Boolean).join('\n\n')
  return { ...model, ...(system !== '' && { system_prompt: system }) }
}

/** The request's settings for its answer. `max_tokens` can lower the model's own limit, not raise it. */
function settingsOf(
  model: ConversationModelConfig,
  { model: settings }: Changes,
): Record<string, unknown> | undefined {
  if (settings?.max_tokens === undefined) return settings
  const limits = [model.max_tokens ?? model.max_completion_tokens, settings.max_tokens]
  return { ...settings, max_tokens: Math.min(...limits.filter((limit) => typeof limit === 'number')) }
}

// Text files that come with a question: which are accepted, and how large they may be.

/** A file in a JSON body. */
interface SentFile {
  name: string
  type?: string | undefined
  text?: string | undefined
  /** base64 of a picture, in the place of a text */
  data?: string | undefined
}

/** The kinds of pictures that models take. */
export const PICTURES = ['image/png', 'image/jpeg', 'image/webp', 'image/gif']

/** Converts files in a JSON body to parts. @throws ApiError 400 for a file that is neither a text nor a picture */
export function partsOf(files: readonly SentFile[] = []): FilePart[] {
  return files.map(({ name, type = '', text, data }, index) => {
    const mediaType = type.split(';')[0]!.trim().toLowerCase()
    if ((text === undefined) === (data === undefined))
      throw badRequest(`\`files.${index}\`: Give either \`text\` or \`data\`.`)
    if (data !== undefined) {
      if (!PICTURES.includes(mediaType))
        throw badRequest(`\`files.${index}.type\`: Expected one of ${PICTURES.join(', ')}.`)
      return { type: 'file', name, picture: { media_type: mediaType, data } }
    }
    if (type !== '' && !isTextFile(name, mediaType)) {
      throw badRequest(
        `\`files.${index}\`: \`${name}\` (${mediaType}) is not supported: attachments have to be text.`,
      )
    }
    return { type: 'file', name, text: text! }
  })
}

/**
 * Bytes of UTF-8 that the names and texts of a question's files and the schema of its answer may take: half of the prompt.
 * Documents need the rest.
 */
export const roomForFiles = ({ max_bytes: maxBytes }: Pick<ConversationModelConfig, 'max_bytes'>): number =>
  Math.floor(maxBytes / 2)

/** @throws ApiError 400 */
export function requireRoom(
  files: readonly FilePart[],
  model: ConversationModelConfig,
  form?: AnswerForm | undefined,
): void {
  requirePictures(files, model)
  const most = roomForFiles(model)
  const bytes = files.reduce((sum, { name, text = '' }) => sum + byteLength(name) + byteLength(text), 0)
  if (bytes > most) {
    throw badRequest(`The files are too long for this assistant: it takes ${most} bytes of them.`)
  }
  if (bytes + formBytes(form) > most) {
    throw badRequest(
      `The schema is too long for this assistant: it takes ${most} bytes of it and of files together.`,
    )
  }
}

/** @throws ApiError 400 for pictures that are too large, or that this model does not read or its guardrail cannot judge */
function requirePictures(files: readonly FilePart[], model: ConversationModelConfig): void {
  const size = picturesOf(files).reduce((sum, { data }) => sum + data.length, 0)
  if (size === 0) return
  if (size > MOST_PICTURES)
    throw badRequest(`The pictures are too large: a question takes ${MOST_PICTURES} characters of base64.`)
  if (!takesPictures(model))
    throw badRequest(
      'This model takes no pictures: the built-in one reads none, and no guardrail judges them.',
    )
}

/** Whether a model may be sent pictures. Whether it reads them, its provider says. */
export const takesPictures = (model: ConversationModelConfig): boolean =>
  namespaceOf(model.model_name) !== 'local' && !hasGuardrail({ model })

// =============================================================================
// Functions that a caller brings, and a turn that waits for its visitor and goes on.

/** A function that the caller runs. @throws ApiError 400 for a schema that cannot be checked */
export function pageTool({ name, description, parameters: given }: PageFunction): Tool {
  const parameters = given ?? { type: 'object', properties: {} }
  requireSchema(parameters)
  return { name, description: description ?? '', parameters, title: name, leave: 'never', runs: 'page' }
}

export interface PageFunction {
  name: string
  description?: string | null | undefined
  parameters?: Record<string, unknown> | null | undefined
}

/**
 * What a turn goes on from, once its visitor has decided about the calls that it waits for.
 * @param turn its number
 * @throws ApiError 404 for an unknown turn, 400 for one that does not wait, or waited for too long
 */
export async function resumptionOf(
  env: Cloudflare.Env,
  asker: Asker,
  conversation: string,
  turn: number,
  decided: Resumption['decided'],
): Promise<Required<Pick<AssistantQuestion, 'question' | 'replaces' | 'resumes'>>> {
  const row = await openRow(env, asker, conversation)
  if (typeof row === 'string') throw unknownConversation()
  const ended = await endedTurn(env, asker, { conversation: row.id, turn })
  if (!ended) throw coded('unknown_turn', 404, 'Turn not found')
  const { question, answer } = ended.turn
  // Some clients also repeat what was decided before.
  if (!waitingIn(answer).some(({ id }) => Object.hasOwn(decided, id))) {
    throw badRequest(`Turn ${turn} waits for none of these calls. Ask anew.`)
  }
  if (Date.now() > ended.created + WAITING_MS) {
    throw badRequest(`Turn ${turn} has waited for more than ${WAITING_MS / 60_000} minutes. Ask anew.`)
  }
  return {
    question: textOf(question),
    replaces: { after: turn - 1 },
    resumes: { turn, content: answer, decided },
  }
}

/** The same for the last turn of a chat. @throws ApiError 400 where there is none that waits */
export async function resumptionInChat(
  parties: ChatParties,
  chat: string,
  decided: Resumption['decided'],
): ReturnType<typeof resumptionOf> {
  const { conversationId, turns } = await turnsOf(parties, chat)
  const turn = turns.at(-1)?.turn
  if (turn === undefined) throw badRequest('This chat has no answer whose calls could be decided about.')
  const asker = await askerWith(parties, 'conversations:create')
  return resumptionOf(parties.env, asker, conversationId, turn, decided)
}

// =============================================================================
// Shared by protocols whose clients choose the ids of their chats (http/chat-names.ts).

interface ChatQuestion
  extends Pick<
    AssistantQuestion,
    | 'question'
    | 'transcript'
    | 'labels'
    | 'protocol'
    | 'bodyText'
    | 'changes'
    | 'tools'
    | 'resumes'
    | 'replaces'
  > {
  /** the client's own name for the chat; absent: a conversation begins */
  chat?: string | undefined
}

/**
 * Opens a question to an assistant. Its body, as text and as JSON, is read while the registry is.
 * @param nameOf the chat that a body names. What it throws is ignored
 * @throws ApiError as `openParties` and `requireOwn`, and 400 for what is not JSON
 */
export async function openQuestion(
  call: OpenCall,
  own: string,
  nameOf: (body: unknown) => ChatName | undefined = () => undefined,
  admit?: () => Promise<Access>,
): Promise<{ parties: ChatParties; bodyText: string; body: unknown }> {
  const read = once(async () => {
    const bodyText = await readText(call.request)
    return { bodyText, body: parseJson(bodyText) }
  })
  const parties = await openParties(call, {
    ...(admit && { admit }),
    chat: async () => nameOf((await read()).body),
  })
  const { bodyText, body } = await read()
  requireOwn(body, own, parties.assistant.name)
  return { parties, bodyText, body }
}

/** Asks in the conversation that the chat's name stands for. @throws ApiError */
export function askChat(parties: ChatParties, { chat, ...asked }: ChatQuestion): Promise<AssistantAnswering> {
  const find = async () => (chat === undefined ? undefined : findChat(parties, chat, undefined, true))
  return inChat(parties, find, (found) => askAssistant({ ...parties, ...asked, chat: found }))
}

/**
 * Asks in the conversation of a chat. Looks it up once more, more thoroughly, if the messages of one that its object knows turn
 * out to be gone. Its rate then counts twice.
 */
export async function inChat<C extends Pick<Chat, 'seen'> | undefined, T>(
  parties: ChatParties,
  find: () => Promise<C>,
  ask: (chat: C) => Promise<T>,
): Promise<T> {
  const chat = await find()
  try {
    return await ask(chat)
  } catch (error) {
    const isGone = chat?.seen && error instanceof ApiError && error.code === 'unknown_conversation'
    if (!isGone) throw error
    parties.prefetch.distrust()
    return ask(await find())
  }
}

/** The running answer of a chat, from its beginning. @returns undefined if none is running */
export async function runningTurn(parties: ChatParties, chat: string) {
  const events = await atChat(parties, chat, async (id, asker) =>
    unwrap(await conversationObject(parties.env, id).running(asker)),
  )
  return events && chatReader(events)
}

/**
 * Stops the running answer of a chat for all its readers. A key that may only read what others asked does not stop their
 * answers.
 * @returns whether one was running
 */
export async function stopChat(parties: ChatParties, chat: string): Promise<boolean> {
  const asker = await askerWith(parties, 'conversations:stop')
  const stop = async (id: string) => unwrap(await conversationObject(parties.env, id).stop(asker))
  return (await atChat(parties, chat, stop)) ?? false
}

/** The last hundred answered turns of a chat, oldest first, for a client that reopens it. @returns none for an unknown chat */
export async function turnsOf(
  parties: ChatParties,
  chat: string,
): Promise<{ conversationId: string; turns: Turn[] }> {
  const found = await atChat(parties, chat, async (conversationId, asker) => ({
    conversationId,
    turns: await answeredTurns(parties.env, asker, conversationId),
  }))
  return found ?? { conversationId: '', turns: [] }
}

/** A turn of a chat that has ended, answered or not. @returns undefined for an unknown one */
export const endedTurnOf = (parties: ChatParties, chat: string, turn: number): Promise<Turn | undefined> =>
  atChat(parties, chat, async (id, asker) => {
    const row = await openRow(parties.env, asker, id)
    if (typeof row === 'string') return undefined
    return (await endedTurn(parties.env, asker, { conversation: row.id, turn }))?.turn
  })

/** Deletes the conversation of a chat, if the caller may. Does nothing if there is none. */
export async function deleteChat(parties: ChatParties, chat: string): Promise<void> {
  const { env, record } = parties
  const asker = await askerWith(parties, 'conversations:delete')
  await atChat<void>(parties, chat, (id) => deleteConversation(env, asker, id, originOf(record)))
}

/**
 * Calls the conversations that a chat's name may stand for, until one returns something.
 * @returns undefined if none does, or if there is none @throws ApiError what a call throws, but for 404
 */
async function atChat<T>(
  parties: ChatParties,
  chat: string,
  call: (conversationId: string, asker: Asker) => Promise<T | null | undefined>,
): Promise<T | undefined> {
  const { asker, ids } = await chatIds(parties, chat)
  for (const id of ids) {
    const value = await call(id, asker).catch((error) => {
      if (!(error instanceof ApiError) || error.status !== 404) throw error
    })
    if (value) return value
  }
  return undefined
}

// Detects that a question is asked again to get another answer, by a client that does not say so. Pure.

/**
 * What a question with a whole transcript may replace: the last turn, if it asked the same. A client that regenerates
 * leaves the old answer out of the transcript; if a user repeats a question, the answer is in it. A question without
 * a transcript may come from a client that never sends one, so it can replace only the single turn of a conversation.
 * @returns undefined if the question is repeated
 */
export function askedAgain({
  question,
  transcript,
}: {
  question: string
  transcript: readonly TranscriptMessage[]
}): Replacement | undefined {
  const before = transcript.findLast(({ role }) => role === 'user')
  if (before === undefined) return { last: 'only' }
  return textOf(before.content) === question ? undefined : { last: 'any' }
}
