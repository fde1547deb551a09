/**
 * What conversations store as JSON, in their object's tables and in D1's rows of turns: its shapes, who owns it, and the turn that is made of a row.
 */
import * as v from 'valibot'
import { rowSchema } from '../db/client'
import type { ConversationEntry, FailedConversation } from '../db/conversations'
import { conversations, turns, usage } from '../db/schema'
import type { Cost, ModelUsage, Reserved, StoredTurn, TurnRecord } from '../db/turns'
import { ApiError } from '../errors'
import { once } from '../lib/once'
import { contentOf, fromStored, type StoredContent, toStored } from '../lib/parts'
import { readStored } from '../lib/stored-json'
import type { ConversationModelConfig, Verdict } from '../models/language-model'
import { destinationOf } from '../models/providers'
import { partSecrets } from '../models/secrets'
import { findModel } from '../registry/models'
import type { Citation, HistoryMessage, Passage, Timings, Usage } from '../turn/events'
import { emptyTurn, messagesOf, recordOf, type Turn, type TurnTrace } from '../turn/fold'
import type { Asker, AskRequest } from '../turn/request'

// =============================================================================
// What a turn needs to run again where its object is reset in the middle of it: its request. It is kept in the turn's own row while
// the turn runs. A model's secrets are not kept: they are read anew.

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
  spent: ModelUsage[]
}

interface KeptTurn {
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

// =============================================================================
// Who owns a conversation, and who may open it: to continue, read, follow, stop, delete or trace it. For
// anybody else the conversation does not exist, just like an id that was never given out.
//
// A conversation belongs to the key that began it and, if proven, to a person: a user fixed in the key, or a
// visitor known by the browser's secret. A name that a caller only claims proves nothing. It is a label: it can
// narrow what is opened, but never widen it.

/** The owner of a conversation, as stored. */
export interface Owner {
  owner: string
  userId: string
  /** who provably began it. Absent, or '' in D1: nobody; whoever has its id and its key may open it */
  proof?: string
}

/** The admin key, acting for nobody. */
export const ADMIN: Asker = { owner: 'admin', userId: '' }

export const userProof = (userId: string): string => `user:${userId}`
/** @param digest of the visitor's secret */
export const visitorProof = (digest: string): string => `visitor:${digest}`

const reaches = ({ owner, reach }: Asker, other: string): boolean =>
  owner === ADMIN.owner || reach === 'all' || (reach === 'key' && owner === other)

/** Whether an asker sees what everybody said of a conversation's answers, or only what they said themselves. */
export const seesAll = (asker: Asker, { owner }: Owner): boolean => reaches(asker, owner)

/**
 * Whether a conversation is open to an asker. It is open to a key that reaches it. The key that began it also
 * opens it: for its proven owner, or for anybody if it has none, because its id cannot be guessed.
 *
 * An asker who acts for one user does not open another user's conversation.
 */
export function mayOpen(asker: Asker | undefined, { owner, userId, proof = '' }: Owner): boolean {
  if (!asker) return false
  const agree = asker.userId === '' || userId === '' || asker.userId === userId
  if (reaches(asker, owner)) return agree
  if (asker.owner !== owner) return false
  return proof === '' ? asker.userId === userId : agree && (asker.proofs ?? []).includes(proof)
}

/** The owner of conversations that an asker begins. */
export const ownerOf = ({ owner, userId, proofs = [] }: Asker): Owner => ({
  owner,
  userId,
  ...(proofs[0] !== undefined && { proof: proofs[0] }),
})

/** Whether what two askers begin belongs to the same key and person. */
export function isSameOwner(one: Asker, other: Asker): boolean {
  const [a, b] = [ownerOf(one), ownerOf(other)]
  return a.owner === b.owner && a.userId === b.userId && a.proof === b.proof
}

/**
 * Whether nobody else can pass for this asker. Anybody with a page's key can, unless there is a proof of who
 * asks. A key that opens all conversations begun with it is a server's, so all its requests come from one
 * party.
 */
export const isToldApart = ({ owner, proofs = [], reach }: Asker): boolean =>
  owner === ADMIN.owner || reach !== undefined || proofs.length > 0

/** Whose conversations are listed and deleted together. Absent: anybody's. */
export interface Scope {
  owner?: string
  userId?: string
  proof?: string
}

/**
 * What an asker may list.
 * @param userId narrows it to one user
 * @param mine narrows it to what the asker provably began
 * @returns undefined if that is nothing; `unproven` if there is no proof of who asks
 */
export function scopeOf(
  asker: Asker,
  userId: string | undefined,
  mine = false,
): Scope | 'unproven' | undefined {
  const named = asker.userId === '' ? userId : asker.userId
  if (userId !== undefined && named !== userId) return undefined
  const narrowed = named === undefined ? {} : { userId: named }
  if (!mine && (asker.owner === ADMIN.owner || asker.reach === 'all')) return narrowed
  if (!mine && asker.reach === 'key') return { owner: asker.owner, ...narrowed }
  const [proof] = asker.proofs ?? []
  return proof === undefined ? 'unproven' : { owner: asker.owner, proof, ...narrowed }
}

/** The refusal of a list or a deletion without a proof of who asks. */
export const unproven = (does: string, action: string): ApiError =>
  new ApiError(
    401,
    `Forbidden - this key ${does} the conversations of a visitor or user who is shown to ask: send the visitor's secret in \`X-Parley-Visitor\`, use a key that fixes the user, or one with the action \`conversations:${action}\`.`,
  )

/** @throws ApiError 503 for a call without an asker, which a Worker of another version can make */
export function requireAsker(asker: Asker | undefined): asserts asker is Asker {
  if (!asker) throw new ApiError(503, 'Parley is being updated. Try again.', 1)
}

// =============================================================================
// Shapes of the JSON that conversations store: in their object's tables and in D1's rows of turns, and a turn made of its row.
//
// A shape accepts what any version has written, and keeps properties that it does not name.

const ownerShape: () => v.GenericSchema<Owner> = once(() =>
  v.object({
    owner: v.string(),
    userId: v.string(),
    proof: v.exactOptional(v.string()),
  }),
)

/** Facts of a conversation from its beginning. */
export interface Self {
  /** tells this conversation from an earlier one of its id, which was deleted */
  incarnation: string
  /**
   * who asked first. Absent before the first turn, and in conversations from before there were owners. Without a proof in
   * conversations from before there were proofs: their user may only have been claimed
   */
  owner?: Owner
  /** the beginning of the first question */
  title: string
  protocol: string
  /** milliseconds since 1970 */
  created_at: number
  /** until when, in milliseconds since 1970, the same request leads to its id; absent: its id is random */
  found_until?: number
  /** ids of the history collections' objects that hold its messages */
  histories: string[]
}

/** Values of the object's `meta` table, by their key. */
export interface Meta {
  self: Self
  /** id of the conversation that began when this one's first question was asked again */
  successor: string
  /** true while it is being deleted: nothing may be read any more */
  erasing: boolean
  /** how often messages were found to outlive the log */
  lingering: number
}

export const metaShapes: () => { [Key in keyof Meta]: v.GenericSchema<Meta[Key]> } = once(() => ({
  self: v.object({
    incarnation: v.string(),
    owner: v.exactOptional(ownerShape()),
    title: v.string(),
    protocol: v.string(),
    created_at: v.number(),
    found_until: v.exactOptional(v.number()),
    histories: v.array(v.string()),
  }),
  successor: v.string(),
  erasing: v.boolean(),
  lingering: v.number(),
}))

const spentShape = once(() => rowSchema<ModelUsage>(usage, { without: ['turns'] }))

const cost = once(() => ({
  usage: spentShape(),
  others: v.exactOptional(v.array(spentShape())),
  copied: v.exactOptional(v.literal(true)),
  turns: v.exactOptional(v.picklist([0, -1])),
}))

export const costShape: () => v.GenericSchema<Cost> = once(() => v.object(cost()))

const entryShape = once(() =>
  rowSchema<ConversationEntry>(conversations, {
    optional: ['proof', 'details', 'failedAt'],
    without: ['turns', 'name'],
  }),
)

// Records from before migration 0011 lack the suggestions, and those from before 0014 the others.
const rowShape = once(() =>
  rowSchema<TurnRecord['turn']>(turns, {
    optional: ['followups', 'assistant', 'replacedBy', 'verdict', 'passages', 'parts'],
  }),
)

const recordShape: () => v.GenericSchema<TurnRecord> = once(() =>
  v.object({
    ...cost(),
    conversation: entryShape(),
    turn: rowShape(),
    replaced: v.exactOptional(v.array(v.number())),
  }),
)

/** What D1 must be told: a turn, the cost of a turn without an answer, a beginning or an interruption. */
export type Note =
  | TurnRecord
  | Cost
  | { conversation: ConversationEntry }
  | { interrupted: FailedConversation }
/** The first shape that fits counts. */
export const noteShape: () => v.GenericSchema<Note> = once(() =>
  v.union([
    recordShape(),
    costShape(),
    v.object({ conversation: entryShape() }),
    v.object({ interrupted: v.object({ id: v.string(), createdAt: v.number(), failedAt: v.number() }) }),
  ]),
)

/** A message on its way to its history collection. */
export type HistoryDocument = Pick<HistoryMessage, 'role' | 'timestamp'> &
  StoredContent & {
    conversation_id: string
    model_id: string
  }

export const documentsShape: () => v.GenericSchema<HistoryDocument[]> = once(() =>
  v.array(
    v.object({
      conversation_id: v.string(),
      role: v.picklist(['user', 'assistant']),
      message: v.string(),
      parts: v.exactOptional(v.string()),
      timestamp: v.number(),
      model_id: v.string(),
    }),
  ),
)

/** Origins of turns, or suggested questions. */
export const stringsShape = once(() => v.array(v.string()))

/** The columns of D1's table `turns` that hold JSON. */
const citationsShape: () => v.GenericSchema<Citation[]> = once(() =>
  v.array(
    v.object({
      collection: v.string(),
      document_id: v.string(),
      start: v.number(),
      end: v.number(),
      quote: v.exactOptional(v.string()),
    }),
  ),
)

/** The documents of a turn's prompt, without their texts. */
type KeptPassage = Pick<Passage, 'collection' | 'id' | 'title' | 'url' | 'fields'>

export const passageShape: () => v.GenericSchema<KeptPassage> = once(() =>
  v.object({
    collection: v.string(),
    id: v.string(),
    title: v.exactOptional(v.string()),
    url: v.exactOptional(v.string()),
    fields: v.record(v.string(), v.string()),
  }),
)

const passagesShape = once(() => v.array(passageShape()))

const verdictShape: () => v.GenericSchema<Verdict> = once(() =>
  v.object({
    declined: v.exactOptional(v.literal(true)),
    warned: v.exactOptional(v.literal(true)),
    support: v.exactOptional(
      v.array(
        v.object({
          start: v.number(),
          end: v.number(),
          support: v.picklist(['supported', 'partly', 'not_found']),
          missing: v.exactOptional(v.array(v.string())),
        }),
      ),
    ),
    author: v.exactOptional(v.string()),
  }),
)

export const usageShape: () => v.GenericSchema<Usage> = once(() =>
  v.object({
    model: v.string(),
    input_tokens: v.exactOptional(v.number()),
    output_tokens: v.exactOptional(v.number()),
    estimated: v.exactOptional(v.boolean()),
  }),
)

const timingsShape: () => v.GenericSchema<Timings> = once(() =>
  v.object({
    rewritten: v.exactOptional(v.number()),
    retrieved: v.exactOptional(v.number()),
    first_token: v.exactOptional(v.number()),
    finished: v.exactOptional(v.number()),
  }),
)

/** What RPC takes between versions is not checked here either. */
export const keptShape = v.custom<KeptTurn>(
  (value) => typeof value === 'object' && value !== null && 'request' in value,
)

/** Traces are long, meant for people, and differ between versions. So they are not checked here. */
export const traceShape = v.custom<TurnTrace>(
  (value) => typeof value === 'object' && value !== null && !Array.isArray(value),
)

// A turn as its history and D1 keep it, and back.

/**
 * @param turn one that is done @param trace of it
 * @param now when it ended, in milliseconds since 1970
 * @param conversation whose row the turn's row belongs to, and expires with @param model the one that was asked
 */
export function turnRow(
  turn: Turn,
  trace: TurnTrace,
  now: number,
  { id, expiresAt }: ConversationEntry,
  model: string,
): TurnRecord['turn'] {
  const { standalone, answer, followups = [], calls: _, ...recorded } = recordOf(turn, now, model)
  return {
    conversationId: id,
    turn: recorded.turn,
    question: recorded.question,
    standalone: standalone ?? null,
    answer,
    finishReason: recorded.finish_reason,
    citations: JSON.stringify(recorded.citations),
    usage: JSON.stringify(recorded.usage),
    timings: JSON.stringify(recorded.timings),
    trace: JSON.stringify(trace),
    createdAt: now,
    expiresAt,
    followups: JSON.stringify(followups),
    assistant: turn.assistant ?? null,
    replacedBy: null,
    verdict: turn.verdict && Object.keys(turn.verdict).length > 0 ? JSON.stringify(turn.verdict) : null,
    passages: JSON.stringify(keptOf(turn.passages)),
    parts: toStored(turn.answer).parts ?? null,
  }
}

/** A turn's messages as documents of its history. @param timestamp in seconds: they share it, and a ttl never removes one alone */
export const documentsOf = (
  turn: Turn,
  { id, modelId }: Pick<ConversationEntry, 'id' | 'modelId'>,
  timestamp: number,
): HistoryDocument[] =>
  messagesOf(turn, timestamp).map(({ role, content, timestamp }) => ({
    conversation_id: id,
    role,
    ...toStored(content),
    timestamp,
    model_id: modelId,
  }))

/** A title, an address or a name is no longer, in UTF-16 units. */
const LONGEST_FIELD = 256
/** UTF-16 units of all fields of a turn's documents. Documents after that keep their titles and addresses. */
const MOST_OF_FIELDS = 8_192

/** What protocols show of a document beside the answer: which field has its title, its address or its name, assistants say. */
function keptOf(passages: readonly Passage[]): KeptPassage[] {
  let room = MOST_OF_FIELDS
  return passages.map(({ collection, id, title, url, fields }) => {
    const short: Record<string, string> = {}
    for (const [name, value] of Object.entries(fields)) {
      if (typeof value !== 'string' || value.length > LONGEST_FIELD) continue
      room -= name.length + value.length
      if (room < 0) break
      short[name] = value
    }
    return {
      collection,
      id,
      ...(title !== undefined && { title }),
      ...(url !== undefined && { url }),
      fields: short,
    }
  })
}

/**
 * The turn that a row was made of, for the encoders of all protocols. Texts of documents, steps and searches are not in it: traces
 * have those.
 */
export function restoreTurn(row: StoredTurn): Turn {
  const suggestions = row.followups === null ? [] : readStored(stringsShape(), row.followups)
  const kept = row.passages === null ? [] : readStored(passagesShape(), row.passages)
  return {
    ...emptyTurn(),
    conversationId: row.conversationId,
    turn: row.turn,
    status: 'done',
    question: contentOf(row.question),
    ...(row.standalone !== null && { standalone: row.standalone }),
    passages: kept.map((passage, at) => ({ ...passage, rank: at + 1, score: 0, text: '' })),
    citations: readStored(citationsShape(), row.citations),
    ...(suggestions.length > 0 && { suggestions }),
    usage: readStored(usageShape(), row.usage),
    timings: readStored(timingsShape(), row.timings),
    answer: fromStored(row.answer, row.parts),
    finishReason: row.finishReason,
    ...(row.verdict !== null && { verdict: readStored(verdictShape(), row.verdict) }),
    ...(row.assistant !== null && { assistant: row.assistant }),
  }
}
