/**
 * What a turn needs to run again where its object is reset in the middle of it: its request. It is kept in the turn's own row while
 * the turn runs. A model's secrets are not kept: they are read anew.
 */
import type { Spent } from '../db/turns'
import type { Reserved } from '../db/usage'
import type { ConversationModelConfig } from '../models/language-model'
import { destinationOf } from '../models/providers'
import { partSecrets } from '../models/secrets'
import { findModel } from '../registry/models'
import type { AskRequest } from '../turn/request'

/** How often a turn runs at most: one that ends its object itself must not do so for ever. */
export const MOST_RUNS = 3

/** How long after its beginning a turn may be run again, in milliseconds. */
export const RECOVERY_MS = 600_000

/** Characters of a request that is kept. A row holds 2 MB of UTF-8, and a character of JSON takes at most three bytes. */
const MOST_CHARACTERS = 500_000

/** A turn that was running when its object was reset, and runs again. */
export interface LeftTurn extends KeptTurn {
  turn: number
  /** 2 for its first repetition */
  run: number
  /** what it spent before */
  spent: Spent[]
}

export interface KeptTurn {
  request: AskRequest
  /** its place in the budgets of turns, taken already */
  reserved?: Reserved
}

/**
 * @returns JSON; null if the turn cannot run again: its request is too long, or its model has credentials of another kind than
 *   registry/models.ts finds
 */
export function keptTurn({ request, reserved }: KeptTurn): string | null {
  const { model, prefetched: _, again: __, ...rest } = request
  if (model.connector !== undefined) return null
  const kept: KeptTurn = {
    request: { ...rest, model: partSecrets(model).rest },
    ...(reserved && { reserved }),
  }
  const json = JSON.stringify(kept)
  return json.length <= MOST_CHARACTERS ? json : null
}

/**
 * A kept model with its secrets.
 * @returns undefined if it is gone by now, or is called elsewhere: then its secrets are not for the place that was kept
 */
export async function withSecrets(
  env: Cloudflare.Env,
  model: ConversationModelConfig,
): Promise<ConversationModelConfig | undefined> {
  const stored = await findModel(env, model.id)
  if (!stored || destinationOf(stored, env) !== destinationOf(model, env)) return undefined
  return { ...model, ...partSecrets(stored).secrets }
}
