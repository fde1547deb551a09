/**
 * The secrets of a model in its row: all of them as one sealed JSON, and beside it the same with each masked, so
 * that showing models opens nothing.
 *
 * Rows from before there were several hold the `api_key` alone, sealed and masked as bare strings. A bare mask
 * ends in an asterisk and the JSON of an object in a brace, so the two are never mistaken for each other.
 */

import * as v from 'valibot'
import type { ConversationModelRow } from '../db/conversation-models'
import { open, seal } from '../db/sealing'
import { maskSecret } from '../mask'
import { mapSecrets, type Secrets } from '../models/secrets'
import { once } from '../once'
import { readStored } from '../stored-json'

const Stored: () => v.GenericSchema<Secrets> = once(() =>
  v.object({
    api_key: v.exactOptional(v.string()),
    secret_access_key: v.exactOptional(v.string()),
    session_token: v.exactOptional(v.string()),
    headers: v.exactOptional(v.record(v.string(), v.string())),
  }),
)

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
  return isBare(maskedSecrets) ? { api_key: opened } : readStored(Stored(), opened)
}

/** The secrets as they may be shown. */
export function shownSecrets({ maskedSecrets }: Sealed): Secrets {
  if (maskedSecrets === null) return {}
  return isBare(maskedSecrets) ? { api_key: maskedSecrets } : readStored(Stored(), maskedSecrets)
}

/**
 * The secrets of a changed model. One that is not given, or given as it is shown, is the stored one: it is what
 * GET gave and PUT brings back. `null` takes one away.
 */
export async function changeSecrets(
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
 * The stored secrets that a change keeps, by the names of their properties. They are the owner's to send anywhere
 * else, so whoever changes the place they go to has to know them.
 */
export function keptSecrets(row: Sealed, given: { [property in keyof Secrets]: unknown }): string[] {
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

/** Headers are replaced together; each value that comes back as it was shown is the stored one. */
function changeHeaders(given: unknown, shown: Record<string, string> = {}, stored: unknown): unknown {
  if (given === null || typeof given !== 'object' || Array.isArray(given)) return given
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => [
      name,
      Object.hasOwn(shown, name) && value === shown[name] ? (stored as Record<string, string>)[name] : value,
    ]),
  )
}
