/**
 * A transcript: what a caller without a conversation here says was said before. Clients of several protocols
 * send it with every question. It begins a conversation as imported messages do, and is stored with the first
 * turn. Once the conversation has a name, its own history counts and a transcript is ignored.
 */

import { byteLength } from './serialise'

export interface TranscriptMessage {
  role: 'user' | 'assistant'
  message: string
}

/**
 * Limits. Older messages add nothing that a question needs, and a client that forgets its conversation would
 * have them stored with every question.
 */
const MOST_MESSAGES = 100
const MOST_CHARACTERS = 100_000

/** Turns the messages of a stored conversation into a transcript for another one to begin with. */
export const transcriptOf = (messages: readonly { role: string; message: string }[]): TranscriptMessage[] =>
  messages.map(({ role, message }) => ({ role: role === 'user' ? 'user' : 'assistant', message }))

/**
 * Keeps the end of a transcript, in whole messages, without empty ones.
 * @param transcript oldest first
 * @param mostBytes of their texts, in UTF-8
 */
export function fitTranscript(
  transcript: readonly TranscriptMessage[],
  mostBytes = Number.POSITIVE_INFINITY,
): TranscriptMessage[] {
  const kept: TranscriptMessage[] = []
  let characters = 0
  let bytes = 0
  for (const { role, message } of transcript.toReversed()) {
    if (message.trim() === '') continue
    characters += message.length
    if (kept.length === MOST_MESSAGES || characters > MOST_CHARACTERS) break
    bytes += byteLength(message)
    if (bytes > mostBytes) break
    kept.push({ role, message })
  }
  return kept.reverse()
}
