/** Which fields of a record a question asks for. */
import { wordsIn } from './language'
import type { Question } from './question'
import type { Sentence } from './sentences'

/** Stem of the question -> stem of the documents -> how far it says the same, if at all. */
export type Strengths = Map<string, Map<string, number>>

/** likeness from which a field's name counts as asked for */
const ASKED = 0.5

/** How far some stems say a word of the question. */
export function strengthIn(stems: ReadonlySet<string>, strengths: ReadonlyMap<string, number>): number {
  let most = 0
  if (strengths.size < stems.size) {
    for (const [stem, strength] of strengths) if (strength > most && stems.has(stem)) most = strength
  } else {
    for (const stem of stems) most = Math.max(most, strengths.get(stem) ?? 0)
  }
  return most
}

/** The fields of a record that the question names. The first field of a record without a title counts as its title. */
export const fieldsAskedFor = (
  { fields = [], text, facts }: Sentence,
  question: Question,
  strengths: Strengths,
): [string, string][] =>
  fields.slice(text === facts ? 1 : 0).filter(([name]) => holds(name, question, strengths, ASKED))

/** Whether a text says some word of the question at least this strongly. */
export function holds(
  text: string,
  { terms, language }: Question,
  strengths: Strengths,
  least: number,
): boolean {
  const stems = new Set(wordsIn(language, text).map(({ stem }) => stem))
  return terms.some((term) => strengthIn(stems, strengths.get(term.stem)!) >= least)
}
