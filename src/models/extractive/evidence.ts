/**
 * Scores how much each sentence of the documents says about a question.
 *
 * Each word of the question weighs its rarity: IDF over the candidate sentences, by Robertson and Spärck Jones as
 * in BM25. A sentence earns it through its own words, its title and headings, or its neighbours under the same
 * heading; each counts for less than the one before. A word with nearly the same meaning counts in part. If there
 * is a table of meanings, the likeness of sentence and question is added.
 */
import { regExp } from '../../lib/once'
import type { Source } from '../language-model'
import { isSlip } from '../spelling'
import { compoundsOf, isTopical, type Word } from '../words'
import { fieldsAskedFor, type Strengths, strengthIn } from './fields'
import { type Language, wordsIn } from './language'
import { cosine, type Likeness, likenessBy, type Meaning } from './meaning'
import { hasLook, type Question } from './question'
import { editionOf, type Sentence, sentencesOf } from './sentences'

/** characters of a section from which its meaning is taken */
const LONGEST_SECTION = 1500
/** A section of fewer characters, such as "See also", says too little to answer. */
const ENOUGH_SAID = 150

export interface Candidate {
  sentence: Sentence
  /** rank of its document; 0 is the best */
  rank: number
  words: Word[]
  stems: Set<string>
  section: Section
  /** share of the question's weight in its own words */
  inside: number
  /** likeness of its meaning to the question's; undefined if unknown */
  alike: number | undefined
  score: number
}

/** The sentences of one document under the same headings. */
export interface Section {
  rank: number
  /** titles and headings above it, outermost first */
  context: string[]
  /** its page without the version that its path names */
  edition: { page: string; version?: string }
  /** stems of `context` and of the version */
  above: Set<string>
  candidates: Candidate[]
  /** stems of all its sentences and its code */
  stems: Set<string>
  /** share of the question's weight that it covers, 0 to 1 */
  cover: number
  /** likeness of its meaning to the question's; undefined if unknown */
  likeness: number | undefined
  /** how well its heading tells it from other documents: 1 divided by the number of documents with that heading */
  distinct: number
  score: number
}

export type Evidence = ReturnType<typeof weighEvidence>

/** Scores the sentences of the documents, and the sections that hold them. */
export function weighEvidence(question: Question, sources: Source[], given?: Meaning) {
  const { language } = question
  const meaning = isLatin(question.text) && !language ? given : undefined
  const sections = sources.flatMap((source, rank) => sectionsOf(source, rank, language))
  const candidates = sections.flatMap((section) => section.candidates)
  const strengths = strengthsOf(question, sections, likenessBy(meaning))
  addSynonyms(question, sections, sources, strengths)
  const weight = weigh(question, sections, strengths)
  const asked = meaning?.vector(question.text)
  tellApart(sections)
  for (const section of sections) scoreSection(section, question, weight, strengths, meaning, asked)
  return {
    candidates,
    sections,
    /** stem of the question -> how much it says */
    weight,
    /** stem of the question -> stem of the documents -> how far it says the same */
    strengths,
    /** true if the question has a name that no candidate has */
    strange: [...question.names].some((stem) => strengths.get(stem)?.size === 0),
  }
}

/** Pages of one file share its title, so the title does not distinguish them. */
function tellApart(sections: Section[]): void {
  const ranks = new Map<string, Set<number>>()
  for (const { context, rank } of sections) {
    const heading = context.at(-1) ?? ''
    ranks.set(heading, (ranks.get(heading) ?? new Set()).add(rank))
  }
  for (const section of sections) section.distinct = 1 / ranks.get(section.context.at(-1) ?? '')!.size
}

const LATIN = regExp(String.raw`\p{Script=Latin}`, 'gu')
const LETTER = regExp(String.raw`\p{L}`, 'gu')

/** The table of meanings knows English. In other languages it takes words for the pieces that they fall into. */
const isLatin = (text: string): boolean =>
  (text.match(LATIN())?.length ?? 0) * 2 > (text.match(LETTER())?.length ?? 0)

function sectionsOf(source: Source, rank: number, language: Language | undefined): Section[] {
  const sections = new Map<string, Section>()
  const edition = editionOf(source.document)
  for (const sentence of sentencesOf(source.document)) {
    const key = sentence.context.join('\n')
    let section = sections.get(key)
    if (!section) {
      const above = stemsIn(language, [...sentence.context, edition.version ?? ''].join(' '))
      section = {
        rank,
        context: sentence.context,
        edition,
        above,
        candidates: [],
        stems: new Set(),
        cover: 0,
        likeness: undefined,
        distinct: 1,
        score: 0,
      }
      sections.set(key, section)
    }
    // Without the title before the fields: that is context.
    const said = sentence.facts ?? sentence.text
    const words = wordsIn(language, said)
    const stems = stemsOf(words)
    for (const stem of stems) section.stems.add(stem)
    if (sentence.code) {
      for (const stem of stemsIn(language, sentence.code)) {
        section.stems.add(stem)
        if (sentence.headed) stems.add(stem)
      }
    }
    section.candidates.push({
      sentence,
      rank,
      words,
      stems,
      section,
      inside: 0,
      alike: undefined,
      score: 0,
    })
  }
  return [...sections.values()]
}

/** The stems of words, and of the compounds that they make. */
const stemsOf = (words: Word[]): Set<string> =>
  new Set([...compoundsOf(words), ...words].map(({ stem }) => stem))

const stemsIn = (language: Language | undefined, text: string): Set<string> =>
  stemsOf(wordsIn(language, text))

function strengthsOf({ terms, language }: Question, sections: Section[], likeness: Likeness): Strengths {
  const known = new Map<string, string>()
  for (const { context, candidates } of sections) {
    for (const { stem, folded } of wordsIn(language, context.join(' '))) known.set(stem, folded)
    for (const { words } of candidates) for (const { stem, folded } of words) known.set(stem, folded)
  }
  for (const { stems } of sections) for (const stem of stems) if (!known.has(stem)) known.set(stem, stem)
  return new Map(
    terms.map(({ stem, folded }) => {
      const strengths = new Map<string, number>()
      for (const [other, written] of known) {
        const strength = other === stem ? 1 : likeness(folded, written)
        if (strength > 0) strengths.set(other, strength)
      }
      return [stem, strengths]
    }),
  )
}

/**
 * Words that a search found a document by, and that are no word of the question in another spelling, are synonyms of the words that this
 * document lacks. If it lacks several, each may be the one that is meant.
 */
function addSynonyms(
  { text, terms, language }: Question,
  sections: Section[],
  sources: Source[],
  strengths: Strengths,
): void {
  const asked = wordsIn(language, text)
  const isAsked = ({ stem, folded }: Word) =>
    asked.some((word) => word.stem === stem || isSlip(word.folded, folded)) ||
    terms.some((term) => strengths.get(term.stem)!.has(stem))
  const added = sources.flatMap(({ matched = [] }, rank) => {
    const own = sections.filter((section) => section.rank === rank)
    const lacking = terms.filter(({ stem }) => {
      const said = strengths.get(stem)!
      return own.every(({ stems, above }) => strengthIn(stems, said) + strengthIn(above, said) === 0)
    })
    const others = wordsIn(language, matched.join(' ')).filter((word) => isTopical(word) && !isAsked(word))
    return lacking.flatMap(({ stem }) =>
      others.map((other) => [stem, other.stem, 1 / lacking.length] as const),
    )
  })
  for (const [stem, other, strength] of added) strengths.get(stem)!.set(other, strength)
}

/** Weighs the question's words. One that no section has weighs as much as the heaviest. */
function weigh(question: Question, sections: Section[], strengths: Strengths): Map<string, number> {
  const total = sections.length
  const weight = new Map<string, number>()
  for (const { stem } of question.terms) {
    const own = strengths.get(stem)!
    let holding = 0
    for (const { stems, above } of sections) {
      if (strengthIn(stems, own) >= 0.6 || strengthIn(above, own) >= 0.6) holding += 1
    }
    if (holding > 0) weight.set(stem, 0.3 + Math.log(1 + (total - holding + 0.5) / (holding + 0.5)))
  }
  const most = Math.max(1, ...weight.values())
  for (const { stem } of question.terms) if (!weight.has(stem)) weight.set(stem, most)
  return weight
}

function scoreSection(
  section: Section,
  question: Question,
  weight: Map<string, number>,
  strengths: Strengths,
  meaning: Meaning | undefined,
  asked: Float32Array | undefined,
): void {
  const { context, candidates, above, stems, rank } = section
  const whole = [...weight.values()].reduce((sum, value) => sum + value, 0) || 1
  let said = 0
  let heads = 0
  for (const [stem, value] of weight) {
    const own = strengths.get(stem)!
    const headed = strengthIn(above, own)
    said += value * Math.max(strengthIn(stems, own), headed)
    heads += value * headed
  }
  section.cover = said / whole
  let titled = heads / whole
  if (meaning && asked) {
    const text = [...context, ...candidates.map(({ sentence }) => sentence.text)].join('. ')
    const heading = context.length > 0 ? cosine(asked, meaning.vector(context.slice(-2).join(' '))) : 0
    const read = cosine(asked, meaning.vector(text.slice(0, LONGEST_SECTION)))
    section.likeness = Math.max(0, read, heading * 1.1)
    titled = Math.max(titled, heading * 1.3)
  }
  const size = candidates.reduce((sum, { sentence: { text, code = '' } }) => sum + (text + code).length, 0)
  const brief = Math.max(0, 1 - size / ENOUGH_SAID)
  const alike = section.likeness ?? section.cover * 0.5
  section.score = (section.cover + 0.5 * titled + 1.2 * alike - 0.4 * brief) / (1 + 0.04 * rank)

  for (const candidate of candidates) {
    const { sentence, stems: own, words } = candidate
    let inside = 0
    for (const [stem, value] of weight) inside += value * strengthIn(own, strengths.get(stem)!)
    if (meaning && asked) candidate.alike = Math.max(0, cosine(asked, meaning.vector(sentence.text)))
    candidate.inside = inside / whole
    candidate.score =
      (candidate.inside +
        0.6 * (candidate.alike ?? 0.3) +
        0.2 * Number(hasLook(question.kind, sentence.text)) +
        (sentence.opening ? (0.15 + 0.6 * titled) * section.distinct : 0) +
        1.6 * section.score) *
      trustOf(sentence, question, strengths) *
      lengthFactor(words.length)
  }
}

/** How far to trust a sentence: the fields of a record say little, unless the question names one ("What is the price of ...?"). */
function trustOf(sentence: Sentence, question: Question, strengths: Strengths): number {
  if (sentence.facts === undefined) return 1
  return sentence.isRecord && fieldsAskedFor(sentence, question, strengths).length > 0 ? 1.4 : 0.8
}

// A fragment says too little, and a page-long sentence too much at once.
const lengthFactor = (words: number): number =>
  words < 3 ? 0.7 : words < 6 ? 0.9 : words <= 45 ? 1 : Math.max(0.5, 45 / words)
