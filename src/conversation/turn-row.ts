/** A turn as its history and D1 keep it, and back. */
import type { ConversationEntry } from '../db/conversations'
import type { StoredTurn, TurnRecord } from '../db/turns'
import { contentOf, toStored } from '../lib/parts'
import { readStored } from '../lib/stored-json'
import type { Passage } from '../turn/events'
import { emptyTurn, messagesOf, recordOf, type Turn, type TurnTrace } from '../turn/fold'
import {
  citationsShape,
  type HistoryDocument,
  type KeptPassage,
  passagesShape,
  stringsShape,
  timingsShape,
  usageShape,
  verdictShape,
} from './stored'

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
