/** How sure it is that a sentence answers a question. */
import { tells } from './editions'
import type { Candidate, Evidence } from './evidence'
import { wordsIn } from './language'
import { hasLook, type Question } from './question'
import { isSummary } from './records'

/** A sentence that is at least this sure answers without a warning. */
const SURE = 1.9
/** The same where one word was asked for, and stands in no heading. */
const SURE_OF_MENTION = 2.35
/** A sentence that is less about the question than this is no answer. */
export const ENOUGH = 0.9
/** A section that is less about the question than this is not named. */
export const LITTLE = 0.5
/** factor that makes aboutness by words alone comparable to that by words and meaning */
const BY_WORDS_ALONE = 1.73
/**
 * Weights of words and of meaning. Meaning separates answerable questions from others better than words do: on the
 * development questions, equal weights give an AUC of .89, these .92.
 */
const WORDS = 0.6
const MEANING = 1.5
/** The most that a lead over the next document adds to the sureness. */
const MOST_AHEAD = 0.6
/** The logarithm of a document's place in the search results, times this, is taken off the sureness. */
const FAR_DOWN = 0.4

/**
 * How far a sentence is about the question, 0 to 3: how much of the question it and its section cover, and how
 * alike their meanings are.
 */
export function aboutness({ section, inside, alike }: Candidate, { strange }: Evidence): number {
  const byWords = section.cover + 0.5 * inside
  const about =
    section.likeness === undefined || alike === undefined
      ? byWords * BY_WORDS_ALONE
      : WORDS * byWords + MEANING * (section.likeness + 0.5 * alike)
  // If only part of a name is found, it is somebody else's name.
  return strange ? Math.min(about, LITTLE) : about
}

/**
 * Whether the best sentence answers, without a warning. Being about the question is not enough. It is more often right if no other
 * document comes near and if the search ranks its document high. It is not sure if it does not look like an answer ("How many ...?"
 * without a number), or if it is one record for a question about all.
 *
 * @param best the first of `ranked`; it is about the question
 * @param ranked all sentences, best first
 */
export function isSureOf(
  best: Candidate,
  ranked: Candidate[],
  question: Question,
  evidence: Evidence,
): boolean {
  const { section, rank } = best
  // One of many records does not say which is the cheapest, in its fields or its description.
  const record = section.candidates.find((candidate) => candidate.sentence.isRecord) ?? best
  if (record.sentence.fields && isSummary(record.sentence, question, evidence)) return false
  if (ranked.some((other) => contradicts(best, other, question) && !tells(question, best, other)))
    return false
  const text = section.candidates.map((candidate) => candidate.sentence.text).join(' ')
  if (!hasLook(question.kind, text)) return false
  const next = ranked.find((other) => other.rank !== rank)
  const ahead = Math.min(MOST_AHEAD, best.score - (next?.score ?? 0))
  const sure = aboutness(best, evidence) + ahead - FAR_DOWN * Math.log(1 + rank)
  // Any text that mentions the one word asked for has all of the question. Under such a heading it is about it.
  const [only, ...others] = question.terms
  const isMention = others.length === 0 && best.alike !== undefined && !section.above.has(only?.stem ?? '')
  return sure >= (isMention ? SURE_OF_MENTION : SURE)
}

const LABEL = /^[^:.!?]{2,60}: (?=\S)/

/** Whether two documents give values under one name, and the question asks for it. The fields of a record are no such names. */
export function sharesLabel(
  { sentence, rank }: Candidate,
  other: Candidate,
  { terms, language }: Question,
): boolean {
  const label = LABEL.exec(sentence.text)?.[0]
  if (label === undefined || sentence.fields || rank === other.rank || !other.sentence.text.startsWith(label))
    return false
  return wordsIn(language, label).some(({ stem }) => terms.some((term) => term.stem === stem))
}

/** Whether two documents give different values under the name that is asked for: `Parking: none`, `Parking: six places`. */
const contradicts = (a: Candidate, b: Candidate, question: Question): boolean =>
  a.sentence.text !== b.sentence.text && sharesLabel(a, b, question)
