/**
 * Credentials of embedding models. A schema stores each one as an object of its sealed and its masked form, so that
 * showing a schema decrypts nothing. Credentials are decrypted only for the call that needs them.
 *
 * A string is always a secret in clear, whatever it looks like, and callers may send only strings. Otherwise someone
 * with a copy of the database could submit a sealed secret and have Parley open it and send it to a host of their
 * own.
 */
import { open, reseal, seal } from '../../db/sealing'
import { ApiError } from '../../errors'
import { maskSecret } from '../../lib/mask'
import type { EmbeddingModelConfig as OpenedConfig } from '../../models/embedding-model'
import type { EmbeddingModelConfig, Field, SealedSecret } from '../types'
import type { StoredSchema } from './layout'
import { isObject } from './values'

const SECRETS = ['api_key', 'access_token', 'refresh_token', 'client_id', 'client_secret', 'project_id']
/** Credentials in the key file of a Google service account. */
const ACCOUNT_SECRETS = ['private_key', 'client_email']

type Sealing = Pick<Cloudflare.Env, 'ENCRYPTION_KEY' | 'ENCRYPTION_KEY_PREVIOUS'>
type Secret = string | SealedSecret
type Change = (secret: Secret) => Promise<Secret>

/** Never true for a caller's input, because `requireClear` refuses objects. */
const isSealed = (secret: unknown): secret is SealedSecret =>
  isObject(secret) && typeof secret.sealed === 'string' && typeof secret.masked === 'string'

const isSecret = (value: unknown): value is Secret => typeof value === 'string' || isSealed(value)

/** @throws ApiError 400 for a credential that is not a string */
export function requireClear(config: Record<string, unknown>): void {
  requireStrings(config, SECRETS, '')
  if (!isObject(config.service_account)) return
  requireStrings(config.service_account, ACCOUNT_SECRETS, 'service_account.')
}

function requireStrings(config: Record<string, unknown>, names: string[], path: string): void {
  for (const name of names) {
    if (typeof (config[name] ?? '') === 'string') continue
    throw new ApiError(400, `Property \`embed.model_config.${path}${name}\` is missing or is not a string.`)
  }
}

/** A config with masked credentials. */
export const maskConfig = <T extends Record<string, unknown>>(config: T): T & { api_key?: string } =>
  mapConfig(config, (secret) => (isSealed(secret) ? secret.masked : maskSecret(secret))) as T & {
    api_key?: string
  }

/** The credentials of a config. */
const secretsOf = (config: Record<string, unknown>): Secret[] =>
  [
    ...SECRETS.map((name) => config[name]),
    ...(isObject(config.service_account)
      ? ACCOUNT_SECRETS.map((name) => (config.service_account as Record<string, unknown>)[name])
      : []),
  ].filter(isSecret)

function mapConfig<T extends Record<string, unknown>>(config: T, change: (secret: Secret) => Secret): T {
  const changed: Record<string, unknown> = { ...config }
  for (const name of SECRETS) if (isSecret(config[name])) changed[name] = change(config[name])
  if (isObject(config.service_account)) {
    const account = { ...config.service_account }
    for (const name of ACCOUNT_SECRETS) if (isSecret(account[name])) account[name] = change(account[name])
    changed.service_account = account
  }
  return changed as T
}

async function changeConfig<T extends EmbeddingModelConfig>(config: T, change: Change): Promise<T> {
  const changed = new Map<Secret, Secret>()
  for (const secret of secretsOf(config)) changed.set(secret, await change(secret))
  return mapConfig(config, (secret) => changed.get(secret)!)
}

async function changeFields(fields: Field[], change: Change): Promise<Field[]> {
  return Promise.all(
    fields.map(async (field) =>
      field.embed === undefined
        ? field
        : {
            ...field,
            embed: { ...field.embed, model_config: await changeConfig(field.embed.model_config, change) },
          },
    ),
  )
}

/** A config with credentials in clear. @throws ApiError 400 when one cannot be opened */
export const openConfig = async (config: EmbeddingModelConfig, env: Sealing): Promise<OpenedConfig> =>
  (await changeConfig(config, (secret) => openSecret(secret, env))) as OpenedConfig

const openSecret = async (secret: Secret, env: Sealing): Promise<string> =>
  isSealed(secret) ? open(secret.sealed, env) : secret

/** Fields with credentials in clear. @throws ApiError 400 when one cannot be opened */
export const openFields = (fields: Field[], env: Sealing): Promise<Field[]> =>
  changeFields(fields, (secret) => openSecret(secret, env))

/** Like `openFields`, but a credential that cannot be opened stays sealed. */
export const openWhatOpens = (fields: Field[], env: Sealing): Promise<Field[]> =>
  changeFields(fields, (secret) => openSecret(secret, env).catch(() => secret))

/** Fields with credentials sealed, to be stored. @throws ApiError 400 when the deployment has no ENCRYPTION_KEY */
export const sealFields = (fields: Field[], env: Sealing): Promise<Field[]> =>
  changeFields(fields, async (secret) => (isSealed(secret) ? secret : sealSecret(secret, env)))

const sealSecret = async (secret: string, env: Sealing): Promise<SealedSecret> => ({
  sealed: await seal(secret, env),
  masked: maskSecret(secret),
})

/**
 * Seals the credentials of a schema under the present key.
 * @returns the new schema, and how many credentials changed: those sealed under the previous key or not sealed at all
 * @throws ApiError 400 when one cannot be opened
 */
export async function resealSchema(
  schema: StoredSchema,
  env: Sealing,
): Promise<{ schema: StoredSchema; count: number }> {
  let count = 0
  const changed = await changeSchema(schema, async (secret) => {
    if (!isSealed(secret)) {
      count += 1
      return sealSecret(secret, env)
    }
    const anew = await reseal(secret.sealed, env)
    if (anew === undefined) return secret
    count += 1
    return { ...secret, sealed: anew }
  })
  return { schema: changed, count }
}

/** Changes the credentials of a schema's fields and of their replacements. */
async function changeSchema(schema: StoredSchema, change: Change): Promise<StoredSchema> {
  const fields = await changeFields(schema.fields, change)
  const replacing: StoredSchema['replacing'] = {}
  for (const [name, { field, slot }] of Object.entries(schema.replacing ?? {})) {
    const [changed] = await changeFields([field], change)
    replacing[name] = { field: changed!, slot }
  }
  return { ...schema, fields, replacing }
}
