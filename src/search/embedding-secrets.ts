/**
 * Credentials of embedding models. A schema keeps them sealed, each behind its masked form, so that showing a
 * schema opens nothing; they are opened for the call that needs them.
 *
 *     sealed:<masked>:<as db/sealing.ts seals>
 */
import { open, reseal, seal } from '../db/sealing'
import { ApiError } from '../errors'
import { maskSecret } from '../mask'
import { isObject } from './field'
import type { StoredSchema } from './layout'
import type { Store } from './store'
import type { EmbeddingModelConfig, Field } from './types'

const SECRETS = ['api_key', 'access_token', 'refresh_token', 'client_id', 'client_secret', 'project_id']
/** Those in the key file of a Google service account. */
const ACCOUNT_SECRETS = ['private_key', 'client_email']
const PREFIX = 'sealed:'

type Sealing = Pick<Cloudflare.Env, 'ENCRYPTION_KEY' | 'ENCRYPTION_KEY_PREVIOUS'>
type Change = (secret: string) => Promise<string>

const isSealed = (secret: string): boolean => secret.startsWith(PREFIX)

/** The parts of a sealed secret. What masking leaves of a secret can hold a colon, what sealing makes cannot. */
function partsOf(secret: string): { masked: string; sealed: string } {
  const end = secret.lastIndexOf(':')
  return { masked: secret.slice(PREFIX.length, end), sealed: secret.slice(end + 1) }
}

const maskOf = (secret: string): string => (isSealed(secret) ? partsOf(secret).masked : maskSecret(secret))

/** The credentials of a config as it may be shown. */
export function maskConfig(config: Record<string, unknown>): Record<string, unknown> {
  const masked = maskIn(config, SECRETS)
  if (isObject(config.service_account)) {
    masked.service_account = maskIn(config.service_account, ACCOUNT_SECRETS)
  }
  return masked
}

function maskIn(config: Record<string, unknown>, names: string[]): Record<string, unknown> {
  const masked = { ...config }
  for (const name of names) {
    const secret = config[name]
    if (typeof secret === 'string') masked[name] = maskOf(secret)
  }
  return masked
}

async function changeIn<T extends Record<string, unknown>>(
  config: T,
  names: string[],
  change: Change,
): Promise<T> {
  const changed: Record<string, unknown> = { ...config }
  for (const name of names) {
    const secret = config[name]
    if (typeof secret === 'string') changed[name] = await change(secret)
  }
  return changed as T
}

async function changeConfig<T extends EmbeddingModelConfig>(config: T, change: Change): Promise<T> {
  const changed = await changeIn(config, SECRETS, change)
  if (!isObject(config.service_account)) return changed
  return { ...changed, service_account: await changeIn(config.service_account, ACCOUNT_SECRETS, change) }
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

/** A config with its credentials in clear. @throws ApiError 400 when one cannot be opened */
export const openConfig = <T extends EmbeddingModelConfig>(config: T, env: Sealing): Promise<T> =>
  changeConfig(config, async (secret) => (isSealed(secret) ? open(partsOf(secret).sealed, env) : secret))

/** Fields with their credentials in clear. One that cannot be opened any more stays as it is. */
export const openFields = (fields: Field[], env: Sealing): Promise<Field[]> =>
  changeFields(fields, async (secret) =>
    isSealed(secret) ? open(partsOf(secret).sealed, env).catch(() => secret) : secret,
  )

/** Fields as they are stored. @throws ApiError 400 when the deployment has no ENCRYPTION_KEY */
export const sealFields = (fields: Field[], env: Sealing): Promise<Field[]> =>
  changeFields(fields, async (secret) =>
    isSealed(secret) ? secret : `${PREFIX}${maskSecret(secret)}:${await seal(secret, env)}`,
  )

/**
 * Seals anew what was sealed under the previous key, and what is not sealed yet.
 * @returns how many credentials it was
 * @throws ApiError 400 when one cannot be opened, 409 when the schema changed meanwhile
 */
export async function resealSchema(store: Store, env: Sealing): Promise<number> {
  const { schema } = store
  let count = 0
  const change: Change = async (secret) => {
    const { masked, sealed } = isSealed(secret)
      ? partsOf(secret)
      : { masked: maskSecret(secret), sealed: undefined }
    const anew = sealed === undefined ? await seal(secret, env) : await reseal(sealed, env)
    if (anew === undefined) return secret
    count += 1
    return `${PREFIX}${masked}:${anew}`
  }
  const fields = await changeFields(schema.fields, change)
  const replacing: StoredSchema['replacing'] = {}
  for (const [name, { field, slot }] of Object.entries(schema.replacing ?? {})) {
    const [changed] = await changeFields([field], change)
    replacing[name] = { field: changed!, slot }
  }
  if (count === 0) return 0
  if (store.schema !== schema) throw new ApiError(409, 'The collection was altered meanwhile: try again.')
  store.saveSchema({ ...schema, fields, replacing })
  return count
}
