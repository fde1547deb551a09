/** Conversations for their askers, whichever protocol began them: opened, listed, read and traced. */
import {
  type ConversationFilter,
  type ConversationRow,
  findConversationRow,
  listConversationRows,
  nameConversation,
  type PageEnd,
} from '../db/conversations'
import { handedOverAt } from '../db/deliveries'
import { ratingsOf } from '../db/feedback'
import {
  findTurn,
  latestTraces,
  latestTurns,
  replacements,
  type StoredTurn,
  type TracedRow,
} from '../db/turns'
import { ApiError, unwrap } from '../errors'
import { contentOf } from '../lib/parts'
import { readStored } from '../lib/stored-json'
import { splitWords } from '../search/text/analyzer'
import { unknownConversation, unknownTurn } from '../turn/errors'
import {
  emptyTurn,
  type RecordedTurn,
  recordOf,
  type TracedTurn,
  type Turn,
  type TurnTrace,
} from '../turn/fold'
import type { Asker, Begun } from '../turn/request'
import { idOfHandle, isSealed, sealedId } from './conversation-id'
import { conversationObject, gapWalker } from './conversation-object'
import {
  type Feedback,
  giverOf,
  type ShownFeedback,
  storeFeedback,
  withdrawFeedback,
  withFeedback,
} from './feedback'
import type { Walk } from './gaps'
import { mayOpen, restoreTurn, type Scope, scopeOf, traceShape, unproven } from './stored'

// =============================================================================
// Opens conversations: a new one before anything is said in it, and the record of one for an asker.

/**
 * Returns D1's row of a conversation, once its object has delivered what D1 lacks: the beginning, or turns that ended
 * while D1 was unavailable. Both refusals take the same queries and calls, so that their time does not tell one from
 * the other.
 * @param handle the id, or a handle of it (conversation-id.ts)
 * @returns `unknown` if there is none, `foreign` if the asker may not open it
 * @throws ApiError 503 while D1 is unavailable
 */
export async function openRow(
  env: Cloudflare.Env,
  asker: Asker,
  handle: string,
): Promise<ConversationRow | 'unknown' | 'foreign'> {
  const ours = await idOfHandle(env, handle)
  const id = ours ?? handle
  const refusal = ours === undefined ? await refusalOf(env, asker, id) : undefined
  if (refusal !== undefined) return refusal
  const recorded = await conversationObject(env, id).recorded(asker)
  const row = await findConversationRow(env.DB, id, Date.now())
  if (!recorded.ok && recorded.error.status !== 404) unwrap(recorded)
  if (row === undefined) return 'unknown'
  return recorded.ok && mayOpen(asker, row) ? row : 'foreign'
}

/** A row that was read before it is known who asks. Nobody may learn of it but through `openAhead`. */
export interface EarlyRow {
  handle: string
  id: string
  row: Promise<ConversationRow | undefined>
}

/** @returns undefined for an id that this server did not give out */
export async function readRowAhead(env: Cloudflare.Env, handle: string): Promise<EarlyRow | undefined> {
  const id = (await idOfHandle(env, handle)) ?? ((await isSealed(env, handle)) ? handle : undefined)
  if (id === undefined) return undefined
  const row = findConversationRow(env.DB, id, Date.now())
  row.catch(() => {})
  return { handle, id, row }
}

/** A conversation as far as it was opened ahead. undefined: openRow has to say what it is. */
export interface OpenedAhead {
  /** the row, before the object has been heard. It may lack what the object delivers just now, such as the latest turns */
  row: Promise<ConversationRow | undefined>
  /** the same, once the object knows the conversation too */
  opened: Promise<ConversationRow | undefined>
  /** whether the object had to deliver something. What was read meanwhile may lack that */
  delivered: Promise<boolean>
}

/** Does what openRow does in one wait. Another's conversation and an unknown one take the same calls here too. */
export function openAhead(env: Cloudflare.Env, asker: Asker, early: EarlyRow): OpenedAhead {
  const recorded = conversationObject(env, early.id).recorded(asker)
  const row = early.row.then((row) => (row && mayOpen(asker, row) ? row : undefined))
  const opened = Promise.all([recorded, row]).then(([{ ok }, row]) => (ok ? row : undefined))
  const delivered = recorded.then((outcome) => outcome.ok && outcome.value === true)
  for (const each of [row, opened, delivered]) each.catch(() => {})
  return { row, opened, delivered }
}

/** Refuses an id that this server did not make by D1 alone. Its object is asked only if the asker may open it. */
async function refusalOf(
  env: Cloudflare.Env,
  asker: Asker,
  id: string,
): Promise<'unknown' | 'foreign' | undefined> {
  if (await isSealed(env, id)) return undefined
  const row = await findConversationRow(env.DB, id, Date.now())
  if (row === undefined) return 'unknown'
  return mayOpen(asker, row) ? undefined : 'foreign'
}

/**
 * Checks an id that came from outside, before its object is asked.
 * @throws ApiError 404 for an id that belongs to no conversation that the asker may open
 */
export async function requireConversationId(env: Cloudflare.Env, asker: Asker, id: string): Promise<void> {
  if ((await refusalOf(env, asker, id)) !== undefined) throw unknownConversation()
}

interface NewConversation {
  protocol: string
  /** id of the Collection object of its history collection, and the model id that its messages carry */
  historyId: string
  modelId: string
  /** seconds */
  ttl: number
  /** '': it is named after its first question */
  title: string
  /** kept with its row in D1, as JSON */
  details: object
}

/** @returns its id @throws ApiError 503 while D1 is unavailable */
export async function openConversation(
  env: Cloudflare.Env,
  asker: Asker,
  { details, ...given }: NewConversation,
): Promise<string> {
  const id = await sealedId(env)
  unwrap(
    await conversationObject(env, id).tell({
      what: 'open',
      conversationId: id,
      asker,
      ...given,
      details: JSON.stringify(details),
    }),
  )
  return id
}

/** Identifies a conversation to its object, together with what D1 knows of it: the object may have forgotten that. */
export const whose = (row: ConversationRow, asker: Asker) => ({
  conversationId: row.id,
  asker,
  protocol: row.protocol,
  historyId: row.historyId,
  modelId: row.modelId,
  // Messages expire together with their conversation.
  ttl: Math.max(1, Math.round((row.expiresAt - Date.now()) / 1000)),
  begun: begunOf(row),
})

/** Whose a conversation is and how it began. */
export const begunOf = ({ owner, userId, proof, title, createdAt }: ConversationRow): Begun => ({
  owner: { owner, userId, proof },
  title,
  createdAt,
})

// =============================================================================
// Lists, reads and traces conversations, whichever protocol began them. It reads the record in D1. A
// running turn is read from its object (conversation-object.ts). The object decides whether a conversation
// exists and who owns it.

/** A conversation in a list. Times are in milliseconds since 1970. */
interface ConversationSummary {
  id: string
  /** the beginning of its first question */
  title: string
  model_id: string
  user_id: string
  /** the protocol that began it */
  protocol: string
  turn_count: number
  created_at: number
  updated_at: number
  expires_at: number
  /** when one of its turns failed last; absent: none did */
  failed_at?: number
  /** how many people rated its answers; absent if nobody did, and for keys that do not see everybody's feedback */
  ratings?: { up: number; down: number }
}

interface ConversationDetail extends ConversationSummary {
  /** oldest first */
  turns: (RecordedTurn & { feedback?: ShownFeedback[]; versions?: number[] })[]
  /** present if there are earlier turns: ask for those before this one */
  earlier?: number
  /** when people were asked for, if that was within seven days: they may reply */
  handed_over_at?: number
}

const MOST_LISTED = 100
const TURNS_A_PAGE = 100
const TRACES_A_PAGE = 20

interface ListRequest extends Pick<ConversationFilter, 'rating' | 'unanswered' | 'failed' | 'from' | 'to'> {
  userId?: string | undefined
  /** only those that the asker provably began */
  mine?: boolean | undefined
  /** 1 to 100 */
  limit: number
  /** `next_cursor` of the page before */
  cursor?: string | undefined
  /** words that a question or its answer contains */
  q?: string | undefined
}

/** @throws ApiError 400 for a search without words */
function filterOf(
  asker: Asker,
  { proof }: Scope,
  { q, ...filter }: Omit<ListRequest, 'userId' | 'mine' | 'limit' | 'cursor'>,
): ConversationFilter {
  const words = q === undefined ? undefined : splitWords(q)
  if (words && words.words.length + words.parts.length === 0) {
    throw new ApiError(400, '`q`: Expected words to look for.')
  }
  return { ...filter, words, ...(proof !== undefined && { giver: giverOf(asker) }) }
}

/**
 * Lists the conversations that an asker may list (stored.ts), last used first.
 * @throws ApiError 400 for an invalid cursor or a search without words, 401 if there is no proof of who asks
 */
export async function listConversations(
  env: Cloudflare.Env,
  asker: Asker,
  { userId, mine, limit, cursor, ...narrowed }: ListRequest,
): Promise<{ conversations: ConversationSummary[]; next_cursor?: string }> {
  const scope = scopeOf(asker, userId, mine)
  if (scope === 'unproven') throw unproven('lists', 'list')
  if (!scope) return { conversations: [] }
  const most = Math.max(1, Math.min(limit, MOST_LISTED))
  const db = env.DB
  const rows = await listConversationRows(db, {
    ...scope,
    filter: filterOf(asker, scope, narrowed),
    ...(cursor !== undefined && { after: parseCursor(cursor) }),
    limit: most + 1,
    now: Date.now(),
  })
  const page = rows.slice(0, most)
  // Askers who list only their own conversations do not see other people's feedback.
  const ratings = scope.proof === undefined ? await ratingsOf(db, page) : new Map()
  return {
    conversations: page.map((row) => ({
      ...summaryOf(row),
      ...(ratings.has(row.id) && { ratings: ratings.get(row.id) }),
    })),
    ...(rows.length > most && { next_cursor: makeCursor(page.at(-1)!) }),
  }
}

/**
 * The gaps in the latest turns that an asker may list (gaps.ts).
 * @throws ApiError 401 for an asker who does not see what others said
 */
export async function listGaps(env: Cloudflare.Env, asker: Asker): Promise<Omit<Walk, 'after'>> {
  const scope = scopeOf(asker, undefined)
  if (scope === undefined || scope === 'unproven' || scope.proof !== undefined)
    throw new ApiError(401, 'Forbidden - gaps are shown to keys with the action `conversations:list`.')
  const { turns, since, gaps } = unwrap(await gapWalker(env).gaps({ turns: 0, gaps: [] }, scope))
  return { turns, ...(since !== undefined && { since }), gaps }
}

/**
 * Returns a conversation with its latest turns. `versions` of a turn are the turns that answered the same question, or the one it
 * was edited from or to, oldest first, itself among them; absent if there is only one.
 * @param before only turns before this one @param limit how many, 100 at most
 * @param version a turn: the conversation as it was when that one was in it
 * @throws ApiError 404
 */
export async function getConversation(
  env: Cloudflare.Env,
  asker: Asker,
  id: string,
  { before, limit = TURNS_A_PAGE, version }: { before?: number; limit?: number; version?: number } = {},
): Promise<ConversationDetail> {
  const row = await readable(env, asker, id)
  const db = env.DB
  const now = Date.now()
  const asking = handedOverAt(db, id)
  asking.catch(() => {})
  const shown = version === undefined ? undefined : await findTurn(db, id, version, now)
  if (version !== undefined && !shown) throw unknownTurn()
  const most = Math.max(1, Math.min(limit, TURNS_A_PAGE))
  const rows = await latestTurns(db, id, {
    ...(before !== undefined && { before }),
    asOf: shown?.replacedBy ?? undefined,
    limit: most + 1,
    now,
  })
  const page = rows.slice(0, most).reverse()
  // Turns that were replaced, or failed, leave a gap between those that stand.
  const last = rows.at(-1)?.turn ?? 1
  const isWhole =
    rows.every(({ turn }, at) => turn === rows[0]!.turn - at) && (rows.length > most || last === 1)
  const versions = isWhole && !shown ? [] : versionsOf(await replacements(db, id, now))
  const turns = page.map((stored) => {
    const all = versions.find((group) => group.includes(stored.turn))
    return { ...recordedTurn(stored), ...(all && { versions: all }) }
  })
  const handedOver = await asking
  return {
    ...summaryOf(row),
    ...(handedOver !== undefined && { handed_over_at: handedOver }),
    turns: await withFeedback(env, asker, row, turns),
    ...(rows.length > most && { earlier: page[0]!.turn }),
  }
}

/**
 * Turns that are versions of each other. A turn takes the place of others, and is a version of the first of them.
 * @param replaced in the order of their numbers
 */
function versionsOf(replaced: readonly { turn: number; by: number }[]): number[][] {
  const groups: number[][] = []
  const seen = new Set<number>()
  for (const { turn, by } of replaced) {
    if (seen.has(by)) continue
    seen.add(by)
    const group = groups.find((numbers) => numbers.includes(turn))
    if (group) group.push(by)
    else groups.push([turn, by])
  }
  return groups
}

/**
 * The latest answered turns of a conversation as `fold` gave them, oldest first.
 * @throws ApiError 404
 */
export async function answeredTurns(env: Cloudflare.Env, asker: Asker, id: string): Promise<Turn[]> {
  await readable(env, asker, id)
  const rows = await latestTurns(env.DB, id, { limit: TURNS_A_PAGE, now: Date.now() })
  return rows.reverse().map(restoreTurn)
}

/**
 * A turn that has ended: answered, as D1 keeps it, or failed, as long as its log is kept. The caller has opened its conversation.
 * @returns undefined for one that runs or never was. `created`: when it ended, in milliseconds since 1970
 */
export async function endedTurn(
  env: Cloudflare.Env,
  asker: Asker,
  { conversation, turn }: { conversation: string; turn: number },
): Promise<{ turn: Turn; created: number } | undefined> {
  const row = await findTurn(env.DB, conversation, turn, Date.now())
  if (row) return { turn: restoreTurn(row), created: row.createdAt }
  const [failed] = unwrap(await conversationObject(env, conversation).unanswered(asker, turn))
  if (!failed) return undefined
  const { question, error, trace, created_at: created } = failed
  return {
    turn: {
      ...emptyTurn(),
      conversationId: conversation,
      turn,
      status: 'failed',
      question: contentOf(question),
      ...(error && { error }),
      ...(trace.assistant !== undefined && { assistant: trace.assistant }),
    },
    created,
  }
}

/**
 * Renames a conversation.
 * @throws ApiError 404
 */
export async function renameConversation(
  env: Cloudflare.Env,
  asker: Asker,
  id: string,
  title: string,
): Promise<ConversationSummary> {
  const row = await readable(env, asker, id)
  await nameConversation(env.DB, id, title)
  return summaryOf({ ...row, name: title })
}

/**
 * Stores an asker's feedback on an answer. It replaces their earlier feedback.
 * @throws ApiError 404, 409 if too many others have said something
 */
export async function giveFeedback(
  env: Cloudflare.Env,
  asker: Asker,
  place: { conversationId: string; turn: number },
  given: Feedback,
): Promise<ShownFeedback> {
  await readable(env, asker, place.conversationId)
  return storeFeedback(env, asker, place, given)
}

/**
 * Deletes an asker's feedback on an answer.
 * @returns whether there was anything
 * @throws ApiError 404
 */
export async function deleteFeedback(
  env: Cloudflare.Env,
  asker: Asker,
  place: { conversationId: string; turn: number },
): Promise<boolean> {
  await readable(env, asker, place.conversationId)
  return withdrawFeedback(env, asker, place)
}

/**
 * Explains how answers came about, and why there was none: the rewritten question, each search, the prompts as
 * sent, tokens and durations. D1 has the turns that were answered; the object's log has those that failed. The
 * caller must check that the key has the action for this.
 * @param turn undefined: the latest 20
 * @throws ApiError 404
 */
export async function traceConversation(
  env: Cloudflare.Env,
  asker: Asker,
  id: string,
  turn?: number,
): Promise<{ id: string; turns: (TracedTurn & { feedback?: ShownFeedback[] })[] }> {
  const conversation = await readable(env, asker, id)
  const db = env.DB
  const now = Date.now()
  const [rows, outcome] = await Promise.all([
    turn === undefined
      ? latestTraces(db, id, { limit: TRACES_A_PAGE, now })
      : findTurn(db, id, turn, now).then((row) => (row ? [row] : [])),
    conversationObject(env, id).unanswered(asker, turn),
  ])
  const turns = [...rows.map(tracedTurn), ...unwrap(outcome)]
    .sort((a, b) => a.turn - b.turn)
    .slice(-TRACES_A_PAGE)
  if (turn !== undefined && turns.length === 0) throw unknownTurn()
  return { id, turns: await withFeedback(env, asker, conversation, turns) }
}

/**
 * Adds what a person says to a conversation in which people were asked for.
 * @returns the number of its turn @throws ApiError 404; 409 where nobody asked
 */
export async function replyAsPerson(
  env: Cloudflare.Env,
  asker: Asker,
  id: string,
  { author, message }: { author: string; message: string },
): Promise<number> {
  const row = await readable(env, asker, id)
  if ((await handedOverAt(env.DB, row.id)) === undefined)
    throw new ApiError(409, 'Nobody has asked for a person in this conversation within seven days.')
  const said = { what: 'message' as const, input: '', response: message, more: { origin: 'person' }, author }
  return unwrap(await conversationObject(env, row.id).tell({ ...whose(row, asker), ...said }))
}

/** The row of a conversation that the asker may open. @throws ApiError 404 */
export async function readable(env: Cloudflare.Env, asker: Asker, id: string): Promise<ConversationRow> {
  const row = await openRow(env, asker, id)
  if (typeof row === 'string') throw unknownConversation()
  return row
}

const summaryOf = (row: ConversationRow): ConversationSummary => ({
  id: row.id,
  title: row.name ?? row.title,
  model_id: row.modelId,
  user_id: row.userId,
  protocol: row.protocol,
  turn_count: row.turns,
  created_at: row.createdAt,
  updated_at: row.updatedAt,
  expires_at: row.expiresAt,
  ...(row.failedAt !== null && { failed_at: row.failedAt }),
})

const recordedTurn = (row: StoredTurn): RecordedTurn => recordOf(restoreTurn(row), row.createdAt)

/** The trace also holds the details of OpenSearch's messages. Only OpenSearch's API shows those. */
function tracedTurn(row: TracedRow): TracedTurn {
  const stored: TurnTrace & { traces?: unknown } = readStored(traceShape, row.trace)
  const { message: _, traces: __, ...trace } = stored
  return { ...recordedTurn(row), trace }
}

const makeCursor = ({ updatedAt, id }: PageEnd): string => encodeURIComponent(`${updatedAt}.${id}`)

function parseCursor(cursor: string): PageEnd {
  const [, updatedAt, id] = /^(\d{1,15})\.(.+)$/s.exec(safeDecode(cursor)) ?? []
  if (updatedAt === undefined || id === undefined) {
    throw new ApiError(400, 'The cursor is not one that a page of conversations ended with.')
  }
  return { updatedAt: Number(updatedAt), id }
}

function safeDecode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return ''
  }
}
