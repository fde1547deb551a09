/**
 * Finds which source supports which sentence of the answer.
 *
 * Each sentence is matched to the sentence of a document that shares most of its content words. It is cited if
 * it holds enough of them (SHARE) and no number differs. A document's id or label in square brackets counts as
 * the model's own citation. No second model is asked: this takes a millisecond, and people can check the result
 * by eye.
 */

import { sentencesOf, splitSentences } from '../models/extractive/sentences'
import type { Source } from '../models/language-model'
import { contentStems } from '../models/words'
import type { Citation } from './events'

/** share of an answer sentence's content words that its source must hold */
const SHARE = 0.6
const FEWEST_SHARED = 3
/** most sources cited for one sentence of the answer */
const MOST_A_SENTENCE = 2

/** A sentence of a document. */
export interface Passage {
  source: Source
  /** absent: it cannot be cited */
  id?: string
  text: string
  /** the title and headings above it */
  context: string
  /** the code that it is about */
  code?: string
  numbers: Set<string>
  /** of its content words and of those of its context */
  stems: Set<string>
}

/** A sentence of an answer. */
export interface Span {
  text: string
  start: number
  end: number
}

/** Returns the citations of an answer, in the order of their places. @param index of the sources */
export function resolveCitations(
  answer: string,
  sources: Source[],
  index: PassageIndex = indexPassages(sources),
): Citation[] {
  const citations: Citation[] = []
  for (const span of spansOf(answer)) {
    const marked = markedSources(span, sources)
    const traced = marked.length > 0 || TITLE.test(span.text) ? [] : trace(span, index)
    citations.push(...marked, ...traced)
  }
  return citations
}

/** A heading, or a line that is all bold. It names what follows and states nothing. */
export const TITLE = /^(?:#{1,6}\s|\*\*[^*]+\*\*:?$)/

export interface PassageIndex {
  passages: Passage[]
  /** stem -> the passages that hold it, in their own words or in their title's */
  holding: Map<string, number[]>
}

/** Indexes the sentences of the documents in a prompt. */
export function indexPassages(sources: Source[]): PassageIndex {
  const passages: Passage[] = []
  const holding = new Map<string, number[]>()
  for (const source of sources) {
    const { id } = source.document
    for (const { text, place, context, code } of sentencesOf(source.document)) {
      const block = place?.blocks[place.at]
      const quote = block?.kind === 'table' ? block.units[place!.unit]!.shown : text
      const above = context.join(' ')
      const stems = contentStems(`${above} ${text}`)
      const passage = {
        source,
        ...(typeof id === 'string' && { id }),
        text: quote,
        context: above,
        ...(code !== undefined && { code }),
        numbers: numbersOf(text),
        stems,
      }
      const number = passages.push(passage) - 1
      for (const stem of stems) {
        const list = holding.get(stem)
        if (list) list.push(number)
        else holding.set(stem, [number])
      }
    }
  }
  return { passages, holding }
}

function trace(span: Span, { passages, holding }: PassageIndex): Citation[] {
  const stems = contentStems(span.text)
  const needed = Math.max(FEWEST_SHARED, Math.ceil(stems.size * SHARE))
  if (stems.size < FEWEST_SHARED) return []
  const shared = new Map<number, number>()
  for (const stem of stems) {
    for (const number of holding.get(stem) ?? []) shared.set(number, (shared.get(number) ?? 0) + 1)
  }
  const numbers = [...numbersOf(span.text)]
  const found = [...shared]
    .filter(
      ([number, count]) =>
        count >= needed &&
        passages[number]!.id !== undefined &&
        numbers.every((value) => passages[number]!.numbers.has(value)),
    )
    // Most shared words first, then the better document: passages are numbered in the order of their ranks.
    .sort((a, b) => b[1] - a[1] || a[0] - b[0])
  const best = found[0]?.[1] ?? 0
  const seen = new Set<Source>()
  const citations: Citation[] = []
  for (const [number, count] of found) {
    const { source, id, text } = passages[number]!
    // A second document counts only if it matches at least nine tenths as well as the first.
    if (citations.length >= MOST_A_SENTENCE || count < best * 0.9) break
    if (seen.has(source)) continue
    seen.add(source)
    citations.push({
      collection: source.collection,
      document_id: id!,
      start: span.start,
      end: span.end,
      quote: text,
    })
  }
  return citations
}

/** Documents named in square brackets, alone or in a list: [17], [a.pdf#page=3], [1, 2]. */
function markedSources(span: Span, sources: Source[]): Citation[] {
  const citations = new Map<Source, Citation>()
  for (const [, inside] of span.text.matchAll(/\[([^[\]]+)\](?!\()/g)) {
    for (const name of [inside!, ...inside!.split(/[,;]/)]) {
      const wanted = name.trim().replace(/^id:\s*/i, '')
      const source = sources.find(({ document, label }) => label === wanted || document.id === wanted)
      const id = source?.document.id
      if (!source || typeof id !== 'string' || citations.has(source)) continue
      citations.set(source, {
        collection: source.collection,
        document_id: id,
        start: span.start,
        end: span.end,
      })
    }
  }
  return [...citations.values()]
}

/** The sentences of an answer with their places. Code is skipped: it is never cited. */
export function spansOf(answer: string): Span[] {
  const spans: Span[] = []
  let at = 0
  let fenced = false
  for (const line of answer.split('\n')) {
    if (/^\s*(```|~~~)/.test(line)) fenced = !fenced
    else if (!fenced) {
      let from = at
      for (const text of splitSentences(line)) {
        const start = answer.indexOf(text, from)
        from = start + text.length
        // A marker after the full stop belongs to the sentence before it.
        const last = spans.at(-1)
        if (last && /^\s*(\[[^[\]]+\]\s*)+\.?$/.test(text) && last.end >= at) {
          last.end = from
          last.text = answer.slice(last.start, from)
        } else spans.push({ text, start, end: from })
      }
    }
    at += line.length + 1
  }
  return spans
}

/** Numbers in digits, without separators of thousands. */
export const numbersOf = (text: string): Set<string> =>
  new Set(text.match(/\d+(?:[.,]\d+)*/g)?.map((value) => value.replaceAll(',', '')))
