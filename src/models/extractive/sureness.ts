/** How sure it is that a sentence answers a question. */
import { type Candidate, type Evidence, SAME, type Section } from './evidence'
import { hasLook, type Question } from './question'
import { isSummary } from './records'

/** sureness from which a sentence answers without a warning */
const SURE = 1.9
/** aboutness from which a sentence answers at all */
export const ENOUGH = 1
/** aboutness from which a section is worth a look */
export const LITTLE = 0.5
/** weight of a question that says enough for its words to be counted in full */
const TELLING = 1.5
/** what aboutness by words alone is multiplied by, to be compared with that by words and meaning */
const BY_WORDS_ALONE = 1.6
/** the most that a lead over the next document counts */
const MOST_AHEAD = 0.6
/** what a place further down in the search results costs, by its logarithm */
const FAR_DOWN = 0.4

/**
 * How far a sentence is about the question, 0 to 3: what it and its section cover of the question, and how much their
 * meanings are like the question's. A question of few telling words is covered too easily to say much.
 */
export function aboutness({ section, inside, alike }: Candidate, { weight, strange }: Evidence): number {
  if (section.fit >= SAME) return 2 * SURE * section.fit
  const whole = [...weight.values()].reduce((sum, value) => sum + value, 0)
  const telling = Math.min(1, 0.3 + (0.7 * whole) / TELLING)
  const byWords = (section.cover + 0.5 * inside) * telling
  const about =
    section.likeness === undefined || alike === undefined
      ? byWords * BY_WORDS_ALONE
      : byWords + Math.max(0, section.likeness) + 0.5 * alike
  // Half of a name is another's name.
  return strange ? Math.min(about, LITTLE) : about
}

/**
 * Whether a sentence answers without a warning. Being about the question is not enough: a sentence that no other
 * document comes near, and whose document the search ranks high, is more often the right one. A sentence without the
 * look of an answer ("Who ...?" without a name) is not sure, and neither is one record for a question about all.
 *
 * @param best the first of `ranked`, which is about the question
 * @param ranked all sentences, best first
 */
export function isSure(
  best: Candidate,
  ranked: Candidate[],
  question: Question,
  evidence: Evidence,
): boolean {
  const { sentence, section, rank } = best
  if (sentence.fields && isSummary(sentence, question, evidence)) return false
  if (section.fit < SAME && !hasLook(question.kind, textOf(section))) return false
  const next = ranked.find((other) => other.rank !== rank)
  const ahead = Math.min(MOST_AHEAD, best.score - (next?.score ?? 0))
  return aboutness(best, evidence) + ahead - FAR_DOWN * Math.log(1 + rank) >= SURE
}

const textOf = ({ candidates }: Section): string => candidates.map(({ sentence }) => sentence.text).join(' ')
