/** Records, such as rows of a CSV file: documents of short fields, answered from field by field. */
import { wordsOf } from '../words'
import { type Evidence, strengthIn } from './evidence'
import { isVague, type Question } from './question'
import type { Sentence } from './sentences'

/** likeness at which a field's name is what was asked for */
const ASKED = 0.5

const SUMMARY =
  /\b(?:how many|average|mean|median|total|sum|count|number of|most|least|fewest|list|all|every|more than|less than|fewer than|between|compare)\b/i
/** "cheapest", "oldest", and not "request" */
const SUPERLATIVE =
  /\b(?!(?:re|con|in)?quest|(?:di|sug)gest|guest|forest|harvest|interest|(?:la|pro|con)test|manifest|invest|honest)\w{3,}est\b/i

/**
 * Asks about all records at once: how many there are, which is the cheapest, the sum. One record does not answer that,
 * unless it has a field for it ("How many employees ...?").
 */
export const isSummary = (sentence: Sentence, question: Question, evidence: Evidence): boolean =>
  (SUMMARY.test(question.text) || SUPERLATIVE.test(question.text)) &&
  !(
    /\bhow many\b/i.test(question.text) &&
    fieldsAskedFor(sentence, question, evidence).some(([, value]) => /^\d/.test(value))
  )

/**
 * The fields of a record that a question asks for, after those that say which record it is: "product: Tofu; supplier:
 * Mayumi's." All fields where the question names none.
 */
export function readOut(sentence: Sentence, question: Question, evidence: Evidence): string {
  const fields = sentence.fields!
  const wanted = fieldsAskedFor(sentence, question, evidence)
  if (wanted.length === 0) return sentence.text
  const isNamed = sentence.text !== sentence.facts
  const shown = fields.filter(
    (field, index) =>
      wanted.includes(field) || (index === 0 && !isNamed) || holds(field[1], question, evidence, 1),
  )
  const read = `${shown.map(([name, value]) => `${name}: ${value}`).join('; ')}.`
  return isNamed ? sentence.text.slice(0, -sentence.facts!.length) + read : read
}

/** The first field of a record without a title is its title. */
const fieldsAskedFor = (
  { fields = [], text, facts }: Sentence,
  question: Question,
  evidence: Evidence,
): [string, string][] =>
  fields.slice(text === facts ? 1 : 0).filter(([name]) => holds(name, question, evidence, ASKED))

/** Whether a text says some word of the question, to this degree. */
function holds(text: string, { terms }: Question, { strengths }: Evidence, least: number): boolean {
  const stems = new Set(wordsOf(text).map(({ stem }) => stem))
  return terms.some((term) => !isVague(term) && strengthIn(stems, strengths.get(term.stem)!) >= least)
}
