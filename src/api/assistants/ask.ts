/** A question to an assistant, as every protocol that has assistants asks it. */
import type { Access } from '../../auth/access'
import { countSearches } from '../../auth/searches'
import { type Answering, ask } from '../../conversation/ask'
import { ApiError } from '../../errors'
import type { ConversationModelConfig } from '../../models/language-model'
import { acceptedBy } from '../../models/sampling'
import type { Assistant } from '../../registry/assistants'
import type { Attachment, Replacement } from '../../turn/request'
import { byteLength } from '../../turn/serialise'
import type { TranscriptMessage } from '../../turn/transcript'
import { admitTurn } from '../edge/admit-turn'
import { findHistory, findOpenModel } from '../edge/open-model'
import type { RequestRecord } from '../edge/request-log'
import { type AssistantRetrieval, planRetrieval, type SearchChanges } from './plan'

/** What a request changes of its assistant. Its protocol has seen to it that the assistant allows it. */
export interface Changes extends SearchChanges {
  /** properties of the conversation model in the place of its own, such as `temperature` */
  model?: Record<string, unknown>
  prompt?: {
    /** in the place of the assistant's system prompt */
    replace?: string
    /** sentences after it */
    append?: string[]
  }
}

export interface AssistantQuestion {
  env: Cloudflare.Env
  request: Request
  access: Access
  /** what the log will say of the request */
  record: RequestRecord
  /** one that is open to the key (open.ts) */
  assistant: Assistant
  question: string
  /** absent: a new conversation */
  conversationId?: string | undefined
  /** whether the id stands for the client's own name (chat.ts): without history it begins */
  named?: boolean
  /** the turn that the question goes on from; absent: the last one */
  after?: number | undefined
  /** earlier turns that give way to the answer */
  replaces?: Replacement | undefined
  /** what was said before, oldest first; counts for a new conversation alone */
  transcript?: TranscriptMessage[]
  /** texts that came with the question */
  attachments?: Attachment[]
  changes?: Changes
  /** whether to suggest what could be asked next; absent: as the assistant does */
  followups?: boolean | undefined
  /** whether the answer is to cite documents as `[label]`, by the assistant's `citation_field` */
  labels?: boolean
  stream: boolean
  /** the wire it came in on */
  protocol: string
  /** the user that the request names */
  user: string | undefined
  /** the body as it was sent */
  bodyText: string
}

export interface AssistantAnswering extends Answering {
  /** how each search finds */
  retrievals: AssistantRetrieval[]
  /** names of settings in `changes.model` that the model does not take */
  dropped: string[]
}

/**
 * Asks, or joins the turn that the same request began before (conversation/ask.ts).
 * @throws ApiError 400, 401, 404, 422, 429
 */
export async function askAssistant(asked: AssistantQuestion): Promise<AssistantAnswering> {
  const { env, request, access, record, assistant, changes = {}, stream, protocol, user, bodyText } = asked
  const { embedded } = access
  const question = embedded.q ?? asked.question
  record.question = question
  const retrievals = await planRetrieval(env, access, assistant, changes)
  await countSearches(env, Array(Math.max(0, retrievals.length - 1)).fill(access))
  const model = await modelOf(env, access, assistant, changes)
  const settings = settingsOf(model, changes)
  requireRoom(asked.attachments ?? [], model)
  const conversationId = embedded.conversation_id ?? asked.conversationId
  const named = asked.named && embedded.conversation_id === undefined
  const { citation_field: field } = assistant
  const answering = await ask(
    env,
    {
      ...(conversationId !== undefined && { conversationId }),
      ...(named && { named }),
      ...(asked.after !== undefined && { after: asked.after }),
      ...(asked.replaces && { replaces: asked.replaces }),
      question,
      model,
      ...(settings && { settings }),
      historyId: await findHistory(env, model),
      searches: retrievals.map(({ search }) => search),
      // A single search that fails is an error to tell; of several the others are answered from.
      shape: retrievals.length === 1 ? 'single' : 'multi',
      stream,
      withHistory: false,
      followups: asked.followups ?? assistant.followups,
      ...(asked.transcript && { transcript: asked.transcript }),
      ...(asked.attachments && { attachments: asked.attachments }),
      // The admin key's are the operator's own words.
      ...(access.owner !== 'admin' && { instructions: instructionsOf(changes) }),
      ...(asked.labels && { labels: field === undefined ? {} : { field } }),
      protocol,
      ...(await admitTurn({ env, request, accesses: [access], body: bodyText, userId: user }, model)),
    },
    request.signal,
  )
  const accepted = acceptedBy(model.model_name, changes.model ?? {})
  const dropped = Object.keys(changes.model ?? {}).filter((name) => !(name in accepted))
  return { ...answering, retrievals, dropped }
}

const instructionsOf = ({ prompt: { replace, append = [] } = {} }: Changes): string[] =>
  [replace, ...append].filter((text) => text !== undefined && text !== '') as string[]

async function modelOf(
  env: Cloudflare.Env,
  access: Access,
  { model: id, system_prompt: prompt }: Assistant,
  changes: Changes,
): Promise<ConversationModelConfig> {
  const model = await findOpenModel(env, [access], id)
  if (!model) throw new ApiError(400, 'The conversation model of this assistant does not exist any more.')
  const { replace, append = [] } = changes.prompt ?? {}
  const system = [replace ?? prompt ?? model.system_prompt, ...append].filter(Boolean).join('\n\n')
  return { ...model, ...(system !== '' && { system_prompt: system }) }
}

/** What the request sets for its answer. It may ask for a shorter one than the model is set to give, and for no longer one. */
function settingsOf(
  model: ConversationModelConfig,
  { model: settings }: Changes,
): Record<string, unknown> | undefined {
  if (settings?.max_tokens === undefined) return settings
  const limits = [model.max_tokens ?? model.max_completion_tokens, settings.max_tokens]
  return { ...settings, max_tokens: Math.min(...limits.filter((limit) => typeof limit === 'number')) }
}

/** Documents that are found need room too: attachments may take half of the prompt. @throws ApiError 400 */
function requireRoom(attachments: Attachment[], { max_bytes: maxBytes }: ConversationModelConfig): void {
  const most = Math.floor(maxBytes / 2)
  const bytes = attachments.reduce((sum, { name, text }) => sum + byteLength(name) + byteLength(text), 0)
  if (bytes > most) {
    throw new ApiError(400, `The files are too long for this assistant: it takes ${most} bytes of them.`)
  }
}
