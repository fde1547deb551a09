/**
 * A turn whose caller has already searched. The caller supplies the passages and the start of the prompt.
 * The prompt numbers the passages, and the model cites those numbers, as in OpenSearch's
 * `retrieval_augmented_generation`.
 */
import type { ChatMessage, Source } from '../models/language-model'
import type { CallTrace, HistoryMessage, MessageDetails } from './events'
import { fitSources } from './fit'
import { toChat } from './look-back'
import { byteLength, familyOf } from './prompt'

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
