/**
 * What was said before, as a caller tells it who has no conversation here yet: the clients of several protocols
 * send all of it with every question. It begins a conversation like messages that are imported, and is stored with
 * the first turn. Once a conversation is named, its own history counts and a transcript is passed over.
 */

import { byteLength } from './serialise'

export interface TranscriptMessage {
  role: 'user' | 'assistant'
  message: string
}

/** A longer past says nothing that a question needs, and would be stored with every question of a forgetful client. */
const MOST_MESSAGES = 100
const MOST_CHARACTERS = 100_000

/** What was said in a conversation that is stored, for another one to begin with. */
export const transcriptOf = (messages: readonly { role: string; message: string }[]): TranscriptMessage[] =>
  messages.map(({ role, message }) => ({ role: role === 'user' ? 'user' : 'assistant', message }))

/**
 * The end of a transcript, in whole messages without the empty ones.
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
