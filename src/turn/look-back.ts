/**
 * What a turn begins with besides its question: what was said before, and the passages of a caller who has searched already.
 */
import { type Part, promptText, storedLength, textOf } from '../lib/parts'
import type { ChatMessage, Source } from '../models/language-model'
import type { RecentMessages, StoredMessage } from '../search/types'
import type { CallTrace, HistoryMessage, MessageDetails } from './events'
import { byteLength, familyOf, fitSources } from './prompt'
import type { TurnPorts } from './trace'

// =============================================================================
// What was said before: the history of this conversation without expired messages, or the transcript that a caller sends.

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

// =============================================================================
// A turn whose caller has already searched. The caller supplies the passages and the start of the prompt.
// The prompt numbers the passages, and the model cites those numbers, as in OpenSearch's
// `retrieval_augmented_generation`.

/** A text that the caller found. Passages are in the order of the prompt. */
export interface GivenPassage {
  /** name of the collection, and the document's id there */
  collection: string
  documentId: string
  field: string
  text: string
}

export interface Given {
  passages: GivenPassage[]
  /** '' or absent: none. If `system` and `instructions` are both empty, the built-in instruction is used */
  system?: string
  instructions?: string
  /** true: the question is the whole prompt */
  alone?: boolean
  /** how many of the latest turns the prompt holds */
  turns: number
  /** the question that was searched, if it was rewritten, and the call that rewrote it */
  rewritten?: { question: string; call: CallTrace }
  /** stored with the turn */
  details?: MessageDetails
}

/** Share of `max_bytes` that earlier turns may take, unless another is named. */
const HISTORY_SHARE = 0.5

const INSTRUCTION =
  'Answer the question in fewer than 100 words from the numbered search results and what was said before. Cite the ' +
  'number of a result in square brackets after what it supports, like [1]. Do not repeat yourself, and number the ' +
  'steps of a procedure. Say so where the search results hold no answer.'

/** The latest answered turns, oldest first, within their share of the budget. */
export function latestTurns(
  history: HistoryMessage[],
  turns: number,
  maxBytes: number,
  share = HISTORY_SHARE,
): ChatMessage[] {
  const pairs: ChatMessage[][] = []
  for (const [at, said] of history.entries()) {
    const asked = history[at - 1]
    if (said.role === 'assistant' && asked?.role === 'user') pairs.push([toChat(asked), toChat(said)])
  }
  const kept: ChatMessage[][] = []
  let room = maxBytes * share
  for (const pair of pairs.slice(-turns).reverse()) {
    room -= saidBytes(pair)
    if (room < 0) break
    kept.unshift(pair)
  }
  return kept.flat()
}

/** Bytes of what was said. */
export const saidBytes = (history: readonly ChatMessage[]): number =>
  history.reduce((sum, { content }) => sum + byteLength(content), 0)

/**
 * The passages that fit into the prompt, labelled by number. @throws ApiError 400 if the question is too long
 */
export function fitPassages(
  { passages }: Given,
  question: string,
  history: ChatMessage[],
  model: { max_bytes: number; model_name: string },
) {
  const sources = passages.map(
    ({ collection, documentId, field, text }, at): Source => ({
      collection,
      document: { id: documentId, [field === 'id' ? 'text' : field]: text },
      label: String(at + 1),
    }),
  )
  return fitSources([sources], question, model.max_bytes - saidBytes(history), familyOf(model.model_name))
}

/** Builds the prompt. User and assistant messages alternate, because every provider accepts that. */
export function enumeratedPrompt(
  { system = '', instructions = '' }: Given,
  sources: Source[],
  history: ChatMessage[],
  question: string,
): ChatMessage[] {
  const opening = [
    instructions !== '' || system !== '' ? instructions : INSTRUCTION,
    ...sources.map((source) => `SEARCH RESULT ${source.label}: ${fieldsOf(source)}`),
  ].filter((text) => text !== '')
  const asking = `QUESTION: ${question}\nANSWER:`
  const [first, ...others] = history
  const head = (last: string): ChatMessage => ({ role: 'user', content: [...opening, last].join('\n') })
  return [
    ...(system === '' ? [] : [{ role: 'system', content: system } as const]),
    ...(first === undefined
      ? [head(asking)]
      : [head(first.content), ...others, { role: 'user', content: asking } as const]),
  ]
}

const fieldsOf = ({ document: { id: _, ...fields } }: Source): string => Object.values(fields).join('\n')
