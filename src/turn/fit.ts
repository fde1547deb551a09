/**
 * Fits documents into a prompt, within `max_bytes`.
 *
 * If all documents fit, they go in whole. If not, long texts are cut first: the passages that say most about
 * the question stay. So a page that is the best hit is used, however long it is. Only then are documents
 * dropped, as Typesense drops them (contract 1.5). The `retrieval` event reports what was cut.
 */

import { coded } from '../errors'
import type { AnswerForm } from '../models/answer-form'
import type { ChatMessage, Source } from '../models/language-model'
import { joinPassages, LONG_TEXT, type Passage, passagesOf } from '../models/passages'
import { contentStems } from '../models/words'
import { inTurn, type MergeLists } from '../search/merge-lists'
import type { CutDocument } from './events'
import { arrayBytes, byteLength, type PromptFamily, promptText, serialise } from './prompt'

/**
 * Characters of long texts searched for passages per prompt. Of documents after that, only the beginning
 * counts.
 */
const MOST_CHARACTERS = 2_000_000
/** share of the budget within which each document gets its best passage before any gets a second one */
const BREADTH = 0.6
/** what a word counts in a title or heading; a word in the passage counts 1 */
const ABOVE = 0.9

export interface Fitted {
  sources: Source[]
  /** documents that are not in the prompt whole, in the order of the documents */
  cut: CutDocument[]
}

/**
 * @param lists the documents of each search, best first
 * @param maxBytes the model's `max_bytes` less the attachments
 * @param joined the order of the documents of several searches
 * @throws ApiError 400 if the question alone is too long
 */
export function fitSources(
  lists: Source[][],
  question: string,
  maxBytes: number,
  family: PromptFamily,
  joined: MergeLists = inTurn,
): Fitted {
  const budget = documentBudget(question, maxBytes, family)
  const whole = arrayBytes(lists.flat().map(bytesOf))
  if (whole <= budget || !lists.some((list) => list.some(isLong))) {
    const sources = fitDocuments(lists, question, maxBytes, family, joined)
    return { sources, cut: omitted(joined(lists), sources) }
  }
  return shorten(lists, question, budget, joined)
}

const bytesOf = (source: Source): number => byteLength(promptText(source))

const isLong = ({ document }: Source): boolean =>
  Object.values(document).some((value) => longText(value) !== undefined)

/** Returns a text that is long, or a list of texts that is long when joined. */
function longText(value: unknown): string | undefined {
  const isTexts = Array.isArray(value) && value.every((item) => typeof item === 'string')
  const text = isTexts ? value.join('\n\n') : value
  return typeof text === 'string' && text.length > LONG_TEXT ? text : undefined
}

const omitted = (all: Source[], kept: Source[]): CutDocument[] => {
  const there = new Set(kept)
  return all.filter((source) => !there.has(source)).flatMap((source) => cutOf(source, 0))
}

/** Reports a cut document. One without an id cannot be named, so it is left out. */
const cutOf = ({ collection, document: { id } }: Source, passages: number, of = 1): CutDocument[] =>
  typeof id === 'string' ? [{ collection, document_id: id, passages, of }] : []

/** A document in pieces: its long texts as passages, everything else as one frame. */
interface Pieces {
  source: Source
  /** place in its list; 0 is the best */
  rank: number
  /** the long texts' passages, by field */
  fields: Map<string, Piece[]>
  /** bytes in the prompt without its long texts */
  frame: number
  chosen: Set<Piece>
}

interface Piece {
  pieces: Pieces
  passage: Passage
  bytes: number
  words: Set<string>
  above: Set<string>
  value: number
}

function shorten(lists: Source[][], question: string, budget: number, joined: MergeLists): Fitted {
  let left = MOST_CHARACTERS
  // Take the best of each list first: no search's documents are worth more than another's.
  const all = lists
    .flatMap((list) => list.map((source, rank) => ({ source, rank })))
    .sort((a, b) => a.rank - b.rank)
    .map(({ source, rank }) => {
      const pieces = inPieces(source, rank, left)
      left -= [...pieces.fields.values()].flat().reduce((sum, { passage }) => sum + passage.text.length, 0)
      return pieces
    })
  value(all, question)

  let room = budget - arrayBytes([])
  const kept = new Set<Pieces>()
  const add = (pieces: Pieces, piece: Piece | undefined): boolean => {
    const bytes = (kept.has(pieces) ? 0 : pieces.frame + 2) + (piece?.bytes ?? 0)
    if (bytes > room) return false
    room -= bytes
    kept.add(pieces)
    if (piece) pieces.chosen.add(piece)
    return true
  }
  const breadth = budget * (1 - BREADTH)
  for (const pieces of all) {
    // The first document always gets a passage. The others share the part of the budget kept for breadth.
    if (pieces.rank > 0 && room < breadth) break
    for (const piece of byValue([...pieces.fields.values()].flat()).slice(0, 1)) add(pieces, piece)
    if (pieces.fields.size === 0) add(pieces, undefined)
  }
  for (const piece of byValue(all.flatMap(({ fields }) => [...fields.values()].flat()))) {
    if (!piece.pieces.chosen.has(piece)) add(piece.pieces, piece)
  }
  for (const pieces of all) if (!kept.has(pieces) && pieces.fields.size === 0) add(pieces, undefined)

  const order = new Map(all.map((pieces) => [pieces.source, pieces]))
  const sources: Source[] = []
  const cut: CutDocument[] = []
  for (const source of joined(lists)) {
    const pieces = order.get(source)!
    const of = Math.max(1, [...pieces.fields.values()].flat().length)
    const { size } = pieces.chosen
    if (!kept.has(pieces)) cut.push(...cutOf(source, 0, of))
    else if (pieces.fields.size === 0 || size === of) sources.push(source)
    else {
      sources.push(withPassages(pieces))
      cut.push(...cutOf(source, size, of))
    }
  }
  return { sources, cut }
}

/** @param left characters that may still be searched */
function inPieces(source: Source, rank: number, left: number): Pieces {
  const { document } = source
  const frame: Record<string, unknown> = { ...document }
  const fields = new Map<string, Piece[]>()
  const pieces: Pieces = { source, rank, fields, frame: 0, chosen: new Set() }
  const title = contentStems(
    Object.values(document)
      .filter((given) => typeof given === 'string' && given.length <= LONG_TEXT)
      .join(' '),
  )
  let characters = 0
  for (const [field, given] of Object.entries(document)) {
    const text = longText(given)
    if (text === undefined) continue
    // The best document is searched to its end, however long it is.
    const read = rank === 0 ? text : text.slice(0, Math.max(LONG_TEXT, left - characters))
    characters += read.length
    frame[field] = ''
    fields.set(
      field,
      passagesOf(read).map((passage) => ({
        pieces,
        passage,
        bytes: byteLength(JSON.stringify(joinPassages([{ ...passage, position: 1 }]))) + SEAM,
        words: contentStems(passage.text),
        above: new Set([...title, ...contentStems(passage.headings.map(({ text }) => text).join(' '))]),
        value: 0,
      })),
    )
  }
  pieces.frame = byteLength(promptText({ ...source, document: frame })) + fields.size * SEAM
  return pieces
}

/** Bytes between two passages, as JSON writes them: a gap mark and its line breaks. */
const SEAM = byteLength('\\n\\n…\\n\\n')

/**
 * Weighs what each passage says about the question: the rarity of the question's words it holds (IDF among the
 * passages, as in BM25), lowered by its document's rank. If nothing else tells passages apart, the beginning of
 * a text wins.
 */
function value(all: Pieces[], question: string): void {
  const pieces = all.flatMap(({ fields }) => [...fields.values()].flat())
  const weights = [...contentStems(question)].map((stem) => {
    const holding = pieces.filter(({ words, above }) => words.has(stem) || above.has(stem)).length
    return [stem, Math.log(1 + (pieces.length - holding + 0.5) / (holding + 0.5))] as const
  })
  const most = weights.reduce((sum, [, weight]) => sum + weight, 0) || 1
  for (const piece of pieces) {
    let said = 0
    for (const [stem, weight] of weights) {
      if (piece.words.has(stem)) said += weight
      else if (piece.above.has(stem)) said += weight * ABOVE
    }
    const beginning = 0.05 / (1 + piece.passage.position)
    piece.value = (said / most + beginning) / (1 + 0.1 * piece.pieces.rank)
  }
}

const byValue = (pieces: Piece[]): Piece[] => pieces.toSorted((a, b) => b.value - a.value)

/** The document with each long text replaced by its chosen passages. */
function withPassages({ source, fields, chosen }: Pieces): Source {
  const document = { ...source.document }
  for (const [field, pieces] of fields) {
    const passages = pieces.filter((piece) => chosen.has(piece)).map(({ passage }) => passage)
    if (passages.length === 0) delete document[field]
    else document[field] = joinPassages(passages)
  }
  return { ...source, document }
}

// What fits into a prompt. `max_bytes` counts UTF-8 bytes, and a document goes in whole or not at all (contract
// 1.5).
//
// MINIMUM is the size of the prompt's own words. The system prompt is not counted.

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
