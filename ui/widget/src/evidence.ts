/**
 * What the sources say of an answer, sentence by sentence: pure. The server tells it of the answer as it was written, and readers see
 * it as Markdown sets it: sentences are found on the page by their letters and digits, which both have in common.
 */
import { plain } from './plain'
import { type Source, withoutMarks } from './sources'
import type { SentenceSupport } from './wire'
import type { Words } from './words'

/** What a digit shows: a passage of a source, and what all sources say of the sentence. */
export interface Evidence {
  source?: Source | undefined
  /** the sentence of the source that is cited, where the server names one */
  quote?: string | undefined
  /** what the answer says there */
  sentence: string
  support?: SentenceSupport | undefined
}

/** What is said of a sentence, in a reader's words. @returns a line or two */
export const saysOf = ({ support, missing = [] }: SentenceSupport, words: Words): string[] => [
  words[support === 'not_found' ? 'notFound' : support],
  ...(missing.length > 0 ? [words.missing.replace('{list}', () => missing.join(', '))] : []),
]

/** A sentence with its place among the letters of a text. */
export interface Placed extends SentenceSupport {
  from: number
  to: number
}

/** What a text as it was written and as Markdown sets it have in common. */
export const lettersOf = (text: string): string => text.replace(/[^\p{L}\p{N}]+/gu, '')

/** The number of an item, which a list counts by itself. */
const ITEM = /^\d{1,9}[.)]\s/

/** Where sentences of an answer are among the letters of what a page shows of it. Those that are not there are left out. */
export function placesIn(
  letters: string,
  answer: string,
  support: readonly SentenceSupport[],
  sources: readonly Source[],
): Placed[] {
  let after = 0
  return support.flatMap((sentence) => {
    const written = plain(withoutMarks(answer.slice(sentence.start, sentence.end), sources))
    const wanted = lettersOf(written.replace(ITEM, ''))
    const from = wanted === '' ? -1 : letters.indexOf(wanted, after)
    if (from < 0) return []
    after = from + wanted.length
    return [{ ...sentence, from, to: after }]
  })
}
