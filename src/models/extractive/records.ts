/** Records, such as rows of a CSV file: documents of short fields, answered from field by field. */
import { wordsOf } from '../words'
import { type Evidence, strengthIn } from './evidence'
import { isVague, type Question } from './question'
import type { Sentence } from './sentences'

/** likeness at which a field's name is what was asked for */
const ASKED = 0.5

/**
 * The fields of a record that a question asks for, after those that say which record it is: "product: Tofu; supplier:
 * Mayumi's." Where no field's name is in the question, all of them.
 */
export function readOut(sentence: Sentence, { terms }: Question, { strengths }: Evidence): string {
  const [first, ...further] = sentence.fields!
  const asked = terms.filter((term) => !isVague(term))
  const holds = (text: string, least: number) => {
    const stems = new Set(wordsOf(text).map(({ stem }) => stem))
    return asked.some(({ stem }) => strengthIn(stems, strengths.get(stem)!) >= least)
  }
  const wanted = further.filter(([name]) => holds(name, ASKED))
  if (!first || wanted.length === 0) return sentence.text
  const known = further.filter((field) => !wanted.includes(field) && holds(field[1], 1))
  const isNamed = sentence.text !== sentence.facts
  const shown = isNamed && !wanted.includes(first) ? [] : [first]
  const said = [...shown, ...further.filter((field) => wanted.includes(field) || known.includes(field))]
  const read = `${said.map(([name, value]) => `${name}: ${value}`).join('; ')}.`
  return isNamed ? sentence.text.slice(0, -sentence.facts!.length) + read : read
}
