/**
 * Conversation models: what a caller registers to converse with (contract 1.2). The checks run in the
 * contract's order and speak its sentences, because scripts compare both.
 */
import * as v from 'valibot'
import {
  type ConversationModelRow,
  findModel as findRow,
  insertModel,
  isModelHeld,
  listModelRows,
  markDeleted,
  readModel,
  replaceModel,
} from '../db/registry'
import { open, seal } from '../db/sealing'
import { ApiError, badRequest, collectionMissing, modelMissing, unwrap } from '../errors'
import { maskSecret } from '../lib/mask'
import { once } from '../lib/once'
import { readStored, readStoredObject } from '../lib/stored-json'
import type { ConversationModelConfig } from '../models/language-model'
import { destinationOf, namespaceOf, providerOf } from '../models/providers'
import { checkParameters, withoutNulls, withoutSampling } from '../models/sampling'
import { mapSecrets, partSecrets, requireSecrets, type Secrets, StoredSecrets } from '../models/secrets'
import { isObject } from '../search/schema/values'
import type { CollectionSchema, Field } from '../search/types'
import { findCollection, lookUp } from './collections'
import { ownObject } from './engines'
import { type FindResource, findRemoteModel } from './resources'

const DEFAULT_TTL = 86_400

/** A model as it is shown: its secrets masked. */
type ShownModel = Record<string, unknown> & { id: string }

/** Throws if the caller may not keep a model's history in this collection. */
export type RequireHistory = (collection: string) => void

/** For calls without a key, which the server itself makes. */
const ANY_HISTORY: RequireHistory = () => {}

/**
 * Checks and stores a new model.
 * @param given the request's JSON, parsed
 * @param requireHistory checks the history collection: whoever reads it reads what people ask the model
 * @throws ApiError 400 for a failed check, 408 when the provider does not answer, 409 when the id is taken
 */
export async function createModel(
  env: Cloudflare.Env,
  given: unknown,
  requireHistory = ANY_HISTORY,
): Promise<ShownModel> {
  if (!isObject(given)) throw badRequest('Bad JSON.')
  const db = env.DB
  const named = typeof given.id === 'string' && given.id !== ''
  if (named && (await readModel(db, given.id as string))) throw taken()
  const id = named ? (given.id as string) : crypto.randomUUID()
  const config = await check(env, { ttl: DEFAULT_TTL, ...given, id }, requireHistory)
  const row = await toRow(env, config)
  if (!(await insertModel(db, row))) throw taken()
  return shown(row)
}

/** Attempts at a change. Each fails if another change came first. */
const MOST_TRIES = 10

/**
 * Merges properties into a model and checks the result. Another `id` renames the model. A secret that comes back masked,
 * as GET shows it, keeps its value. Concurrent changes are all applied.
 * @param requireHistory checks the old and the new history collection: whoever may not read the old one may not move it
 *   either
 * @throws ApiError as createModel does, and 404 when there is no such model
 */
export async function updateModel(
  env: Cloudflare.Env,
  id: string,
  given: unknown,
  requireHistory = ANY_HISTORY,
): Promise<ShownModel> {
  if (!isObject(given)) throw badRequest('Bad JSON.')
  const stored = await applyChange(async () => {
    const row = (await readModel(env.DB, id)) ?? missing()
    requireHistory(historyNameOf(row))
    const updated = await merged(env, row, given, requireHistory)
    return { outcome: await replaceModel(env.DB, row, updated, unixNow()), updated }
  })
  return shown(stored)
}

/**
 * Changes a model, again where another change came first.
 * @returns the changed row @throws ApiError 404 if it is gone, 409 if its new id is taken
 */
export async function applyChange<Row>(
  attempt: () => Promise<{ outcome: 'done' | 'taken' | 'missing' | 'changed'; updated: Row }>,
): Promise<Row> {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const { outcome, updated } = await attempt()
    if (outcome === 'taken') throw taken()
    if (outcome === 'missing') missing()
    if (outcome === 'done') return updated
  }
  throw new ApiError(409, 'The model is being changed by other requests. Try again.')
}

/** Properties that every version has stored, besides those of the provider. */
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
  if (id !== row.id && (await readModel(env.DB, id))) throw taken()
  const before = storedConfig(row)
  const { properties, requireSent } = await mergeSecrets(row, given, env, (secrets) => ({
    ...before,
    ...secrets,
  }))
  const all = Object.entries({ ...before, ...properties, id })
  // `null` takes a property away.
  const config = Object.fromEntries(all.filter(([, value]) => value !== null))
  return toRow(env, await check(env, config, requireHistory, requireSent))
}

/**
 * The properties that a change sets, its secrets among them.
 * @param modelOf the stored model, with its secrets in clear
 * @returns requireSent throws where a changed model would be sent secrets that the change does not name
 */
export async function mergeSecrets(
  row: Sealed,
  given: Record<string, unknown>,
  env: Cloudflare.Env,
  modelOf: (secrets: Secrets) => ConversationModelConfig,
) {
  const { secrets, rest } = partSecrets(given)
  const stored = modelOf(await openSecrets(row, env))
  return {
    properties: { ...rest, ...(await changeSecrets(row, secrets, env)) },
    requireSent(changed: ConversationModelConfig): void {
      const names = keptSecrets(row, secrets)
      if (names.length > 0) requireSameDestination(stored, changed, names, env)
    },
  }
}

/**
 * A stored secret is sent only to the host that its owner chose. Otherwise anyone who may change models could have it
 * sent to their own host.
 * @param names of the secrets that would be sent
 * @throws ApiError 400
 */
function requireSameDestination(
  stored: ConversationModelConfig,
  changed: ConversationModelConfig,
  names: string[],
  env: Cloudflare.Env,
): void {
  if (destinationOf(stored, env) === destinationOf(changed, env)) return
  const properties = names.map((name) => `\`${name}\``).join(', ')
  throw badRequest(
    `The change has the model called at another host or by another provider, where its stored secrets do not go. Send ${properties} again, or null to take away what is not needed.`,
  )
}

export const listModels = async (env: Cloudflare.Env): Promise<ShownModel[]> =>
  (await listModelRows(env.DB)).map(shown)

/** @throws ApiError 404 */
export async function getModel(env: Cloudflare.Env, id: string): Promise<ShownModel> {
  return shown((await readModel(env.DB, id)) ?? missing())
}

/** Deletes a model. Its messages stay and still expire by its ttl. @throws ApiError 404, or what `requireHistory` throws */
export async function deleteModel(
  env: Cloudflare.Env,
  id: string,
  requireHistory = ANY_HISTORY,
): Promise<ShownModel> {
  const db = env.DB
  const row = (await readModel(db, id)) ?? missing()
  requireHistory(historyNameOf(row))
  if (!(await markDeleted(db, id, unixNow()))) missing()
  return shown(row)
}

/**
 * Reads a model for a call, with its secrets in clear; undefined for an unknown id. Cached for a few seconds.
 * @param find finds what was read ahead, beside the model's row
 * @throws ApiError 400 when they cannot be opened
 */
export async function findModel(
  env: Cloudflare.Env,
  id: string,
  find?: FindResource,
): Promise<ConversationModelConfig | undefined> {
  const remote = find && !isModelHeld(id) ? await findRemoteModel(env, id, find) : undefined
  if (remote) return remote
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

/**
 * Runs checks 2 to 10 and the live call. Returns the config to store.
 * @param requireMore runs further checks, before anything is sent to the provider
 */
async function check(
  env: Cloudflare.Env,
  given: Record<string, unknown>,
  requireHistory: RequireHistory,
  requireMore: (config: ConversationModelConfig) => void = () => {},
): Promise<ConversationModelConfig> {
  const config = withoutNulls(given)
  if (typeof config.model_name !== 'string') {
    throw badRequest('Property `model_name` is not provided or not a string.')
  }
  for (const property of ['system_prompt', 'input_guardrail_prompt']) {
    if (config[property] !== undefined && typeof config[property] !== 'string') {
      throw badRequest(`Property \`${property}\` is not a string.`)
    }
  }
  if (typeof config.history_collection !== 'string') {
    throw badRequest('Property `history_collection` is missing or is not a string.')
  }
  requireHistory(config.history_collection)
  if (!isUnsigned(config.max_bytes) || config.max_bytes === 0) {
    throw badRequest('Property `max_bytes` is not provided or not a positive integer.')
  }
  const history = await historyOf(env, config.history_collection)
  checkHistorySchema(unwrap(await history.schema()))
  if (!isUnsigned(config.ttl)) throw badRequest('Property `ttl` is not a positive integer.')
  for (const property of ['tokens_per_day', 'turns_per_day']) {
    if (config[property] !== undefined && (!isUnsigned(config[property]) || config[property] === 0)) {
      throw badRequest(`Property \`${property}\` is not a positive integer.`)
    }
  }
  const checked = config as ConversationModelConfig
  const provider = providerOf(checked)
  provider.validate(checked, env)
  requireSecrets(checked)
  checkParameters(checked)
  requireMore(checked)
  await checkNamedModels(env, checked)
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
    // A missing collection is a 400 here, not a 404: it is a property of the body.
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

export const taken = (): ApiError => new ApiError(409, 'Model already exists')

export function missing(): never {
  throw modelMissing()
}

// What a collection must look like to keep a history (contract 1.3).

/** @throws ApiError 400 with the contract's message, in the contract's order */
function checkHistorySchema(schema: CollectionSchema): void {
  const fields = new Map(schema.fields.map((field) => [field.name, field]))
  const require = (name: string): Field => {
    const field = fields.get(name)
    if (!field) throw badRequest(`Schema is missing \`${name}\` field`)
    return field
  }
  const requireString = (name: string) => {
    if (require(name).type !== 'string') throw badRequest(`\`${name}\` field must be a string`)
  }
  for (const name of ['conversation_id', 'role', 'message', 'timestamp']) require(name)
  for (const name of ['conversation_id', 'role', 'message']) requireString(name)
  const timestamp = require('timestamp')
  if (timestamp.type !== 'int32') throw badRequest('`timestamp` field must be an integer')
  if (!timestamp.sort) throw badRequest('`timestamp` field must be a sort field')
  requireString('model_id')
}

// The other models that a conversation model names: `fallbacks`, which answer while it cannot, and
// `rewrite_model`, which writes standalone questions and suggestions in its place.
//
// Both are named by id, so no credentials are stored twice. Names are followed for one step only: a fallback's own
// fallbacks are ignored, so cycles do no harm. Deleted models are skipped.

const MOST_FALLBACKS = 5

/**
 * Checks the names in a model that is about to be stored.
 * @throws ApiError 400 naming the model that does not exist, or with the provider's error for `rewrite_model`
 */
async function checkNamedModels(env: Cloudflare.Env, config: ConversationModelConfig): Promise<void> {
  await checkFallbacks(env, config)
  const { rewrite_model: name } = config
  if (name === undefined) return
  if (typeof name !== 'string' || name === '') {
    throw badRequest('Property `rewrite_model` is not a string.')
  }
  if (await readModel(env.DB, name)) return
  const sibling = siblingOf(config, name)
  if (!sibling) {
    throw badRequest(
      'Property `rewrite_model` is neither the id of a conversation model nor the name of a model of the same provider.',
    )
  }
  const provider = providerOf(sibling)
  provider.validate(sibling, env)
  await provider.probe(sibling, env)
}

async function checkFallbacks(
  env: Cloudflare.Env,
  { id: own, fallbacks }: ConversationModelConfig,
): Promise<void> {
  if (fallbacks === undefined) return
  if (!Array.isArray(fallbacks) || fallbacks.some((id) => typeof id !== 'string' || id === '')) {
    throw badRequest('Property `fallbacks` is not a list of ids of conversation models.')
  }
  if (fallbacks.length > MOST_FALLBACKS) {
    throw badRequest(`Property \`fallbacks\` names more than ${MOST_FALLBACKS} models.`)
  }
  for (const id of fallbacks) {
    if (id === own) throw badRequest('Property `fallbacks` names the model itself.')
    if (!(await readModel(env.DB, id))) {
      throw badRequest(`Property \`fallbacks\` names \`${id}\`, which is no conversation model.`)
    }
  }
}

/** Another model of the same provider, with the same credentials. The other settings belong to the first model. */
export function siblingOf(
  config: ConversationModelConfig,
  name: string,
): ConversationModelConfig | undefined {
  const namespace = namespaceOf(config.model_name)
  // Azure names its model in the URL, and `local` has only one.
  if (namespaceOf(name) !== namespace || namespace === 'azure' || namespace === 'local') return undefined
  return { ...withoutSampling(config), model_name: name }
}

// =============================================================================
// A model's secrets as its row stores them: one sealed JSON, and beside it the same JSON with every value masked. So
// nothing is unsealed to show a model.
//
// Old rows hold only the `api_key`, sealed and masked as plain strings. A masked string ends in an asterisk and JSON
// ends in a brace, so the two cannot be confused.

type Sealed = Pick<ConversationModelRow, 'sealedSecrets' | 'maskedSecrets'>

const isBare = (masked: string): boolean => !masked.endsWith('}')

/** @throws ApiError 400 when the deployment has no ENCRYPTION_KEY */
export async function sealSecrets(secrets: Secrets, env: Cloudflare.Env): Promise<Sealed> {
  if (Object.keys(secrets).length === 0) return { sealedSecrets: null, maskedSecrets: null }
  return {
    sealedSecrets: await seal(JSON.stringify(secrets), env),
    maskedSecrets: JSON.stringify(mapSecrets(secrets, maskSecret)),
  }
}

/** The secrets in clear. @throws ApiError 400 when they cannot be opened */
export async function openSecrets(
  { sealedSecrets, maskedSecrets }: Sealed,
  env: Cloudflare.Env,
): Promise<Secrets> {
  if (sealedSecrets === null || maskedSecrets === null) return {}
  const opened = await open(sealedSecrets, env)
  return isBare(maskedSecrets) ? { api_key: opened } : readStored(StoredSecrets(), opened)
}

/** The masked secrets, for showing. */
export function shownSecrets({ maskedSecrets }: Sealed): Secrets {
  if (maskedSecrets === null) return {}
  return isBare(maskedSecrets) ? { api_key: maskedSecrets } : readStored(StoredSecrets(), maskedSecrets)
}

/**
 * The secrets of a changed model. A secret that is missing, or comes back masked as GET shows it, keeps its value.
 * `null` removes it.
 */
async function changeSecrets(
  row: Sealed,
  given: { [property in keyof Secrets]: unknown },
  env: Cloudflare.Env,
): Promise<Record<string, unknown>> {
  const shown = shownSecrets(row)
  const changed: Record<string, unknown> = { ...(await openSecrets(row, env)) }
  const stored = { ...changed }
  for (const [name, value] of Object.entries(given)) {
    if (value === null) delete changed[name]
    else if (name === 'headers') changed[name] = changeHeaders(value, shown.headers, stored.headers)
    else if (value !== shown[name as keyof Secrets]) changed[name] = value
  }
  return changed
}

/**
 * The names of the stored secrets that a change keeps. Whoever changes the host that they are sent to must know them
 * (`requireSameDestination` in models.ts).
 */
function keptSecrets(row: Sealed, given: { [property in keyof Secrets]: unknown }): string[] {
  const { headers = {}, ...strings } = shownSecrets(row)
  const kept = Object.entries(strings)
    .filter(([name, shown]) => !Object.hasOwn(given, name) || given[name as keyof Secrets] === shown)
    .map(([name]) => name)
  const sent = given.headers
  const keptHeaders = Object.entries(headers)
    .filter(
      ([name, shown]) => sent === undefined || (sent as Record<string, unknown> | null)?.[name] === shown,
    )
    .map(([name]) => `headers.${name}`)
  return [...kept, ...keptHeaders]
}

/** Headers are replaced as a whole. A value that comes back masked keeps its stored value. */
function changeHeaders(given: unknown, shown: Record<string, string> = {}, stored: unknown): unknown {
  if (!isObject(given)) return given
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => [
      name,
      Object.hasOwn(shown, name) && value === shown[name] ? (stored as Record<string, string>)[name] : value,
    ]),
  )
}
