/** Answers from records, such as rows of a CSV file: documents of short fields, read out field by field. */
import type { Evidence } from './evidence'
import { fieldsAskedFor, holds } from './fields'
import type { Question } from './question'
import type { Sentence } from './sentences'

const SUMMARY =
  /\b(?:how many|average|mean|median|total|sum|count|number of|most|least|fewest|list|all|every|more than|less than|fewer than|between|compare)\b/i
/** Superlatives such as "cheapest" and "oldest", but not "request". */
const SUPERLATIVE =
  /\b(?!(?:re|con|in)?quest|(?:di|sug)gest|guest|forest|harvest|interest|(?:la|pro|con)test|manifest|invest|honest)\w{3,}est\b/i

/**
 * Whether a question is about all records at once: how many there are, which is cheapest, the sum. One record
 * cannot answer that unless it has a field for it ("How many employees ...?").
 */
export const isSummary = (sentence: Sentence, question: Question, evidence: Evidence): boolean =>
  (SUMMARY.test(question.text) || SUPERLATIVE.test(question.text)) &&
  !(
    /\bhow many\b/i.test(question.text) &&
    fieldsAskedFor(sentence, question, evidence.strengths).some(([, value]) => /^\d/.test(value))
  )

/**
 * Reads out the fields of a record that a question asks for, after those that identify the record: "product: Tofu;
 * supplier: Mayumi's." If the question names no field, all are read out.
 */
export function readOut(sentence: Sentence, question: Question, evidence: Evidence): string {
  const fields = sentence.fields!
  const wanted = fieldsAskedFor(sentence, question, evidence.strengths)
  if (wanted.length === 0) return sentence.text
  const isNamed = sentence.text !== sentence.facts
  const shown = fields.filter(
    (field, index) =>
      wanted.includes(field) || (index === 0 && !isNamed) || holds(field[1], question, evidence.strengths, 1),
  )
  const read = `${shown.map(([name, value]) => `${name}: ${value}`).join('; ')}.`
  return isNamed ? sentence.text.slice(0, -sentence.facts!.length) + read : read
}
