/**
 * A transcript: what a caller without a conversation here says was said before. Clients of several protocols
 * send it with every question. It begins a conversation as imported messages do, and is stored with the first
 * turn. Once the conversation has a name, its own history counts and a transcript is ignored.
 */

import { type Part, promptText, storedLength } from '../lib/parts'
import { byteLength } from './serialise'

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
