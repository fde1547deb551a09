/** Creates, shows, changes and deletes API keys, with Typesense's messages. */
import * as v from 'valibot'
import {
  type ApiKeyRecord,
  deleteApiKey,
  getApiKey,
  insertApiKey,
  type KeyLimits,
  listApiKeys,
  updateApiKey,
} from '../db/api-keys'
import { type BackupRow, restoreRows } from '../db/backup'
import { seal, sha256 } from '../db/sealing'
import { isLimited } from '../db/turns'
import { ApiError, badRequest, forbidden } from '../errors'
import { meant } from '../lib/nearest'
import { once } from '../lib/once'
import { MOST_ORIGINS, ORIGIN_PATTERN } from '../lib/origins'
import { readStored } from '../lib/stored-json'
import { canSignScopedKeys } from './access'
import { checkBudget, forgetKeys, PREFIX_LENGTH } from './authenticate'
import { PAGE_BUDGET } from './page-budget'

/** The end of the year 4020, in unix seconds: Typesense's value for a key that does not expire. */
const FAR_FUTURE = 64_723_363_199
const VALUE_LENGTH = 32
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

type ApiKeyView = ReturnType<typeof view>

/** A key without its value, as it is shown after its creation. */
const view = (key: ApiKeyRecord) => ({
  id: key.id,
  value_prefix: key.prefix,
  description: key.description,
  actions: key.actions,
  collections: key.collections,
  expires_at: key.expiresAt,
  autodelete: key.autodelete,
  ...(Object.keys(key.limits).length > 0 && { limits: key.limits }),
})

/**
 * Creates a key. The reply contains its value, which cannot be read again later.
 *
 * @param body the parsed JSON of the request
 * @throws ApiError 400 with the first fault found, 409 when another key has the given value
 */
export async function createKey(env: Cloudflare.Env, body: unknown) {
  const { value = randomValue(), ...wanted } = checkKey(body)
  const stored = await insertApiKey(env.DB, {
    ...wanted,
    prefix: value.slice(0, PREFIX_LENGTH),
    hash: await sha256(value),
    sealedValue: canSignScopedKeys(wanted) ? await seal(value, env) : null,
  })
  if (!stored) throw new ApiError(409, 'API key generation conflict.')
  forgetKeys()
  const { value_prefix: _, ...shown } = view(stored)
  return { ...shown, value }
}

/** A key's new value, shown once. */
interface RestoredKey {
  id: number
  description: string
  value: string
}

/**
 * Stores the keys of a backup under their ids, because conversations and usage name them. A backup has no values, so each key
 * gets a new one: its `value`, or a random one. The row of a deleted key is kept too: its id must not be used again.
 * @returns how many were stored, and their values. A key that is already stored keeps its value, which is not
 *   returned
 * @throws ApiError 409 if an id belongs to another key; 400 for a row that is not a key
 */
export async function restoreKeys(
  env: Cloudflare.Env,
  rows: BackupRow[],
): Promise<{ stored: number; keys: RestoredKey[] }> {
  const db = env.DB
  const keys: RestoredKey[] = []
  let stored = 0
  for (const row of rows) {
    const isDeleted = row.actions === NO_ACTIONS
    const value = typeof row.value === 'string' && row.value !== '' ? row.value : randomValue()
    const hash = isDeleted ? `deleted ${row.id}` : await sha256(value)
    const isNew = await restoreRows(db, 'keys', [
      {
        ...row,
        prefix: isDeleted ? '' : value.slice(0, PREFIX_LENGTH),
        hash,
        sealed_value: canSign(row) ? await seal(value, env) : null,
      },
    ])
    stored += isNew
    const isStored = isNew > 0 || (await isSame(env, row, hash))
    if (isStored && !isDeleted) keys.push({ id: Number(row.id), description: String(row.description), value })
  }
  forgetKeys()
  return { stored, keys }
}

const NO_ACTIONS = '[]'

const Actions = once(() => v.array(v.string()))

function canSign({ actions }: BackupRow): boolean {
  try {
    return canSignScopedKeys({ actions: readStored(Actions(), String(actions)) })
  } catch {
    throw badRequest('The `actions` of a key must be a JSON list.')
  }
}

/**
 * Whether this key is already stored with this hash. That happens if the reply to an earlier request was lost.
 * @throws ApiError 409 if its id belongs to another key
 */
async function isSame(env: Cloudflare.Env, row: BackupRow, hash: string): Promise<boolean> {
  const found = await getApiKey(env.DB, Number(row.id))
  const isOther =
    found === undefined
      ? row.actions !== NO_ACTIONS
      : found.description !== row.description || JSON.stringify(found.actions) !== row.actions
  if (!isOther) return found?.hash === hash
  throw new ApiError(
    409,
    `Another key has the id ${row.id} here. Conversations would belong to the wrong key: restore into an empty deployment.`,
  )
}

export const listKeys = async (env: Cloudflare.Env): Promise<ApiKeyView[]> =>
  (await listApiKeys(env.DB)).map(view)

/** @throws ApiError 400 for an id that is not a number, 404 for an unknown one */
export async function getKey(env: Cloudflare.Env, id: string): Promise<ApiKeyView> {
  const key = await getApiKey(env.DB, keyId(id))
  if (!key) throw new ApiError(404, 'Not found.')
  return view(key)
}

/** What of a key can be changed. Its value, and what it may do and where, are what others have it for. */
const CHANGEABLE = ['description', 'expires_at', 'autodelete', 'limits']

/**
 * Changes a key; Typesense cannot. Of `limits` only those that are named change, so that a new budget unbinds nothing; null removes
 * a budget. It works so at once here, in other isolates within seconds.
 * @param mayOpen whether the caller may make a key for these collections
 * @throws ApiError 400 with the first fault found, 403 for a key of collections that are not the caller's, 404 for an unknown one
 */
export async function changeKey(
  env: Cloudflare.Env,
  id: string,
  body: unknown,
  mayOpen: (collections: string[]) => boolean,
): Promise<ApiKeyView> {
  const db = env.DB
  const number = keyId(id)
  const stored = await getApiKey(db, number)
  if (!stored) throw new ApiError(404, 'Not found.')
  if (!mayOpen(stored.collections)) throw forbidden()
  if (!isObject(body)) throw badRequest('Bad JSON.')
  const names = Object.keys(body)
  const other = names.find((name) => !CHANGEABLE.includes(name))
  if (other !== undefined) {
    const all = CHANGEABLE.map((name) => `\`${name}\``).join(', ')
    throw badRequest(`\`${other}\` of a key cannot be changed: only ${all}. Make another key.`)
  }
  if (names.length === 0) return view(stored)
  const { description, actions, collections } = stored
  const { limits } = body as { limits?: unknown }
  if (limits !== undefined && !isObject(limits)) throw wrongFormat('limits', 'an object')
  // A budget that was removed stays so: a bound key would get the default one again.
  const merged = { tokens_per_day: null, turns_per_day: null, ...stored.limits, ...limits }
  const wanted = checkKey({ description, actions, collections, ...body, limits: merged })
  const changed = await updateApiKey(db, number, {
    ...('description' in body && { description: wanted.description }),
    ...('expires_at' in body && { expiresAt: wanted.expiresAt }),
    ...('autodelete' in body && { autodelete: wanted.autodelete }),
    ...(limits !== undefined && { limits: wanted.limits }),
  })
  forgetKeys()
  if (!changed) throw new ApiError(404, 'Not found.')
  return view(changed)
}

/** Deletes a key. It stops working here at once, in other isolates within seconds (authenticate.ts). */
export async function deleteKey(env: Cloudflare.Env, id: string): Promise<{ id: number }> {
  const number = keyId(id)
  const deleted = await deleteApiKey(env.DB, number)
  forgetKeys()
  if (!deleted) throw new ApiError(404, 'Not found.')
  return { id: number }
}

function keyId(id: string): number {
  if (!/^\d{1,15}$/.test(id)) throw badRequest('Invalid API key ID.')
  return Number(id)
}

interface WantedKey extends Omit<ApiKeyRecord, 'id' | 'prefix' | 'hash' | 'sealedValue'> {
  value?: string
}

function checkKey(body: unknown): WantedKey {
  if (!isObject(body)) throw badRequest('Bad JSON.')
  const key = body
  for (const name of ['description', 'actions', 'collections']) {
    if (!(name in key)) throw badRequest(`Could not find a \`${name}\` key.`)
  }
  if (typeof key.description !== 'string') throw wrongFormat('description', 'a string')
  if (!isListOfStrings(key.actions)) throw wrongFormat('actions', 'an array of string')
  if (!isListOfStrings(key.collections)) throw wrongFormat('collections', 'an array of string')
  if (
    key.expires_at !== undefined &&
    !(Number.isSafeInteger(key.expires_at) && Number(key.expires_at) >= 0)
  ) {
    throw wrongFormat('expires_at', 'an unsigned integer')
  }
  if (key.autodelete !== undefined && typeof key.autodelete !== 'boolean') {
    throw wrongFormat('autodelete', 'a boolean')
  }
  if (key.value !== undefined && (typeof key.value !== 'string' || key.value === '')) {
    throw wrongFormat('value', 'a non-empty string')
  }
  // Typesense passes over names that it does not know. A limit that is passed over leaves a key wider than was meant.
  for (const name of [...LIMITS, 'limit']) {
    if (name in key) throw badRequest(`\`${name}\` does nothing here. Put limits of a key in \`limits\`.`)
  }
  return {
    ...(key.value === undefined ? {} : { value: key.value }),
    description: key.description,
    actions: key.actions,
    collections: key.collections,
    expiresAt: (key.expires_at as number | undefined) ?? FAR_FUTURE,
    autodelete: key.autodelete ?? false,
    limits: checkLimits(key.limits),
  }
}

const LIMITS = [
  'conversation_model_id',
  'assistant',
  'user_id',
  'allowed_origins',
  'tokens_per_day',
  'turns_per_day',
]

/**
 * Checks `limits`. Unknown limits are refused, since a key that was meant to be narrow must not come out wide. A key
 * that is bound to an assistant has a default budget, which null removes.
 */
function checkLimits(limits: unknown): KeyLimits {
  if (limits === undefined) return {}
  if (!isObject(limits)) throw wrongFormat('limits', 'an object')
  for (const [name, value] of Object.entries(limits)) {
    if (!LIMITS.includes(name)) {
      throw badRequest(`Unknown limit \`${name}\`; ${meant(name, LIMITS)}`)
    }
    if (name === 'allowed_origins') {
      if (!isListOfOrigins(value)) throw wrongFormat(`limits.${name}`, ORIGINS)
      continue
    }
    if (name.endsWith('_per_day') && value === null) continue
    if (!name.endsWith('_per_day') && (typeof value !== 'string' || value === '' || value.length > 256)) {
      throw wrongFormat(`limits.${name}`, 'a string of 1 to 256 characters')
    }
  }
  const given = Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== null)) as KeyLimits
  checkBudget(given, (name) => wrongFormat(`limits.${name}`, 'a positive integer'))
  if (given.assistant === undefined || isLimited(given)) return given
  const defaults = Object.entries(PAGE_BUDGET).filter(([name]) => !(name in limits))
  return { ...given, ...Object.fromEntries(defaults) }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isListOfStrings = (value: unknown): value is string[] =>
  Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === 'string')

const ORIGINS = `an array of 1 to ${MOST_ORIGINS} origins such as \`https://shop.example\` or \`https://*.shop.example\``

const isListOfOrigins = (value: unknown): boolean =>
  isListOfStrings(value) && value.length <= MOST_ORIGINS && value.every((entry) => ORIGIN_PATTERN.test(entry))

const wrongFormat = (name: string, kind: string): ApiError =>
  badRequest(`Wrong format for \`${name}\`. It should be ${kind}.`)

/** 32 characters of the alphabet, uniformly distributed. */
function randomValue(): string {
  let value = ''
  while (value.length < VALUE_LENGTH) {
    for (const byte of crypto.getRandomValues(new Uint8Array(VALUE_LENGTH))) {
      // Skip bytes from 248 on, the largest multiple of 62 in a byte. They would make the first letters more likely.
      if (byte < 248 && value.length < VALUE_LENGTH) value += ALPHABET[byte % ALPHABET.length]
    }
  }
  return value
}
