/**
 * A model's secrets as its row stores them: one sealed JSON, and beside it the same JSON with every value masked. So
 * nothing is unsealed to show a model.
 *
 * Old rows hold only the `api_key`, sealed and masked as plain strings. A masked string ends in an asterisk and JSON
 * ends in a brace, so the two cannot be confused.
 */

import * as v from 'valibot'
import type { ConversationModelRow } from '../db/conversation-models'
import { open, seal } from '../db/sealing'
import { maskSecret } from '../lib/mask'
import { once } from '../lib/once'
import { readStored } from '../lib/stored-json'
import { mapSecrets, type Secrets } from '../models/secrets'
import { isObject } from '../search/schema/values'

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

/** The masked secrets, for showing. */
export function shownSecrets({ maskedSecrets }: Sealed): Secrets {
  if (maskedSecrets === null) return {}
  return isBare(maskedSecrets) ? { api_key: maskedSecrets } : readStored(Stored(), maskedSecrets)
}

/**
 * The secrets of a changed model. A secret that is missing, or comes back masked as GET shows it, keeps its value.
 * `null` removes it.
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
 * The names of the stored secrets that a change keeps. Whoever changes the host that they are sent to must know them
 * (`requireSameDestination` in models.ts).
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
