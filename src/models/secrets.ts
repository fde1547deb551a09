/**
 * Which properties of a conversation model are secret: sealed at rest, masked when shown, and in no error. An AWS
 * access key id is a name, like `account_id`, and stays visible.
 */
import * as v from 'valibot'
import { badRequest } from '../errors'
import { once } from '../lib/once'

const SECRETS = ['api_key', 'secret_access_key', 'session_token'] as const

export const StoredSecrets = once(() =>
  v.object({
    api_key: v.exactOptional(v.string()),
    secret_access_key: v.exactOptional(v.string()),
    session_token: v.exactOptional(v.string()),
    headers: v.exactOptional(v.record(v.string(), v.string())),
  }),
)

/** A model's secrets: strings by property, and the values of its extra `headers` by name. */
export type Secrets = v.InferOutput<ReturnType<typeof StoredSecrets>>

/** Separates secrets from a config. `headers` are all secret. */
export function partSecrets<T extends Record<string, unknown>>(config: T): { secrets: Secrets; rest: T } {
  const { headers, ...rest } = config
  const secrets: Secrets = headers === undefined ? {} : { headers: headers as Record<string, string> }
  for (const property of SECRETS) {
    if (rest[property] === undefined) continue
    secrets[property] = rest[property] as string
    delete rest[property]
  }
  return { secrets, rest: rest as T }
}

/** `headers` are checked elsewhere. @throws ApiError 400 for a secret that is not a string, which cannot be sealed */
export function requireSecrets(config: Record<string, unknown>): void {
  for (const property of SECRETS) {
    if (config[property] !== undefined && typeof config[property] !== 'string') {
      throw badRequest(`Property \`${property}\` is not a string.`)
    }
  }
}

/** Applies `change` to every secret string. */
export const mapSecrets = (
  { headers, ...strings }: Secrets,
  change: (secret: string) => string,
): Secrets => ({
  ...mapValues(strings, change),
  ...(headers !== undefined && { headers: mapValues(headers, change) }),
})

const mapValues = (strings: Record<string, string>, change: (value: string) => string) =>
  Object.fromEntries(Object.entries(strings).map(([name, value]) => [name, change(value)]))

/** A shorter header value is not a credential, and removing it from errors would garble them. */
const SHORTEST_HEADER = 4

/** Every string that no error may contain. */
export function secretsOf(config: Record<string, unknown>): string[] {
  const { headers, ...strings } = partSecrets(config).secrets
  const values = Object.values(headers ?? {}).filter((value) => value.length >= SHORTEST_HEADER)
  return [...Object.values(strings), ...values].filter((value) => typeof value === 'string' && value !== '')
}
