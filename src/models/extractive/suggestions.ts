/** Suggests next questions without a language model: about documents that were found but not used. */
import type { Source } from '../language-model'
import { contentStems, wordsOf } from '../words'
import type { Candidate, Evidence } from './evidence'
import { asksAbout, phrasesFor } from './language'
import type { Question } from './question'
import { namesOf, sentencesOf, titleOf } from './sentences'

const MOST = 3
const LONGEST_TITLE = 120

/** The text if there is nothing to suggest. */
export const NOTHING_ELSE = 'Nothing else was found.'

/**
 * Returns questions in double angle brackets, one a line, or a sentence saying that there are none. A document
 * whose title is a question is suggested by its title. For any other, the suggestion asks what it is about, in the question's
 * language.
 * @param sources found for the question, best first
 */
export function suggestionsFrom(question: string, answer: string, sources: Source[]): string {
  const asked = [contentStems(question)]
  const suggested: string[] = []
  const { about } = phrasesFor(question)
  for (const { document } of sources) {
    if (suggested.length === MOST) break
    const title = titleToAsk(document)
    if (title === undefined || isUsed(document, answer)) continue
    const stems = contentStems(title)
    if (stems.size === 0 || asked.some((earlier) => [...stems].every((stem) => earlier.has(stem)))) continue
    asked.push(stems)
    suggested.push(`<<${title.endsWith('?') ? title : about.replace('%', () => title)}>>`)
  }
  return suggested.length > 0 ? suggested.join('\n') : NOTHING_ELSE
}

function titleToAsk(document: Record<string, unknown>): string | undefined {
  const title = namesOf(document).find((name) => name.endsWith('?')) ?? titleOf(document)
  return title === '' || title.length > LONGEST_TITLE || /[<>\n]/.test(title) ? undefined : title
}

const ASKS_ABOUT = /^what(?:['\u2019]?s| is| are)\b.{1,200}\babout\b.{0,3}$/i

/**
 * The opening of the document that a question is about as a whole, as suggestions ask, or of the part whose heading is the question.
 * Undefined if there is none, or one without sentences.
 */
export function openingAsked(
  { text, terms }: Question,
  { candidates }: Evidence,
  sources: Source[],
): Candidate | undefined {
  const asked = new Set(terms.map(({ stem }) => stem))
  const isAsked = (document: Record<string, unknown>) => {
    const named = titleOf(document)
    if (asksAbout(text.trim(), named)) return true
    const title = contentStems(named)
    // "What is it about?" names no title, and a document without one has no words that it could name.
    if (title.size === 0 || title.size !== asked.size || !ASKS_ABOUT.test(text)) return false
    return [...title].every((stem) => asked.has(stem))
  }
  const read = (written: string) => wordsOf(written).map(({ folded }) => folded)
  const said = read(text).join(' ')
  const isHeading = (name: string) => said !== '' && read(name).join(' ') === said
  const headed = candidates.find(
    ({ sentence: { opening, context } }) => opening && context.slice(-2).some(isHeading),
  )
  if (headed) return headed
  const rank = sources.findIndex(({ document }) => isAsked(document))
  return candidates.find(
    ({ rank: own, sentence }) =>
      own === rank && !sentence.facts && !sentence.headed && !sentence.text.endsWith('?'),
  )
}

const isUsed = (document: Record<string, unknown>, answer: string): boolean =>
  sentencesOf(document).some(({ text }) => answer.includes(text))
