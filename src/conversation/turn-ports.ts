/** What a turn reaches: the collections that it searches, and its language models. */

import { dayOf, isLimited, spentOnModel, usedUp } from '../db/usage'
import { attempt, logFailure, type Outcome, type Trail } from '../errors'
import { textOf } from '../lib/parts'
import { silenceOf } from '../models/call'
import type { ConversationModelConfig, LanguageModel } from '../models/language-model'
import { createLanguageModel } from '../models/providers'
import { type Candidate, resilient } from '../models/resilient'
import { withSettings } from '../models/sampling'
import { retrieverOf } from '../registry/engines'
import { findModel, siblingOf } from '../registry/models'
import { lookUpAnew } from '../registry/names'
import type { RecentMessages } from '../search/types'
import type { TurnPorts } from '../turn/ports'
import type { AskRequest } from '../turn/request'
import { retrieve } from '../turn/retrieve'
import { searchAtOnce } from '../turn/run'

export type SearchPorts = Required<Pick<TurnPorts, 'search' | 'schema' | 'placeOf'>>

export const searchPorts = (env: Cloudflare.Env, { requestId }: AskRequest): SearchPorts => ({
  search: (place, params, scope) =>
    told(() => retrieverOf(env, place).search(params, { ...scope, requestId })),
  schema: (place) => told(() => retrieverOf(env, place).schema()),
  placeOf: (collection) => lookUpAnew(env, collection).catch(() => undefined),
})

/** Returns a collection's reply. An unavailable collection fails only its own search, not the others. */
async function told<T>(ask: () => Promise<Outcome<T>>): Promise<Outcome<T>> {
  const outcome = await attempt(ask)
  return outcome.ok ? outcome.value : outcome
}

/**
 * Begins the searches of a question in its own wording before its turn begins, or is sure to.
 * @param known what was said before, if it was read
 * @returns ports for that turn: where it asks the same, it gets what began
 */
export function searchAhead(
  env: Cloudflare.Env,
  request: AskRequest,
  known: RecentMessages | undefined,
): SearchPorts {
  const { search, schema, placeOf } = searchPorts(env, request)
  const [searches, schemas] = [keeping(search), keeping(schema)]
  const begin = { search: searches.begin, schema: schemas.begin, placeOf }
  const { transcript = [], continues } = request
  const isFirst = transcript.length === 0 && (known ? known.messages.length === 0 : !continues)
  const searching = isFirst
    ? retrieve(request.searches, textOf(request.question), begin)
    : searchAtOnce(request, { ...begin, known }, Date.now())
  searching?.catch(() => {})
  return { search: searches.take, schema: schemas.take, placeOf }
}

/** Keeps the replies of calls that begin, and gives each out once, for the same arguments. */
function keeping<Given extends unknown[], T>(call: (...given: Given) => Promise<T>) {
  const begun = new Map<string, Promise<T>[]>()
  return {
    begin: (...given: Given): Promise<T> => {
      const key = JSON.stringify(given)
      const reply = call(...given)
      begun.set(key, [...(begun.get(key) ?? []), reply])
      return reply
    },
    take: (...given: Given): Promise<T> => begun.get(JSON.stringify(given))?.shift() ?? call(...given),
  }
}

// The language models of a turn: the one asked, with its `fallbacks` behind it, and the one that writes
// standalone questions and suggestions. registry/models.ts describes how one model names others.

type ModelPorts = Pick<TurnPorts, 'model' | 'answerer' | 'rewriter' | 'now'>

/**
 * A turn's ports with its models and its clock. Models are made when they are first used, so that an unknown namespace becomes the
 * turn's error.
 * @param settings of the request, for its answer @param trail of the turn, for the log
 */
export const withModels = (
  env: Cloudflare.Env,
  { model: config, settings }: Pick<AskRequest, 'model' | 'settings'>,
  trail: Trail,
  ports: Omit<TurnPorts, keyof ModelPorts>,
): TurnPorts => ({
  ...ports,
  get model() {
    return languageModelOf(config, env, trail)
  },
  get answerer() {
    return settings && languageModelOf(withSettings(config, settings), env, trail)
  },
  rewriter: () => rewriterOf(config, env, trail),
  now: () => Date.now(),
})

/**
 * A model ready to be called, with its fallbacks behind it.
 * @param trail of the turn, for the log
 * @throws ApiError 400 for an unknown namespace
 */
const languageModelOf = (config: ConversationModelConfig, env: Cloudflare.Env, trail: Trail): LanguageModel =>
  resilient(candidate(config, env), { others: () => fallbacksOf(config, env, trail) })

/**
 * The model that writes standalone questions and suggestions, if one is named. If it fails for any reason, the
 * answering model and then its fallbacks are called.
 */
export async function rewriterOf(
  config: ConversationModelConfig,
  env: Cloudflare.Env,
  trail: Trail,
): Promise<LanguageModel | undefined> {
  const { rewrite_model: name } = config
  if (typeof name !== 'string') return undefined
  const stored = await read(env, name, trail)
  const named = stored ? await affordable(env, stored, trail) : siblingOf(config, name)
  if (!named) return undefined
  return resilient(candidate(config, env), {
    ahead: candidate(named, env),
    others: () => fallbacksOf(config, env, trail),
  })
}

async function fallbacksOf(
  config: ConversationModelConfig,
  env: Cloudflare.Env,
  trail: Trail,
): Promise<Candidate[]> {
  const ids = Array.isArray(config.fallbacks) ? (config.fallbacks as string[]) : []
  const models = await Promise.all(
    ids.map(async (id) => {
      const model = await read(env, id, trail)
      return model && (await affordable(env, model, trail))
    }),
  )
  return models.flatMap((model) => (model ? [candidate(model, env)] : []))
}

/** Reads a model. If it is gone or cannot be read now, the turn goes on without it. */
const read = (env: Cloudflare.Env, id: string, trail: Trail): Promise<ConversationModelConfig | undefined> =>
  findModel(env, id).catch((error) => {
    logFailure('a model that another one names could not be read', error, trail)
    return undefined
  })

/**
 * A model to call in place of another, unless its own budget is spent. If the spend cannot be read, the turn
 * goes on without it, because a budget must hold.
 */
async function affordable(
  env: Cloudflare.Env,
  model: ConversationModelConfig,
  trail: Trail,
): Promise<ConversationModelConfig | undefined> {
  if (!isLimited(model)) return model
  try {
    const spent = await spentOnModel(env, dayOf(Date.now()), model.id)
    return usedUp(model, spent) ? undefined : model
  } catch (error) {
    logFailure('what was spent on a model could not be read', error, trail)
    return undefined
  }
}

const candidate = (config: ConversationModelConfig, env: Cloudflare.Env): Candidate => ({
  id: config.id,
  model: createLanguageModel(config, env),
  patience: silenceOf(config) * 1000,
})
