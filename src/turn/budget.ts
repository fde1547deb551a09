/**
 * What fits into a prompt. `max_bytes` counts UTF-8 bytes, and a document goes in whole or not at all (contract
 * 1.5).
 *
 * MINIMUM is the size of the prompt's own words. The system prompt is not counted.
 */

import { coded } from '../errors'
import type { AnswerForm } from '../models/answer-form'
import type { ChatMessage, Source } from '../models/language-model'
import { inTurn, type MergeLists } from '../search/merge-lists'
import { type PromptFamily, promptText } from './prompt'
import { arrayBytes, byteLength, serialise } from './serialise'

const MINIMUM = {
  tags: { answer: 30, standalone: 204 },
  context: { answer: 226, standalone: 232 },
} satisfies Record<PromptFamily, unknown>

/**
 * Returns the bytes left beside the question for the serialised array of documents.
 * @throws ApiError 400 if the question alone is too long
 */
export function documentBudget(question: string, maxBytes: number, family: PromptFamily): number {
  const minimum = MINIMUM[family].answer
  const budget = maxBytes - minimum - byteLength(question)
  if (budget >= 0) return budget
  throw coded(
    'too_long',
    400,
    `\`max_bytes\` of the conversation model is less than the minimum required bytes(${minimum}).`,
  )
}

/**
 * Drops documents until the serialised array of them fits.
 * @param lists the documents of each search, best first. A single list loses its last document. Of several, the
 *   longest loses its last one; if two are equally long, the later list does
 * @param joined puts what is left of the lists into one
 * @throws ApiError 400 if the question alone is too long
 */
export function fitDocuments<T extends Pick<Source, 'document' | 'label'>>(
  lists: T[][],
  question: string,
  maxBytes: number,
  family: PromptFamily,
  joined: MergeLists = inTurn,
): T[] {
  const budget = documentBudget(question, maxBytes, family)
  const kept = lists.map((list) => list.map((item) => ({ item, bytes: byteLength(promptText(item)) })))
  let total = arrayBytes(kept.flat().map(({ bytes }) => bytes))
  let count = kept.reduce((sum, list) => sum + list.length, 0)
  while (count > 0 && total > budget) {
    const longest = kept.reduce((best, list) => (list.length >= best.length ? list : best))
    // One element of the array costs its own bytes, a comma and a line break.
    total -= longest.pop()!.bytes + 2
    count -= 1
  }
  return joined(kept).map(({ item }) => item)
}

/** Bytes of the prompt that attached documents take. They come before all others. */
export const attachedBytes = (documents: Pick<Source, 'document'>[]): number =>
  documents.reduce((sum, { document }) => sum + byteLength(serialise(document)) + 2, 0)

/** Bytes that the schema of the answer adds to the prompt. */
export const formBytes = (form: AnswerForm | undefined): number =>
  form?.type === 'schema' ? byteLength(serialise(form.schema)) : 0

/**
 * Returns the newest messages that fit beside the question in the prompt for a standalone question.
 * @param messages oldest first
 * @throws ApiError 400 if nothing fits
 */
export function fitHistory(
  messages: ChatMessage[],
  question: string,
  maxBytes: number,
  family: PromptFamily,
  namespace: string,
): ChatMessage[] {
  const budget = maxBytes - MINIMUM[family].standalone - byteLength(question)
  if (budget < 0) throw coded('too_long', 400, 'Max bytes is not enough to generate standalone question.')
  if (budget === 0) {
    const positive = namespace === 'openai' || namespace === 'azure'
    throw coded(
      'too_long',
      400,
      positive ? 'Limit must be positive integer' : 'Conversation history is not valid',
    )
  }
  const bytes = messages.map((message) => byteLength(serialise({ [message.role]: message.content })))
  let total = arrayBytes(bytes)
  let first = 0
  while (first < messages.length && total > budget) {
    total -= bytes[first]! + 2
    first += 1
  }
  return messages.slice(first)
}
