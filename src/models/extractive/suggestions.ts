/** Suggests next questions without a language model: about documents that were found but not used. */
import type { Source } from '../language-model'
import { contentStems } from '../words'
import { namesOf, sentencesOf, titleOf } from './sentences'

const MOST = 3
const LONGEST_TITLE = 120

/** The text if there is nothing to suggest. */
export const NOTHING_ELSE = 'Nothing else was found.'

/**
 * Returns questions in double angle brackets, one a line, or a sentence saying that there are none. A document
 * whose title is a question is suggested by its title. For any other, the suggestion asks what it is about.
 * @param sources found for the question, best first
 */
export function suggestionsFrom(question: string, answer: string, sources: Source[]): string {
  const asked = [contentStems(question)]
  const suggested: string[] = []
  for (const { document } of sources) {
    if (suggested.length === MOST) break
    const next = questionAbout(document)
    if (next === undefined || isUsed(document, answer)) continue
    const stems = contentStems(next)
    if (stems.size === 0 || asked.some((earlier) => [...stems].every((stem) => earlier.has(stem)))) continue
    asked.push(stems)
    suggested.push(`<<${next}>>`)
  }
  return suggested.length > 0 ? suggested.join('\n') : NOTHING_ELSE
}

function questionAbout(document: Record<string, unknown>): string | undefined {
  const title = namesOf(document).find((name) => name.endsWith('?')) ?? titleOf(document)
  if (title === '' || title.length > LONGEST_TITLE || /[<>\n]/.test(title)) return undefined
  return title.endsWith('?') ? title : `What is “${title}” about?`
}

const isUsed = (document: Record<string, unknown>, answer: string): boolean =>
  sentencesOf(document).some(({ text }) => answer.includes(text))
