/**
 * Builds an answer from the documents' own sentences, or names the best places to read.
 *
 * The answer comes from the section that says most about the question: its best sentence, and what belongs to it. If
 * that sentence is uncertain, the answer says so and shows the best passages of several documents, each under the
 * name of its place. If no section says enough, the answer declines and only names the places.
 */
import type { Source } from '../language-model'
import { choose, compose, nearest } from './compose'
import { newerThan, newestFirst } from './editions'
import { weighEvidence } from './evidence'
import type { Meaning } from './meaning'
import { placeOf, placesIn } from './places'
import { questionsIn, readQuestion } from './question'
import { smallTalk } from './small-talk'
import { openingAsked } from './suggestions'
import { aboutness, ENOUGH, isSure, LITTLE } from './sureness'

/** editions of a page that are shown before the best one, which they may have replaced */
const MOST_NEWER = 2

export interface Answer {
  /** Markdown */
  text: string
  /** true if the reply has no answer or is not about the documents; it then cites nothing */
  declined: boolean
}

/**
 * @param sources best first
 * @param meaning compares words by meaning; without it they count only as written
 */
export function answerFrom(text: string, sources: Source[], meaning?: Meaning): Answer {
  const reply = smallTalk(text)
  if (reply !== undefined) return { text: reply, declined: true }
  if (sources.length === 0) return { text: readQuestion(text).says.nothingFound, declined: true }
  const questions = questionsIn(text)
  if (questions.length === 1) return answerOne(text, sources, meaning)
  const answers = questions.map((question) => answerOne(question, sources, meaning))
  if (answers.every(({ declined }) => declined)) return answerOne(text, sources, meaning)
  const said = new Set(
    answers.map((answer, at) =>
      answer.declined ? `${readQuestion(text).says.notFound} (${questions[at]})` : answer.text,
    ),
  )
  return { text: [...said].join('\n\n'), declined: false }
}

function answerOne(text: string, sources: Source[], meaning: Meaning | undefined): Answer {
  const question = readQuestion(text)
  const { says } = question
  const evidence = weighEvidence(question, sources, meaning)
  const opening = openingAsked(question, evidence, sources)
  if (opening) return { text: compose([opening], question, evidence, sources), declined: false }
  const ranked = evidence.candidates.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score)
  const best = ranked[0]
  const about = best ? aboutness(best, evidence) : 0
  if (!best || about < ENOUGH) {
    const places = about < LITTLE ? [] : placesIn(evidence, sources)
    const listed = places.map((place) => `- ${place}`).join('\n')
    return { text: places.length === 0 ? says.notFound : `${says.notDirectly}\n\n${listed}`, declined: true }
  }
  const sure = isSure(best, ranked, question, evidence)
  const newer = sure ? newerThan(best, ranked, question).slice(0, MOST_NEWER) : []
  if (sure && newer.length === 0) {
    return { text: compose(choose(ranked, question), question, evidence, sources), declined: false }
  }
  const passages = sure ? [...newer, best] : newestFirst(nearest(ranked, question))
  const shown = passages.map((passage) => {
    const quoted = compose([passage], question, evidence, sources, true)
    const place = passages.length > 1 ? placeOf(passage.section, sources) : ''
    return place === '' ? quoted : `**${place}**\n\n${quoted}`
  })
  return { text: [...(sure ? [] : [says.unsure]), ...shown].join('\n\n'), declined: false }
}
