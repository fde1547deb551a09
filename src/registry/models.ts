/**
 * Conversation models: what a caller registers to converse with (contract 1.2). The checks run in the
 * contract's order and speak its sentences, because scripts compare both.
 */

import * as v from 'valibot'
import { database } from '../db/client'
import {
  type ConversationModelRow,
  findModel as findRow,
  insertModel,
  listModelRows,
  markDeleted,
  readModel,
  replaceModel,
} from '../db/conversation-models'
import { ApiError, collectionMissing, modelMissing, unwrap } from '../errors'
import type { ConversationModelConfig } from '../models/language-model'
import { checkParameters, withoutNulls } from '../models/parameters'
import { destinationOf, providerOf } from '../models/providers'
import { partSecrets, requireSecrets } from '../models/secrets'
import { once } from '../once'
import { readStored, readStoredObject } from '../stored-json'
import { ownObject } from './engines'
import { checkHistorySchema } from './history-schema'
import { changeSecrets, keptSecrets, openSecrets, sealSecrets, shownSecrets } from './model-secrets'
import { checkNamedModels } from './named-models'
import { findCollection, lookUp } from './names'
import { findRemoteModel } from './resources'

const DEFAULT_TTL = 86_400

/** A model as it is shown: its secrets masked. */
export type ShownModel = Record<string, unknown> & { id: string }

/** Throws unless whoever makes or changes a model may have its history in a collection. */
export type RequireHistory = (collection: string) => void

/** Of a caller who has no key: the server itself. */
const ANY_HISTORY: RequireHistory = () => {}

/**
 * Checks and stores a new model.
 * @param body the request's JSON, parsed
 * @param requireHistory what is said to the model can be read there
 * @throws ApiError 400 for a failed check, 408 when the provider does not answer, 409 when the id is taken
 */
export async function createModel(
  env: Cloudflare.Env,
  body: unknown,
  requireHistory = ANY_HISTORY,
): Promise<ShownModel> {
  const given = asObject(body)
  const db = database(env)
  const named = typeof given.id === 'string' && given.id !== ''
  if (named && (await readModel(db, given.id as string))) throw taken()
  const id = named ? (given.id as string) : crypto.randomUUID()
  const config = await check(env, { ttl: DEFAULT_TTL, ...given, id }, requireHistory)
  const row = await toRow(env, config)
  if (!(await insertModel(db, row))) throw taken()
  return shown(row)
}

/** How often a change is made anew because another one came first. */
export const MOST_TRIES = 10

export const busyModel = (): ApiError =>
  new ApiError(409, 'The model is being changed by other requests. Try again.')

/**
 * Merges properties into a model and checks the whole anew. Another `id` renames it. A secret that comes masked, as
 * GET gave it, stays as it is. Of changes at the same time none is lost.
 * @param requireHistory asked of the history that the model has and of the one that it gets: who may not read what was
 *   said to it may not have it said elsewhere either
 * @throws ApiError as createModel does, and 404 when there is no such model
 */
export async function updateModel(
  env: Cloudflare.Env,
  id: string,
  body: unknown,
  requireHistory = ANY_HISTORY,
): Promise<ShownModel> {
  const given = asObject(body)
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const row = (await readModel(database(env), id)) ?? missing()
    requireHistory(historyNameOf(row))
    const updated = await merged(env, row, given, requireHistory)
    const outcome = await replaceModel(database(env), row, updated, unixNow())
    if (outcome === 'taken') throw taken()
    if (outcome === 'missing') missing()
    if (outcome === 'done') return shown(updated)
  }
  throw busyModel()
}

/** What every version has stored of a model, besides what is its provider's. */
const Stored = once(() =>
  v.looseObject({
    id: v.string(),
    model_name: v.string(),
    history_collection: v.string(),
    max_bytes: v.number(),
    ttl: v.number(),
  }),
)

/** A model as it is stored, without its secrets. @throws ValiError, SyntaxError for what no version has written */
export const storedConfig = ({ config }: Pick<ConversationModelRow, 'config'>): ConversationModelConfig =>
  readStored(Stored(), config)

/** A model with properties merged into it, checked. @throws ApiError as createModel does */
async function merged(
  env: Cloudflare.Env,
  row: ConversationModelRow,
  given: Record<string, unknown>,
  requireHistory: RequireHistory,
): Promise<ConversationModelRow> {
  const id = typeof given.id === 'string' && given.id !== '' ? given.id : row.id
  if (id !== row.id && (await readModel(database(env), id))) throw taken()
  const { secrets, rest } = partSecrets(given)
  const kept = await changeSecrets(row, secrets, env)
  const before = storedConfig(row)
  const stored = { ...before, ...(await openSecrets(row, env)) }
  const requireSent = (config: ConversationModelConfig): void => {
    const names = keptSecrets(row, secrets)
    if (names.length > 0) requireSameDestination(stored, config, names, env)
  }
  const changed = { ...before, ...rest, ...kept, id }
  return toRow(env, await check(env, changed, requireHistory, requireSent))
}

/**
 * A secret that is stored goes where its owner let it go, and nowhere else: who may write models could otherwise
 * have it sent to a host of their own.
 * @param names of the secrets that would go along
 * @throws ApiError 400
 */
export function requireSameDestination(
  stored: ConversationModelConfig,
  changed: ConversationModelConfig,
  names: string[],
  env: Cloudflare.Env,
): void {
  if (destinationOf(stored, env) === destinationOf(changed, env)) return
  const properties = names.map((name) => `\`${name}\``).join(', ')
  throw new ApiError(
    400,
    `The change has the model called at another host or by another provider, where its stored secrets do not go. Send ${properties} again, or null to take away what is not needed.`,
  )
}

export const listModels = async (env: Cloudflare.Env): Promise<ShownModel[]> =>
  (await listModelRows(database(env))).map(shown)

/** @throws ApiError 404 */
export async function getModel(env: Cloudflare.Env, id: string): Promise<ShownModel> {
  return shown((await readModel(database(env), id)) ?? missing())
}

/** Its messages stay, and go on expiring by its ttl. @throws ApiError 404, or what `requireHistory` throws */
export async function deleteModel(
  env: Cloudflare.Env,
  id: string,
  requireHistory = ANY_HISTORY,
): Promise<ShownModel> {
  const db = database(env)
  const row = (await readModel(db, id)) ?? missing()
  requireHistory(historyNameOf(row))
  if (!(await markDeleted(db, id, unixNow()))) missing()
  return shown(row)
}

/**
 * A model ready to be asked, its secrets in clear; undefined for an unknown id. Cached for a few seconds.
 * @throws ApiError 400 when they cannot be opened
 */
export async function findModel(
  env: Cloudflare.Env,
  id: string,
): Promise<ConversationModelConfig | undefined> {
  const row = await findRow(env, id)
  if (!row) return findRemoteModel(env, id)
  return { ...storedConfig(row), ...(await openSecrets(row, env)) }
}

/** Has the history collections of restored models copied to D1. @param rows of D1's table */
export async function keepHistoriesOf(
  env: Cloudflare.Env,
  rows: Record<string, string | number | null>[],
): Promise<void> {
  for (const { config } of rows) {
    const { history_collection: name } = readStoredObject(String(config))
    const history = typeof name === 'string' ? await lookUp(env, name) : undefined
    if (history) await ownObject(env, history).keepHistory()
  }
}

function asObject(body: unknown): Record<string, unknown> {
  if (body === null || typeof body !== 'object' || Array.isArray(body)) throw new ApiError(400, 'Bad JSON.')
  return body as Record<string, unknown>
}

/**
 * Checks 2 to 10, and the live call. Answers the config as it is to be stored.
 * @param requireMore throws what else is wrong with it, before anything of it is sent anywhere
 */
async function check(
  env: Cloudflare.Env,
  given: Record<string, unknown>,
  requireHistory: RequireHistory,
  requireMore: (config: ConversationModelConfig) => void = () => {},
): Promise<ConversationModelConfig> {
  const config = withoutNulls(given)
  if (typeof config.model_name !== 'string') {
    throw new ApiError(400, 'Property `model_name` is not provided or not a string.')
  }
  for (const property of ['system_prompt', 'input_guardrail_prompt']) {
    if (config[property] !== undefined && typeof config[property] !== 'string') {
      throw new ApiError(400, `Property \`${property}\` is not a string.`)
    }
  }
  if (typeof config.history_collection !== 'string') {
    throw new ApiError(400, 'Property `history_collection` is missing or is not a string.')
  }
  requireHistory(config.history_collection)
  if (!isUnsigned(config.max_bytes) || config.max_bytes === 0) {
    throw new ApiError(400, 'Property `max_bytes` is not provided or not a positive integer.')
  }
  const history = await historyOf(env, config.history_collection)
  checkHistorySchema(unwrap(await history.schema()))
  if (!isUnsigned(config.ttl)) throw new ApiError(400, 'Property `ttl` is not a positive integer.')
  for (const property of ['tokens_per_day', 'turns_per_day']) {
    if (config[property] !== undefined && (!isUnsigned(config[property]) || config[property] === 0)) {
      throw new ApiError(400, `Property \`${property}\` is not a positive integer.`)
    }
  }
  const checked = config as ConversationModelConfig
  const provider = providerOf(checked)
  provider.validate(checked, env)
  requireSecrets(checked)
  checkParameters(checked)
  requireMore(checked)
  await checkNamedModels(env, checked, async (id) => (await readModel(database(env), id)) !== undefined)
  await provider.probe(checked, env)
  await history.keepHistory()
  return checked
}

const isUnsigned = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0

const historyNameOf = (row: ConversationModelRow): string => storedConfig(row).history_collection

async function historyOf(env: Cloudflare.Env, name: string) {
  try {
    return ownObject(env, await findCollection(env, name))
  } catch (error) {
    // Here a missing collection is a wrong property, not a wrong address.
    if (error instanceof ApiError && error.status === 404) throw collectionMissing(name, 400)
    throw error
  }
}

async function toRow(env: Cloudflare.Env, config: ConversationModelConfig): Promise<ConversationModelRow> {
  const { secrets, rest } = partSecrets(config)
  return {
    id: config.id,
    config: JSON.stringify(rest),
    ...(await sealSecrets(secrets, env)),
    ttl: config.ttl,
    deletedAt: null,
  }
}

const shown = (row: ConversationModelRow): ShownModel => ({
  ...storedConfig(row),
  ...shownSecrets(row),
})

const unixNow = (): number => Math.floor(Date.now() / 1000)

const taken = (): ApiError => new ApiError(409, 'Model already exists')

function missing(): never {
  throw modelMissing()
}
