/**
 * An answer put together from the documents' own sentences.
 *
 * A sentence is worth the rarity (IDF over the candidates) of the question's words that it holds; words of
 * its title and headings count for less. Words next to each other as they were asked, the look of the answer
 * that the question wants, and the document's rank decide among equals. Below a share of the question's
 * weight there is no answer, and that is said. Where a heading asks what was asked, what stands under it answers.
 */
import type { Source } from '../language-model'
import { STOPWORDS, type Word, wordsOf } from '../words'
import { fitOf, looksLike, type Question, readQuestion } from './question'
import { type Sentence, sentencesOf } from './sentences'
import { isSlip } from './spelling'

export const NOT_FOUND = 'The documents do not answer this question.'
export const NOTHING_FOUND = 'No documents were found for this question.'

const MOST_SENTENCES = 3
/** share of the question's weight that a sentence with its title and headings must hold */
const EVIDENCE = 0.45
const LONGEST_ANSWER = 1200
/** share of the question's weight in the headings at which what opens under them is the answer, whatever its words */
const HEADED = 0.75
/** fit of a heading that is a question at which it asks the same */
const SAME = 0.7
/** characters of the paragraph that opens under such a heading, beyond its first sentence */
const LONGEST_OPENING = 320
/** what is left of the score of a sentence that announces something which does not follow */
const UNKEPT = 0.8

interface Candidate {
  sentence: Sentence
  /** rank of its document, 0 is best */
  rank: number
  words: Word[]
  stems: Set<string>
  context: Set<string>
  /** the heading above it that is a question */
  asked: string | undefined
  /** how well that heading asks what was asked, 0 to 1 */
  fit: number
  /** the stems of context and sentence in their order, between spaces */
  line: string
  score: number
  /** share of the question's weight that it covers */
  evidence: number
}

/** The answer to a question, in Markdown, or a sentence saying that there is none. */
export function answerFrom(questionText: string, sources: Source[]): string {
  if (sources.length === 0) return NOTHING_FOUND
  const candidates = sources.flatMap((source, rank) => candidatesOf(source, rank))
  const question = spelledAs(readQuestion(questionText), candidates)
  score(candidates, question)
  const chosen = choose(candidates, question)
  return chosen.length === 0 ? NOT_FOUND : compose(chosen, candidates, question, sources)
}

/** The question with words that nobody wrote put right, where the candidates have one a letter away. */
function spelledAs(question: Question, candidates: Candidate[]): Question {
  const known = new Set(candidates.flatMap(({ stems }) => [...stems]))
  const terms = question.terms.map((term) => {
    if (known.has(term.stem) || term.stem.length < 5 || question.names.has(term.stem)) return term
    const stem = [...known].find((other) => isSlip(term.stem, other))
    return stem ? { ...term, stem } : term
  })
  return { ...question, terms }
}

const candidatesOf = (source: Source, rank: number): Candidate[] =>
  sentencesOf(source.document).map((sentence) => {
    // A title before the fields is context, not something that they say.
    const words = wordsOf(sentence.facts ?? sentence.text)
    const context = wordsOf(sentence.context.join(' '))
    return {
      sentence,
      rank,
      words,
      stems: new Set(words.map((word) => word.stem)),
      context: new Set(context.map((word) => word.stem)),
      asked: sentence.context.findLast((heading) => heading.endsWith('?')),
      fit: 0,
      line: ` ${[...context, ...words].map((word) => word.stem).join(' ')} `,
      score: 0,
      evidence: 0,
    }
  })

/**
 * How much each word of the question says: Robertson and Spärck Jones's IDF, as BM25 has it, over the candidate
 * sentences. A word that no candidate has may be a slip of the pen, and counts for half of the most telling one
 * that is there; a missing name means that the documents speak of somebody else.
 */
function weigh(candidates: Candidate[], question: Question): Map<string, number> {
  const total = candidates.length
  const weight = new Map<string, number>()
  const missing: Word[] = []
  for (const term of question.terms) {
    const holding = candidates.filter((candidate) => holds(candidate, term.stem)).length
    if (holding === 0) missing.push(term)
    else weight.set(term.stem, Math.log(1 + (total - holding + 0.5) / (holding + 0.5)))
  }
  const most = Math.max(1, ...weight.values())
  for (const term of missing) weight.set(term.stem, most * (question.names.has(term.stem) ? 1.5 : 0.5))
  return weight
}

const holds = ({ stems, context }: Candidate, stem: string): boolean => stems.has(stem) || context.has(stem)

function score(candidates: Candidate[], question: Question): void {
  const weight = weigh(candidates, question)
  const whole = [...weight.values()].reduce((sum, value) => sum + value, 0) || 1
  const fits = new Map<string, number>()
  for (const candidate of candidates) {
    const { stems, context, words, sentence, rank, asked } = candidate
    if (asked !== undefined && !fits.has(asked)) fits.set(asked, fitOf(readQuestion(asked), question, weight))
    candidate.fit = fits.get(asked ?? '') ?? 0
    let inside = 0
    let above = 0
    let headed = 0
    for (const [stem, value] of weight) {
      if (stems.has(stem)) inside += value
      else if (context.has(stem)) above += value
      if (context.has(stem)) headed += value
    }
    // Half of a name is another's name, and so are its words apart from each other.
    const other = question.fullNames.some(
      (name) =>
        name.some((stem) => holds(candidate, stem)) && !candidate.line.includes(` ${name.join(' ')} `),
    )
    // A question answers none, least of all one that repeats what was asked.
    const asks = /\?\W*$/.test(sentence.text)
    const unkept = announces(sentence) && announced(sentence) === undefined
    const trust = (other ? 0.55 : 1) * (sentence.facts ? 0.8 : 1) * (asks ? 0.3 : 1) * (unkept ? UNKEPT : 1)
    candidate.evidence = ((inside + above) / whole) * trust
    // A sentence that shares nothing with the question but its title's words says nothing about it, unless its
    // heading is as good as the question. A heading that asks something else is not, whatever its words.
    const answers =
      sentence.opening && headed / whole >= HEADED && (asked === undefined || candidate.fit >= SAME)
    if (inside === 0 && !answers) continue
    const match = (inside + 0.55 * above) / whole
    const look = looksLike(question.kind, sentence.text, question.terms)
    candidate.score =
      (match +
        (answers ? 0.3 : 0) +
        (0.12 * headed) / whole +
        0.15 * proximity(words, question.terms) +
        0.18 * look) *
      trust *
      lengthFactor(words.length) *
      (1 / (1 + 0.03 * rank))
  }
}

/** Share of the question's neighbouring words that stand next to each other here too, three words apart at most. */
function proximity(words: Word[], terms: Word[]): number {
  if (terms.length < 2) return 0
  let near = 0
  for (let index = 1; index < terms.length; index++) {
    const first = words.findIndex((word) => word.stem === terms[index - 1]!.stem)
    if (first < 0) continue
    if (words.slice(Math.max(0, first - 3), first + 4).some((word) => word.stem === terms[index]!.stem))
      near += 1
  }
  return near / (terms.length - 1)
}

// A fragment answers little and a page-long sentence says too much at once.
const lengthFactor = (words: number): number =>
  words < 4 ? 0.5 : words < 7 ? 0.85 : words <= 45 ? 1 : Math.max(0.5, 45 / words)

/**
 * What opens under the heading that asks what was asked: its first sentences, and after them the best one with a word
 * of the question that they lack.
 */
function openingAsked(candidates: Candidate[], { terms }: Question): Candidate[] {
  const best = candidates.reduce((a, b) => (rankedFit(b) > rankedFit(a) ? b : a))
  if (best.fit < SAME) return []
  const under = candidates.filter(({ rank, asked }) => rank === best.rank && asked === best.asked)
  const first = under[0]!.sentence
  let length = 0
  const opening = under.slice(0, MOST_SENTENCES).filter(({ sentence }) => {
    length += sentence.text.length
    return sentence === first || (sentence.paragraph === first.paragraph && length <= LONGEST_OPENING)
  })
  const lacking = terms.filter(({ stem }) => !opening.some(({ stems }) => stems.has(stem)))
  const shown = opening.map(({ sentence }) => `${sentence.text}\n${sentence.list ?? ''}`).join('\n')
  const further = under
    .filter(({ sentence }) => sentence.facts === undefined && !shown.includes(sentence.text))
    .filter(({ stems }) => lacking.some(({ stem }) => stems.has(stem)))
    .sort((a, b) => b.score - a.score)
  return [...opening, ...further.slice(0, 1)]
}

const rankedFit = ({ fit, rank }: Candidate): number => fit * (1 - 0.02 * rank)

/** The best sentences that add something to each other. */
function choose(candidates: Candidate[], question: Question): Candidate[] {
  if (candidates.length === 0) return []
  const opening = openingAsked(candidates, question)
  if (opening.length > 0) return opening
  const ranked = candidates.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score)
  const best = ranked[0]
  if (!best || best.evidence < EVIDENCE) return []
  const chosen: Candidate[] = []
  const threshold = best.score * (question.plural ? 0.7 : 0.85)
  let length = 0
  for (const candidate of ranked) {
    if (chosen.length >= MOST_SENTENCES || candidate.score < threshold) break
    if (candidate.evidence < EVIDENCE || chosen.some((other) => repeats(candidate, other))) continue
    // Fields read out add nothing to a sentence.
    if (candidate.sentence.facts && chosen.length > 0) continue
    length += candidate.sentence.text.length
    if (chosen.length > 0 && length > LONGEST_ANSWER) break
    chosen.push(candidate)
  }
  // The document with the best sentence first, and within a document as it is written.
  const order = [...new Set(chosen.map(({ rank }) => rank))]
  return chosen.sort(
    (a, b) => order.indexOf(a.rank) - order.indexOf(b.rank) || a.sentence.position - b.sentence.position,
  )
}

/** Says again what another sentence said: most of the shorter one's words are in the longer. */
function repeats(a: Candidate, b: Candidate): boolean {
  const [small, large] = a.stems.size < b.stems.size ? [a.stems, b.stems] : [b.stems, a.stems]
  const telling = [...small].filter((stem) => !STOPWORDS.has(stem))
  if (telling.length === 0) return true
  return telling.filter((stem) => large.has(stem)).length / telling.length > 0.7
}

/** Ends in a colon: without what follows it says little. */
const announces = ({ text }: Sentence): boolean => text.endsWith(':')

const announced = ({ list, code }: Sentence): string | undefined => list ?? code

const DANGLING = /^(it|its|they|their|them|this|these|those|he|she|his|her|that|such|however|also|but|and)\b/i

/** Puts the sentences in reading order: neighbours in one paragraph, others apart, code where it is asked for. */
function compose(
  chosen: Candidate[],
  candidates: Candidate[],
  question: Question,
  sources: Source[],
): string {
  const paragraphs: string[] = []
  let last: Candidate | undefined
  for (const candidate of chosen) {
    const { sentence, rank, fit } = candidate
    const before = candidates.find(
      (other) =>
        other.rank === rank &&
        other.sentence.position === sentence.position - 1 &&
        other.sentence.paragraph === sentence.paragraph,
    )
    // "It was founded in 1998." needs the sentence that says what.
    const opening =
      before && !chosen.includes(before) && DANGLING.test(sentence.text) && before.sentence.text.length < 300
        ? `${before.sentence.text} `
        : ''
    const label = sources[rank]?.label
    // Of a list that answers the question, the first item is no answer.
    const isFirstItem = sentence.opening && sentence.list?.startsWith(`- ${sentence.text}`)
    const own = isFirstItem && fit >= SAME ? sentence.list : sentence.text
    const text = opening + own + (label === undefined ? '' : ` [${label}]`)
    const following = announces(sentence)
      ? announced(sentence)
      : question.kind === 'how'
        ? sentence.code
        : undefined
    const code = following === undefined ? '' : `\n\n${following}`
    const joined = last && last.rank === rank && last.sentence.paragraph === sentence.paragraph
    if (joined && paragraphs.length > 0) paragraphs[paragraphs.length - 1] += ` ${text}${code}`
    else paragraphs.push(text + code)
    last = candidate
  }
  return paragraphs.join('\n\n')
}
