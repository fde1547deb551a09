/**
 * Answers with the part of the documents that answers: whole blocks, under their title and headings.
 *
 * The section that says most about the question comes first. Others follow if they add to it. If it is uncertain that they
 * answer, the answer says so before and after. If no section says enough, the answer declines and only names the places.
 */
import type { Source, Verdict } from '../language-model'
import { isStopword } from '../words'
import { newerThan, newestFirst } from './editions'
import { type Candidate, type Evidence, weighEvidence } from './evidence'
import { excerptOf, FIGURES } from './excerpt'
import type { Phrases } from './language'
import type { Meaning } from './meaning'
import { placeOf, placesIn } from './places'
import { hasLook, type Question, questionsIn, readQuestion } from './question'
import { smallTalk } from './small-talk'
import { openingAsked } from './suggestions'
import { aboutness, ENOUGH, isSureOf, LITTLE, sharesLabel } from './sureness'

/** editions of a page that are shown before the best one, which they may have replaced */
const MOST_NEWER = 2
/** passages in an answer, and the share of the best score that each needs */
const MOST_PASSAGES = 3
const NEAR = 0.7
/** Characters of each passage. */
const ROOM = 900

export interface Answer extends Verdict {
  /** Markdown */
  text: string
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
  return {
    text: [...said].join('\n\n'),
    ...(answers.some(({ warned }) => warned) && { warned: true }),
  }
}

function answerOne(text: string, sources: Source[], meaning: Meaning | undefined): Answer {
  const question = readQuestion(text)
  const { says } = question
  const evidence = weighEvidence(question, sources, meaning)
  const opening = openingAsked(question, evidence, sources)
  if (opening) {
    const about: Question = { ...question, kind: 'definition' }
    return { text: framed(shownOf([opening], about, evidence, sources), says) }
  }
  const said = evidence.candidates.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score)
  const ranked = figureFirst(said, question)
  const best = ranked[0]
  const about = best ? aboutness(best, evidence) : 0
  if (!best || about < ENOUGH) {
    const places = about < LITTLE ? [] : placesIn(evidence, sources)
    const listed = places.map((place) => `- ${place}`).join('\n')
    return { text: places.length === 0 ? says.notFound : `${says.notDirectly}\n\n${listed}`, declined: true }
  }
  const isSure = isSureOf(best, ranked, question, evidence)
  const newer = !isSure ? [] : newerThan(best, ranked, question).slice(0, MOST_NEWER)
  const passages = newer.length > 0 ? [...newer, best] : newestFirst(passagesOf(ranked, question))
  const shown = shownOf(passages, question, evidence, sources)
  if (isSure) return { text: framed(shown, says) }
  return { text: [says.unsure, shown, says.check].join('\n\n'), warned: true }
}

/** What stands under a name is shown as a part of a document. */
const framed = (shown: string, { from }: Phrases): string =>
  shown.startsWith('**') ? `${from}\n\n${shown}` : shown

/** Puts a section that has the time or number asked for before the best one, if that has none and this one comes near. */
function figureFirst(ranked: Candidate[], { kind }: Question): Candidate[] {
  const [best] = ranked
  const has = ({ section }: Candidate) =>
    section.candidates.some(({ sentence }) => hasLook(kind, sentence.text))
  if (!best || !FIGURES.includes(kind) || has(best)) return ranked
  const other = ranked.find((candidate) => has(candidate))
  if (!other || other.score < NEAR * best.score) return ranked
  return [other, ...ranked.filter((candidate) => candidate !== other)]
}

/** The best section, and those of other documents that come near. */
function passagesOf(ranked: Candidate[], question: Question): Candidate[] {
  const [best] = ranked
  const chosen: Candidate[] = [best!]
  const seen = new Set([best!.rank])
  for (const candidate of ranked) {
    if (chosen.length === MOST_PASSAGES || candidate.score < NEAR * best!.score) break
    if (seen.has(candidate.rank)) continue
    seen.add(candidate.rank)
    // What comes second may have been replaced, too.
    const [newest = candidate] = newerThan(candidate, ranked, question)
    seen.add(newest.rank)
    if (chosen.some((other) => other === newest || repeats(newest, other, question))) continue
    chosen.push(newest)
  }
  return chosen
}

/** Whether one sentence repeats another: most of the shorter one's words are in the longer. */
function repeats(a: Candidate, b: Candidate, question: Question): boolean {
  // What two pages give under one name is each one's own.
  if (sharesLabel(a, b, question) && a.section.context.join() !== b.section.context.join()) return false
  const [small, large] = a.stems.size < b.stems.size ? [a.stems, b.stems] : [b.stems, a.stems]
  const telling = [...small].filter((stem) => !isStopword(stem))
  if (telling.length === 0) return true
  return telling.filter((stem) => large.has(stem)).length / telling.length > 0.7
}

/** Passages as Markdown, each under its place if it has headings or there are several. */
function shownOf(passages: Candidate[], question: Question, evidence: Evidence, sources: Source[]): string {
  const parts = passages.map((passage) => {
    const text = excerptOf(passage, question, evidence, ROOM, sources[passage.rank]?.label)
    const isNamed = passages.length > 1 || new Set(passage.section.context).size > 1
    const place = isNamed ? placeOf(passage.section, sources) : ''
    return place === '' ? text : `**${place}**\n\n${text}`
  })
  return parts.join('\n\n')
}
