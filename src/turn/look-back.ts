/** What was said before: the history of this conversation without expired messages, or the transcript that a caller sends. */
import { type Part, promptText, storedLength, textOf } from '../lib/parts'
import type { ChatMessage } from '../models/language-model'
import type { RecentMessages, StoredMessage } from '../search/types'
import type { HistoryMessage } from './events'
import type { TurnPorts } from './ports'
import { byteLength } from './prompt'

type HistoryPorts = Pick<TurnPorts, 'messages' | 'ttls' | 'now'>

/** A conversation so far. */
export interface History {
  /** oldest first, without expired messages */
  messages: HistoryMessage[]
  /** false if older messages were left out */
  complete: boolean
}

/**
 * Reads the end of the conversation, as much as `bytes` allow. A prompt holds no more, and a long conversation
 * must not be read whole only to be cut. Each message expires by the ttl of its own model, whether or not the
 * sweep has run. A message of an unknown model stays.
 * @param model the model of this turn; its ttl is known without a query
 * @param bytes of text; undefined: everything
 */
export async function readHistory(
  ports: HistoryPorts,
  model: { id: string; ttl: number },
  bytes?: number,
): Promise<History> {
  const { messages, complete } = await ports.messages(bytes)
  const alive = await livingMessages(messages, ports, model)
  // Models with different ttls may have taken turns, so the end can expire before the beginning. Then read
  // everything.
  return alive.length === 0 && !complete ? readHistory(ports, model) : { messages: alive, complete }
}

/**
 * A caller's transcript as the history of a new conversation. Its messages are dated one second before the
 * turn, so that they sort before it everywhere.
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

export const toHistory = ({ role, content, timestamp }: StoredMessage): HistoryMessage => ({
  // Imported histories use any name for the second speaker; Typesense 29 writes `content` for Azure.
  role: role === 'user' ? 'user' : 'assistant',
  content,
  timestamp,
})

/** The last question of a history. */
export function saidIn(history: readonly HistoryMessage[]): string | undefined {
  const last = history.findLast(({ role }) => role === 'user')
  return last && textOf(last.content)
}

/**
 * The last question of messages that are already read, without waiting for anything. If another model answered
 * it, it may have expired by that model's ttl, which would take a query. Then this returns undefined.
 * @param now milliseconds since 1970
 */
export function questionBefore(
  known: RecentMessages | undefined,
  { id, ttl }: { id: string; ttl: number },
  now: number,
): string | undefined {
  const last = known?.messages.findLast(({ role }) => role === 'user')
  if (!last || last.modelId !== id) return undefined
  return isAlive(last, new Map([[id, ttl]]), Math.floor(now / 1000)) ? textOf(last.content) : undefined
}

export const toChat = ({ role, content }: HistoryMessage): ChatMessage => ({
  role,
  content: promptText(content),
})

// A transcript: what a caller without a conversation here says was said before. Clients of several protocols
// send it with every question. It begins a conversation as imported messages do, and is stored with the first
// turn. Once the conversation has a name, its own history counts and a transcript is ignored.

export interface TranscriptMessage {
  role: 'user' | 'assistant'
  content: Part[]
}

/**
 * Limits. Older messages add nothing that a question needs, and a client that forgets its conversation would
 * have them stored with every question.
 */
const MOST_MESSAGES = 100
const MOST_CHARACTERS = 100_000

/** Turns the messages of a stored conversation into a transcript for another one to begin with. */
export const transcriptOf = (messages: readonly { role: string; content: Part[] }[]): TranscriptMessage[] =>
  messages.map(({ role, content }) => ({ role: role === 'user' ? 'user' : 'assistant', content }))

/**
 * Keeps the end of a transcript, in whole messages, without empty ones.
 * @param transcript oldest first
 * @param mostBytes of a prompt, in UTF-8
 */
export function fitTranscript(
  transcript: readonly TranscriptMessage[],
  mostBytes = Number.POSITIVE_INFINITY,
): TranscriptMessage[] {
  const kept: TranscriptMessage[] = []
  let characters = 0
  let bytes = 0
  for (const { role, content } of transcript.toReversed()) {
    const said = promptText(content)
    if (said.trim() === '') continue
    characters += storedLength(content)
    if (kept.length === MOST_MESSAGES || characters > MOST_CHARACTERS) break
    bytes += byteLength(said)
    if (bytes > mostBytes) break
    kept.push({ role, content })
  }
  return kept.reverse()
}
