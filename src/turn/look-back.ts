/** What was said before, as far as it still counts. */
import type { ChatMessage } from '../models/language-model'
import type { RecentMessages, StoredMessage } from '../search/types'
import type { HistoryMessage } from './events'
import type { TurnPorts } from './ports'
import { fitTranscript, type TranscriptMessage } from './transcript'

type HistoryPorts = Pick<TurnPorts, 'messages' | 'ttls' | 'now'>

/** A conversation so far. */
export interface History {
  /** oldest first, without those that have expired */
  messages: HistoryMessage[]
  /** false where older ones were left out */
  complete: boolean
}

/**
 * The conversation so far, as much of its end as `bytes` allow: a prompt holds no more, and a long conversation
 * must not be read whole to be cut. A message lives as long as the ttl of its own model says, whether or not the
 * sweep has come by; one of a model that nobody knows stays.
 * @param model the model of this turn, whose ttl need not be asked for
 * @param bytes of text; undefined: everything
 */
export async function readHistory(
  ports: HistoryPorts,
  model: { id: string; ttl: number },
  bytes?: number,
): Promise<History> {
  const { messages, complete } = await ports.messages(bytes)
  const alive = await livingMessages(messages, ports, model)
  // The end can have expired before what came earlier, where models of several ttls took turns.
  return alive.length === 0 && !complete ? readHistory(ports, model) : { messages: alive, complete }
}

/**
 * A caller's transcript as the history of a conversation that begins. Its messages are a second older than the turn,
 * so that they stay before it wherever messages are put in order.
 * @param now milliseconds since 1970
 */
export const historyOf = (transcript: readonly TranscriptMessage[], now: number): History => ({
  messages: fitTranscript(transcript).map((said) => ({ ...said, timestamp: Math.floor(now / 1000) - 1 })),
  complete: true,
})

async function livingMessages(
  messages: StoredMessage[],
  ports: HistoryPorts,
  model: { id: string; ttl: number },
): Promise<HistoryMessage[]> {
  const others = [...new Set(messages.map((message) => message.modelId))].filter((id) => id !== model.id)
  const ttls = others.length > 0 ? await ports.ttls(others) : new Map<string, number>()
  ttls.set(model.id, model.ttl)
  const now = Math.floor(ports.now() / 1000)
  return messages.filter((message) => isAlive(message, ttls, now)).map(toHistory)
}

function isAlive(message: StoredMessage, ttls: Map<string, number>, now: number): boolean {
  const ttl = ttls.get(message.modelId)
  return ttl === undefined || message.timestamp >= now - ttl
}

const toHistory = ({ role, message, timestamp }: StoredMessage): HistoryMessage => ({
  // Imported histories name the second speaker as they like; Azure's of Typesense 29 say `content`.
  role: role === 'user' ? 'user' : 'assistant',
  message,
  timestamp,
})

/** The last question of a history. */
export const saidIn = (history: readonly HistoryMessage[]): string | undefined =>
  history.findLast(({ role }) => role === 'user')?.message

/**
 * The last question of messages that are there already, without waiting for anything. One that another model answered may
 * have expired by that model's ttl, which has to be asked for: then nothing is said of it.
 * @param now milliseconds since 1970
 */
export function questionBefore(
  known: RecentMessages | undefined,
  { id, ttl }: { id: string; ttl: number },
  now: number,
): string | undefined {
  const last = known?.messages.findLast(({ role }) => role === 'user')
  if (!last || last.modelId !== id) return undefined
  return isAlive(last, new Map([[id, ttl]]), Math.floor(now / 1000)) ? last.message : undefined
}

export const toChat = ({ role, message }: HistoryMessage): ChatMessage => ({ role, content: message })
