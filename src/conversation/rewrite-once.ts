/** Rewrites a follow-up to stand alone, for a caller who searches by itself (turn/caller-passages.ts). */
import { waitUntil } from 'cloudflare:workers'
import { database } from '../db/client'
import { ttlsOf } from '../db/conversation-models'
import { recordCost } from '../db/turns'
import { dayOf } from '../db/usage'
import { logFailure, type Trail } from '../errors'
import type { ConversationModelConfig, GenerationRequest } from '../models/language-model'
import { ProviderError } from '../models/provider-error'
import { namespaceOf } from '../models/providers'
import { historyStore } from '../registry/engines'
import type { RecentMessages } from '../search/types'
import type { Given } from '../turn/caller-passages'
import type { CallTrace } from '../turn/events'
import { fitHistory } from '../turn/fit'
import { readHistory, toChat } from '../turn/look-back'
import { familyOf, standalonePrompt } from '../turn/prompt'
import { Tracer } from '../turn/trace'
import { lastOf } from './prefetch'
import { withModels } from './turn-ports'

interface FollowUp {
  /** the conversation that the question follows up on, which its caller may read */
  memory: { id: string; historyId: string }
  question: string
  model: ConversationModelConfig
  /** who pays */
  owner: string
  /** the end of the conversation, where it was read ahead: MOST_BYTES of it */
  said?: Promise<RecentMessages | undefined> | undefined
  /** of the request */
  requestId: string
}

/**
 * Charges the call at once, even if it fails, because a turn may never begin.
 * @returns undefined if nothing was said before, or if the provider failed: the question is then searched as it is
 * @throws ApiError for a question that does not fit into the prompt
 */
export async function rewriteOnce(
  env: Cloudflare.Env,
  { memory, question, model, owner, said, requestId }: FollowUp,
  signal: AbortSignal,
): Promise<Given['rewritten']> {
  const { max_bytes: bytes, model_name: name } = model
  const store = historyStore(env, memory.historyId)
  const early = await said
  const origin = { requestId }
  const trail = { requestId, conversation: memory.id }
  const looking = {
    messages: async (most?: number) =>
      most === undefined
        ? { messages: await store.messages(memory.id, undefined, origin), complete: true }
        : ((early && lastOf(early, most)) ?? store.recentMessages(memory.id, most, undefined, origin)),
    ttls: (ids: string[]) => ttlsOf(database(env), ids),
    now: () => Date.now(),
  }
  const { messages } = await readHistory(looking, model, bytes)
  if (messages.length === 0) return undefined
  const history = fitHistory(messages.map(toChat), question, bytes, familyOf(name), namespaceOf(name))
  const request: GenerationRequest = {
    purpose: 'standalone',
    messages: standalonePrompt(familyOf(name), history, question),
    question,
    sources: [],
    history,
    stream: false,
  }
  let call: CallTrace | undefined
  const none = () => Promise.reject(new Error('A rewriting searches and stores nothing.'))
  const tracer = new Tracer(
    withModels(env, { model }, trail, {
      ...looking,
      search: none,
      schema: none,
      store: none,
      emit: (event) => {
        if (event.type === 'call') call = event.call
      },
    }),
  )
  try {
    const { text, finish } = await tracer.ports.generate(request, signal)
    const isWhole = finish !== 'length' && finish !== 'content_filter'
    return { question: isWhole ? text.trim() : question, call: { ...call!, charged: true } }
  } catch (error) {
    if (error instanceof ProviderError && !signal.aborted) return undefined
    throw error
  } finally {
    charge(env, owner, tracer.spending(model.id), trail)
  }
}

function charge(
  env: Cloudflare.Env,
  owner: string,
  spent: ReturnType<Tracer['spending']>,
  trail: Trail,
): void {
  const day = dayOf(Date.now())
  const others = spent
    .filter(({ inputTokens, outputTokens }) => inputTokens + outputTokens > 0)
    .map((spending) => ({ day, owner, ...spending }))
  const charged = recordCost(database(env), { others })
  waitUntil(charged.catch((error) => logFailure('a rewriting could not be charged', error, trail)))
}
