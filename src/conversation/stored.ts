/**
 * Shapes of the JSON that conversations store: in their object's tables and in D1's rows of turns, and a turn made of its row.
 *
 * A shape accepts what any version has written, and keeps properties that it does not name.
 */
import * as v from 'valibot'
import type { ConversationEntry, FailedConversation } from '../db/conversations'
import type { Cost, Spent, StoredTurn, TurnRecord } from '../db/turns'
import { once } from '../lib/once'
import { contentOf, type StoredContent, toStored } from '../lib/parts'
import { readStored } from '../lib/stored-json'
import type { Verdict } from '../models/language-model'
import type { Citation, HistoryMessage, Passage, Timings, Usage } from '../turn/events'
import { emptyTurn, messagesOf, recordOf, type Turn, type TurnTrace } from '../turn/fold'
import type { KeptTurn } from './kept-turn'
import type { Owner } from './ownership'

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

const spentShape: () => v.GenericSchema<Spent> = once(() =>
  v.object({
    day: v.string(),
    owner: v.string(),
    modelId: v.string(),
    inputTokens: v.number(),
    outputTokens: v.number(),
  }),
)

const cost = once(() => ({
  usage: spentShape(),
  others: v.exactOptional(v.array(spentShape())),
  copied: v.exactOptional(v.literal(true)),
  turns: v.exactOptional(v.picklist([0, -1])),
}))

export const costShape: () => v.GenericSchema<Cost> = once(() => v.object(cost()))

const entryShape: () => v.GenericSchema<ConversationEntry> = once(() =>
  v.object({
    id: v.string(),
    historyId: v.string(),
    modelId: v.string(),
    owner: v.string(),
    userId: v.string(),
    protocol: v.string(),
    title: v.string(),
    createdAt: v.number(),
    updatedAt: v.number(),
    expiresAt: v.number(),
    proof: v.exactOptional(v.string()),
    details: v.exactOptional(v.string()),
    failedAt: v.exactOptional(v.number()),
  }),
)

const rowShape: () => v.GenericSchema<TurnRecord['turn']> = once(() =>
  v.object({
    conversationId: v.string(),
    turn: v.number(),
    question: v.string(),
    standalone: v.nullable(v.string()),
    answer: v.string(),
    finishReason: v.string(),
    citations: v.string(),
    usage: v.string(),
    timings: v.string(),
    trace: v.string(),
    createdAt: v.number(),
    expiresAt: v.number(),
    // Records from before migration 0011 have no such column.
    followups: v.exactOptional(v.nullable(v.string())),
    // And those from before 0014 not these.
    assistant: v.exactOptional(v.nullable(v.string())),
    passages: v.exactOptional(v.nullable(v.string())),
    verdict: v.exactOptional(v.nullable(v.string())),
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
export type KeptPassage = Pick<Passage, 'collection' | 'id' | 'title' | 'url' | 'fields'>

const passagesShape: () => v.GenericSchema<KeptPassage[]> = once(() =>
  v.array(
    v.object({
      collection: v.string(),
      id: v.string(),
      title: v.exactOptional(v.string()),
      url: v.exactOptional(v.string()),
      fields: v.record(v.string(), v.string()),
    }),
  ),
)

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
  const { standalone, answer, followups = [], ...recorded } = recordOf(turn, now, model)
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
    answer: contentOf(row.answer),
    finishReason: row.finishReason,
    ...(row.verdict !== null && { verdict: readStored(verdictShape(), row.verdict) }),
    ...(row.assistant !== null && { assistant: row.assistant }),
  }
}
