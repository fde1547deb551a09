/**
 * An answer put together from the documents' own sentences, or the places where it is best looked for.
 *
 * The section that says most about the question answers, with its best sentence and what belongs to it: the sentences
 * around it, the list, the table or the code that it introduces. Where no section says enough, that is said, and in the
 * place of a wrong sentence stand the sections that come nearest.
 */
import type { Source } from '../language-model'
import { STOPWORDS } from '../words'
import { announced, announces, type Candidate, type Evidence, SAME, type Section, weighEvidence } from './evidence'
import type { Meaning } from './meaning'
import { placesIn } from './places'
import { type Question, readQuestion } from './question'
import { smallTalk } from './small-talk'

export const NOT_FOUND = 'The documents do not answer this question.'
export const NOTHING_FOUND = 'No documents were found for this question.'

export interface Answer {
  /** Markdown */
  text: string
  /** says that there is no answer, or talks about something else than the documents: it quotes nobody */
  declined: boolean
}

const MOST_SENTENCES = 3
const LONGEST_ANSWER = 1200
/** characters of the sentences that are taken along with the best one */
const LONGEST_EXCERPT = 480
/** characters below which the next paragraph is taken along too */
const LITTLE_SAID = 200
const LONGEST_CODE = 900
/** share of the question's weight in a sentence that needs nothing after it */
const SAYS_IT_ALL = 0.95
/** sureness from which on a section answers without more ado, with a warning, and from which on it is worth a look */
const SURE = 1.75
const ENOUGH = 1
const LITTLE = 0.5
/** weight of a question that says enough for its words to be counted in full */
const TELLING = 1.5
/** sureness by words in terms of that by words and meaning */
const BY_WORDS_ALONE = 1.6

const LEADX = 0
const AHEAD = 1
const MOST_AHEAD = 0.6
const FAR_DOWN = 0.4
const MOST_NEAREST = 3
const NEAREST = 0.7

/** share of the question's weight that an example in code has to show */
const SHOWN = 0.5

const NOT_DIRECTLY = 'The documents do not answer this directly. The best places to read:'
const UNSURE = 'The documents may not answer this directly. What comes nearest:'

/**
 * @param sources best first
 * @param meaning tells what words mean; without it words count as they are written
 */
export function answerFrom(questionText: string, sources: Source[], meaning?: Meaning): Answer {
  const reply = smallTalk(questionText)
  if (reply !== undefined) return { text: reply, declined: true }
  if (sources.length === 0) return { text: NOTHING_FOUND, declined: true }
  const question = readQuestion(questionText)
  const evidence = weighEvidence(question, sources, meaning)
  const ranked = evidence.candidates.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score)
  const best = ranked[0]
  const about = best ? sureness(best, evidence) : 0
  const ahead = best ? lead(best, ranked) : 0
  const sure = about + ahead
  if (about + LEADX * ahead < ENOUGH) {
    const places = about < LITTLE ? [] : placesIn(evidence, sources)
    const text =
      places.length === 0 ? NOT_FOUND : `${NOT_DIRECTLY}\n\n${places.map((place) => `- ${place}`).join('\n')}`
    return { text, declined: true }
  }
  if (sure >= SURE) return { text: compose(choose(ranked, question), question, evidence, sources), declined: false }
  return { text: `${UNSURE}\n\n${compose(nearest(ranked), question, evidence, sources)}`, declined: false }
}

/**
 * What a sentence's place says about its being the answer: how far it is ahead of the best sentence of any other
 * document, and how far down its document was found.
 */
function lead(best: Candidate, ranked: Candidate[]): number {
  const next = ranked.find(({ rank }) => rank !== best.rank)
  const ahead = Math.min(MOST_AHEAD, best.score - (next?.score ?? 0))
  return AHEAD * ahead - FAR_DOWN * Math.log(1 + best.rank)
}

/** The best sentence of each of the best documents. */
function nearest(ranked: Candidate[]): Candidate[] {
  const chosen: Candidate[] = []
  for (const candidate of ranked) {
    if (chosen.length === MOST_NEAREST || candidate.score < NEAREST * ranked[0]!.score) break
    if (chosen.some((other) => other.rank === candidate.rank || repeats(candidate, other))) continue
    if (candidate.sentence.facts && chosen.length > 0) continue
    chosen.push(candidate)
  }
  return chosen
}

/**
 * How sure it is that a sentence answers, 0 to 3: what it and its section cover of the question, and how much their
 * meanings are like the question's. A question of few telling words is covered too easily to say much.
 */
function sureness({ section, inside, alike }: Candidate, { weight, strange }: Evidence): number {
  if (section.fit >= SAME) return 2 * SURE * section.fit
  const whole = [...weight.values()].reduce((sum, value) => sum + value, 0)
  const telling = Math.min(1, 0.3 + (0.7 * whole) / TELLING)
  const byWords = (section.cover + 0.5 * inside) * telling
  const sure =
    section.likeness === undefined || alike === undefined
      ? byWords * BY_WORDS_ALONE
      : byWords + Math.max(0, section.likeness) + 0.5 * alike
  // Half of a name is another's name.
  return strange ? Math.min(sure, LITTLE) : sure
}

/** The best sentence, and those that stand nearly as high and add something to it. */
function choose(ranked: Candidate[], question: Question): Candidate[] {
  const best = ranked[0]
  if (!best) return []
  const chosen: Candidate[] = []
  const threshold = best.score * (question.plural ? 0.85 : 0.92)
  let length = 0
  for (const candidate of ranked) {
    if (chosen.length >= MOST_SENTENCES || candidate.score < threshold) break
    if (chosen.some((other) => repeats(candidate, other))) continue
    // Fields read out add nothing to a sentence.
    if (candidate.sentence.facts && chosen.length > 0) continue
    length += candidate.sentence.text.length
    if (chosen.length > 0 && length > LONGEST_ANSWER) break
    chosen.push(candidate)
  }
  return chosen
}

/** Says again what another sentence said: most of the shorter one's words are in the longer. */
function repeats(a: Candidate, b: Candidate): boolean {
  const [small, large] = a.stems.size < b.stems.size ? [a.stems, b.stems] : [b.stems, a.stems]
  const telling = [...small].filter((stem) => !STOPWORDS.has(stem))
  if (telling.length === 0) return true
  return telling.filter((stem) => large.has(stem)).length / telling.length > 0.7
}

const DANGLING = /^(it|its|they|their|them|this|these|those|he|she|his|her|that|such|however|also|but|and)\b/i

/** Puts sentences in reading order, the best document first: neighbours in one paragraph, others apart. */
function compose(
  chosen: Candidate[],
  question: Question,
  evidence: Evidence,
  sources: Source[],
): string {
  const best = chosen[0]!
  const taken = new Set(chosen)
  for (const candidate of chosen) {
    for (const other of around(candidate, candidate === best || chosen.every(({rank},_,all)=>all.filter((c)=>c.rank===rank).length===1))) taken.add(other)
  }
  const order = [...new Set(chosen.map(({ section }) => section))]
  const inOrder = [...taken].sort(
    (a, b) =>
      order.indexOf(a.section) - order.indexOf(b.section) || a.sentence.position - b.sentence.position,
  )
  const paragraphs: string[] = []
  let last: Candidate | undefined
  for (const candidate of inOrder) {
    const { sentence, rank, section } = candidate
    const label = sources[rank]?.label
    const own = isFirstItem(candidate) ? sentence.list! : sentence.headed ? nameOf(section) : sentence.text
    if (paragraphs.some((paragraph) => paragraph.includes(sentence.text))) continue
    const text = own + (label === undefined ? '' : ` [${label}]`)
    const following = announces(sentence)
      ? announced(sentence)
      : wantsCode(question)
        ? sentence.code
        : undefined
    const more = following === undefined ? '' : `\n\n${following}`
    const joined = last && last.section === section && last.sentence.paragraph === sentence.paragraph
    if (joined && paragraphs.length > 0)
      paragraphs[paragraphs.length - 1] += `${gapAfter(last!)}${text}${more}`
    else paragraphs.push(text + more)
    last = candidate
  }
  const code = wantsCode(question) ? codeAfter(best) : undefined
  if (wantsCode(question) && !paragraphs.some((said) => said.includes('```'))) {
    const example = code === undefined ? exampleIn(best, evidence) : undefined
    if (example) {
      const label = sources[example.rank]?.label
      paragraphs.push(`${example.sentence.headed ? nameOf(example.section) : example.sentence.text}${label === undefined ? '' : ` [${label}]`}\n\n${example.sentence.code}`)
    }
  }
  if (code !== undefined && code.length <= LONGEST_CODE && !paragraphs.some((said) => said.includes(code))) {
    const end = paragraphs.findLastIndex((said) => said.includes(best.sentence.text))
    paragraphs.splice(end + 1, 0, code)
  }
  return paragraphs.join('\n\n')
}

/** What stands between a sentence and the next: nothing in scripts that set no spaces. */
const gapAfter = ({ sentence }: Candidate): string => (/[。！？]$/.test(sentence.text) ? '' : ' ')

/** The first item of a list that opens its section, or that stands by itself: the whole list says it. */
const isFirstItem = ({ sentence }: Candidate): boolean =>
  sentence.opening && sentence.list?.startsWith(`- ${sentence.text}`) === true

/** What is asked for that code does not show. */
const wantsCode = ({ kind }: Question): boolean => kind === 'how' || kind === 'other'

/**
 * What a sentence needs beside it: what it points back to, and of what follows it under its heading as much as there is
 * room for. Its paragraph comes first; what stands in further ones only where little was said by then.
 */
function around({ section, sentence, inside }: Candidate, isBest: boolean): Candidate[] {
  const { candidates } = section
  const at = candidates.findIndex((other) => other.sentence === sentence)
  const taken: Candidate[] = []
  let length = sentence.text.length + (announces(sentence) ? (announced(sentence)?.length ?? 0) : 0)
  const before = candidates[at - 1]
  if (
    before?.sentence.paragraph === sentence.paragraph &&
    before.sentence.text.length < 300 &&
    DANGLING.test(sentence.text)
  ) {
    taken.push(before)
    length += before.sentence.text.length
  }
  if (!isBest || inside >= SAYS_IT_ALL) return taken
  for (const next of candidates.slice(at + 1)) {
    if (next.sentence.facts) break
    if (next.sentence.paragraph !== sentence.paragraph && length > LITTLE_SAID) break
    length +=
      next.sentence.text.length + (announces(next.sentence) ? (announced(next.sentence)?.length ?? 0) : 0)
    if (length > LONGEST_EXCERPT) break
    taken.push(next)
  }
  return taken
}

/** The headings that code stands under, to introduce it. */
const nameOf = ({ context }: Section): string => `${context.slice(-3).join(' › ')}:`

/** The sentence of the best one's document whose code shows most of what was asked. */
function exampleIn({ rank }: Candidate, { sections }: Evidence): Candidate | undefined {
  let best: Candidate | undefined
  for (const section of sections) {
    if (section.rank !== rank) continue
    for (const candidate of section.candidates) {
      const { code } = candidate.sentence
      if (code === undefined || code.length > LONGEST_CODE) continue
      if (candidate.shown >= SHOWN && candidate.shown > (best?.shown ?? 0)) best = candidate
    }
  }
  return best
}

/** The first code under a sentence's heading that follows it. */
const codeAfter = ({ section, sentence }: Candidate): string | undefined =>
  section.candidates.find((other) => other.sentence.position >= sentence.position && other.sentence.code)
    ?.sentence.code
