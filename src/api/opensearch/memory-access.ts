/** Memories are conversations. This decides whose they are, and what a caller learns about those it may not open. */
import type { Access } from '../../auth/access'
import { openRow } from '../../conversation/conversations'
import type { MemoryRow } from '../../conversation/messages'
import type { FindResource } from '../../registry/resources'
import type { Asker } from '../../turn/request'
import { askerWith } from '../http/admit-turn'
import type { Call } from '../http/router'
import { missing, OpenSearchError, statusError } from './errors'
import { isEnabled, MEMORY } from './mapping'

/** The wording of the API's two generations. */
export type Generation = 1 | 2

/** @throws OpenSearchError 500 if the feature is switched off */
export async function requireMemory(env: Cloudflare.Env, find?: FindResource): Promise<void> {
  if (await isEnabled(env, MEMORY, find)) return
  throw new OpenSearchError(
    500,
    'exception',
    `The Conversation Memory feature is not enabled. To enable, please update the setting ${MEMORY}`,
  )
}

/** Who asks, as shown by its key. The user name of Basic authentication is only the caller's claim. */
export const askerFor = ({ request, access }: Call, action: string): Promise<Asker> =>
  askerWith({ request, access, user: undefined }, action)

export const notFound = (what: string, id: string): OpenSearchError => missing(`${what} [${id}] not found`)

export function denied(
  { owner, limits }: Access,
  what: string,
  id: string,
  generation: Generation,
): OpenSearchError {
  const reason = `User [${limits.user_id ?? owner}] does not have access to ${what} ${id}`
  return generation === 1 ? new OpenSearchError(500, 'security_exception', reason) : statusError(401, reason)
}

const MEMORY_WORDS = {
  1: { found: 'Conversation', denied: 'conversation' },
  2: { found: 'Memory', denied: 'memory' },
} as const

/**
 * Opens a memory for a caller.
 * @param ahead the same, begun before (openAhead)
 * @throws OpenSearchError 404 for an unknown one; for another owner's, 500 or 401 depending on the generation
 */
export async function openMemory(
  { env, access }: Pick<Call, 'env' | 'access'>,
  asker: Asker,
  id: string,
  generation: Generation,
  ahead?: Promise<MemoryRow | undefined>,
): Promise<MemoryRow> {
  const words = MEMORY_WORDS[generation]
  const opened = (await ahead) ?? (await openRow(env, asker, id))
  if (opened === 'unknown') throw notFound(words.found, id)
  if (opened === 'foreign') throw denied(access, words.denied, id, generation)
  return opened
}

// =============================================================================
// Ids of messages: the memory's id, the turn's number and, for a trace, its own number. So an id leads to its message
// without a look-up, and turns of every protocol have one. A message from before the first turn has `b` and its place
// instead of the turn's number.

interface MessageId {
  memoryId: string
  turn: number
  before?: number
  /** for a trace: its place among those of its message, from 0 */
  trace?: number
}

export const messageIdOf = ({ memoryId, turn, before, trace }: MessageId): string =>
  `${memoryId}_${before === undefined ? turn : `b${before}`}${trace === undefined ? '' : `_${trace}`}`

/** undefined: no message has this id */
export function parseMessageId(id: string): MessageId | undefined {
  const [, memoryId, b, number, trace] = /^(.{1,100}?)_(b?)(\d{1,9})(?:_(\d{1,6}))?$/s.exec(id) ?? []
  if (memoryId === undefined || number === undefined) return undefined
  if (b === 'b') return trace === undefined ? { memoryId, turn: 0, before: Number(number) } : undefined
  return { memoryId, turn: Number(number), ...(trace !== undefined && { trace: Number(trace) }) }
}
