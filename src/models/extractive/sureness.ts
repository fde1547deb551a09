/** How sure it is that a sentence answers a question. */
import { contradicts } from './compose'
import { tells } from './editions'
import { type Candidate, type Evidence, SAME, type Section } from './evidence'
import { hasLook, looks, type Question } from './question'
import { isSummary } from './records'

/** A sentence that is at least this sure answers without a warning. */
const SURE = 2.05
/** A sentence that is less about the question than this is no answer. */
export const ENOUGH = 1.03
/** A section that is less about the question than this is not named. */
export const LITTLE = 0.5
/** The words of a question count in full if they weigh at least this much together. */
const TELLING = 1.5
/** factor that makes aboutness by words alone comparable to that by words and meaning */
const BY_WORDS_ALONE = 1.73
/** The same in languages whose forms are compared by their beginnings: many are missed. */
const BY_BEGINNINGS = 2.2
/**
 * Weights of words and of meaning. Meaning separates answerable questions from others better than words do: on the
 * development questions, equal weights give an AUC of .89, these .92.
 */
const WORDS = 0.6
const MEANING = 1.5
/** The most that a lead over the next document adds to the sureness. */
const MOST_AHEAD = 0.6
/** what a price adds to a sentence's score, in a question that asks for one */
const OF_A_PRICE = 0.4
/** The logarithm of a document's place in the search results, times this, is taken off the sureness. */
const FAR_DOWN = 0.4

/**
 * How far a sentence is about the question, 0 to 3: how much of the question it and its section cover, and how
 * alike their meanings are. A question of few meaningful words is easily covered, so that counts for less.
 */
export function aboutness(
  { section, inside, alike }: Candidate,
  { weight, strange, isForeign }: Evidence,
): number {
  if (section.fit >= SAME) return 2 * SURE * section.fit
  const whole = [...weight.values()].reduce((sum, value) => sum + value, 0)
  const telling = Math.min(1, 0.3 + (0.7 * whole) / TELLING)
  const byWords = (section.cover + 0.5 * inside) * telling
  const about =
    section.likeness === undefined || alike === undefined
      ? byWords * (isForeign ? BY_BEGINNINGS : BY_WORDS_ALONE)
      : WORDS * byWords + MEANING * (Math.max(0, section.likeness) + 0.5 * alike)
  // If only part of a name is found, it is somebody else's name.
  return strange ? Math.min(about, LITTLE) : about
}

/**
 * Whether a sentence answers without a warning. Being about the question is not enough. It is more often right if
 * no other document comes near and if the search ranks its document high. It is not sure if it does not look like
 * an answer ("Who ...?" without a name), or if it is one record for a question about all.
 *
 * @param best the first of `ranked`; it is about the question
 * @param ranked all sentences, best first
 */
export function isSure(
  best: Candidate,
  ranked: Candidate[],
  question: Question,
  evidence: Evidence,
): boolean {
  const { sentence, section, rank } = best
  // One of many records does not say which is the cheapest, in its fields or its description.
  const record = section.candidates.find((candidate) => candidate.sentence.isRecord) ?? best
  if (record.sentence.fields && isSummary(record.sentence, question, evidence)) return false
  if (evidence.isForeign && !question.terms.every(({ stem }) => holds(section, stem))) return false
  if (ranked.some((other) => contradicts(best, other, question) && !tells(question, best, other)))
    return false
  if (section.fit < SAME && !hasLook(question.kind, textOf(section))) return false
  const next = ranked.find((other) => other.rank !== rank)
  // An amount of money is what was asked for, but not whose.
  const lead = best.score - (next?.score ?? 0) - (looks(question, sentence.text) > 1 ? OF_A_PRICE : 0)
  const ahead = Math.min(MOST_AHEAD, lead)
  return aboutness(best, evidence) + ahead - FAR_DOWN * Math.log(1 + rank) >= SURE
}

/** Whether a section has a word as it is written. Forms that begin alike are often other words. */
const holds = ({ stems, above }: Section, stem: string): boolean => stems.has(stem) || above.has(stem)

const textOf = ({ candidates }: Section): string => candidates.map(({ sentence }) => sentence.text).join(' ')
