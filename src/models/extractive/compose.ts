/** Chooses the sentences that answer, and writes them as Markdown with what belongs to them. */
import type { Source } from '../language-model'
import { isStopword, wordsOf } from '../words'
import { announced, announces, type Candidate, type Evidence, type Section } from './evidence'
import { strengthIn } from './fields'
import { hasLook, isVague, type Question, wantsCode } from './question'
import { readOut } from './records'

const MOST_SENTENCES = 3
const LONGEST_ANSWER = 1200
/** The most characters of the sentences that are added to the best one: in a single answer, and in one of several passages. */
const LONGEST_EXCERPT = 480
const LONGEST_PASSAGE = 300
/** characters of a list or table in one of several passages */
const LONGEST_LIST = 600
/** If the answer has fewer characters than this, the next paragraph is added. */
const LITTLE_SAID = 200
const LONGEST_CODE = 900
/** A sentence that holds this share of the question's weight needs nothing after it. */
const SAYS_IT_ALL = 0.95
/** share of the question's weight that a code example must show */
const SHOWN = 0.5
/** A word of the question deserves a sentence if it weighs this share of the heaviest one. */
const WORTH_SAYING = 0.3
/** the most sentences that are added for such words */
const MOST_COMPLETING = 2
/** A sentence holds a word if it is there as written, or with a slip. One of like meaning may be another: Saturday, Sunday. */
const HELD = 0.9
/** passages in an unsure answer, and the share of the best score that each needs */
const MOST_NEAREST = 3
const NEAREST = 0.7

/** The best sentence of each of the best documents. */
export function nearest(ranked: Candidate[], question: Question): Candidate[] {
  const chosen: Candidate[] = []
  for (const candidate of ranked) {
    if (chosen.length === MOST_NEAREST || candidate.score < NEAREST * ranked[0]!.score) break
    if (chosen.some((other) => other.section === candidate.section || repeats(candidate, other, question)))
      continue
    if (candidate.sentence.facts && !chosen.every(({ sentence }) => sentence.facts)) continue
    chosen.push(candidate)
  }
  return chosen
}

/** The best sentence, and those with nearly its score that add something. */
export function choose(ranked: Candidate[], question: Question): Candidate[] {
  const [best] = ranked
  if (!best) return []
  const chosen: Candidate[] = []
  const threshold = best.score * (question.plural ? 0.85 : 0.92)
  const near = ranked.filter(({ score }) => score >= threshold)
  // What does not look like an answer, such as a row without a date, adds nothing to what does.
  const looking = near.filter(({ sentence }) => hasLook(question.kind, sentence.text))
  let length = 0
  for (const candidate of looking.length > 0 ? looking : near) {
    if (chosen.length >= MOST_SENTENCES) break
    if (chosen.some((other) => repeats(candidate, other, question))) continue
    // Facts read out from fields add nothing to a sentence.
    if (candidate.sentence.facts && chosen.length > 0) continue
    length += candidate.sentence.text.length
    if (chosen.length > 0 && length > LONGEST_ANSWER) break
    chosen.push(candidate)
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

const LABEL = /^[^:.!?]{2,60}: (?=\S)/

/** Whether two documents give values under one name, and the question asks for it. The fields of a record are no such names. */
function sharesLabel({ sentence, rank }: Candidate, other: Candidate, { terms }: Question): boolean {
  const label = LABEL.exec(sentence.text)?.[0]
  if (label === undefined || sentence.fields || rank === other.rank || !other.sentence.text.startsWith(label))
    return false
  return wordsOf(label).some(({ stem }) => terms.some((term) => term.stem === stem))
}

/** Whether two documents give different values under the name that is asked for: `Parking: none`, `Parking: six places`. */
export const contradicts = (a: Candidate, b: Candidate, question: Question): boolean =>
  a.sentence.text !== b.sentence.text && sharesLabel(a, b, question)

/** `It ...`, and `Use it ...` */
const DANGLING =
  /^(?:\w+ )?(it|its|they|their|them|this|these|those|he|she|his|her)\b|^(?:that|such|however|also|but|and|so)\b/i

/** Puts sentences in reading order, best document first. Neighbours form one paragraph; others stand apart. */
export function compose(
  chosen: Candidate[],
  question: Question,
  evidence: Evidence,
  sources: Source[],
  isPassage = false,
): string {
  const best = chosen[0]!
  const taken = new Set(chosen)
  for (const candidate of chosen) {
    for (const other of around(
      candidate,
      candidate === best,
      isPassage ? LONGEST_PASSAGE : LONGEST_EXCERPT,
    )) {
      taken.add(other)
    }
    for (const other of completing(candidate.section, [...taken], question, evidence)) taken.add(other)
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
    const own = wordingOf(candidate, question, evidence, isPassage)
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
  const hasCode = code !== undefined || paragraphs.some((said) => said.includes('```'))
  const example = wantsCode(question) && !hasCode ? exampleIn(best, evidence) : undefined
  if (example) {
    const label = sources[example.rank]?.label
    const introduced = wordingOf(example, question, evidence, isPassage)
    paragraphs.push(`${introduced}${label === undefined ? '' : ` [${label}]`}\n\n${example.sentence.code}`)
  }
  if (code !== undefined && code.length <= LONGEST_CODE && !paragraphs.some((said) => said.includes(code))) {
    const end = paragraphs.findLastIndex((said) => said.includes(best.sentence.text))
    paragraphs.splice(end + 1, 0, code)
  }
  return paragraphs.join('\n\n')
}

/** The Markdown of one sentence. */
function wordingOf(candidate: Candidate, question: Question, evidence: Evidence, isPassage: boolean): string {
  const { sentence, section } = candidate
  if (sentence.headed) return nameOf(section)
  if (sentence.fields) return readOut(sentence, question, evidence)
  if (!isFirstItem(candidate)) return sentence.text
  return isPassage ? beginningOf(sentence.list!) : sentence.list!
}

/** As many lines of a list as fit in a passage, but at least the first. */
function beginningOf(list: string): string {
  if (list.length <= LONGEST_LIST) return list
  const end = list.lastIndexOf('\n', LONGEST_LIST)
  return end < 0 ? list.split('\n', 1)[0]! : `${list.slice(0, end)}\n- …`
}

/** The gap after a sentence: none in scripts without spaces. */
const gapAfter = ({ sentence }: Candidate): string => (/[\u3002\uff01\uff1f]$/.test(sentence.text) ? '' : ' ')

/**
 * Whether this is the first item of a list that opens its section or stands alone. The whole list then includes it.
 */
const isFirstItem = ({ sentence }: Candidate): boolean =>
  sentence.opening && sentence.list?.startsWith(`- ${sentence.text}`) === true

/**
 * What a sentence needs beside it: what it points back to, and as much of what follows under its heading as fits.
 * The rest of its paragraph comes first. Further paragraphs are added only while little has been said.
 */
function around({ section, sentence, inside }: Candidate, isBest: boolean, room: number): Candidate[] {
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
    if (length > room) break
    taken.push(next)
  }
  return taken
}

/**
 * The sentences of a section that hold what was asked and is not said yet. "Does the Harbour shop have parking?" is about the
 * shop, and the line about parking may be far down in the list of what it has.
 */
function completing(
  { above, candidates }: Section,
  taken: Candidate[],
  { kind, terms }: Question,
  { strengths, weight }: Evidence,
): Candidate[] {
  const least = WORTH_SAYING * Math.max(0, ...weight.values())
  const added: Candidate[] = []
  for (const term of terms) {
    const own = strengths.get(term.stem)!
    const holds = (stems: Set<string>) => strengthIn(stems, own) >= HELD
    // "When does it start?" asks for that time and no other.
    const isAboutTime = kind === 'when' && /^st(?:art|op)$/.test(term.stem)
    if (!isAboutTime && (isVague(term) || weight.get(term.stem)! < least)) continue
    if (holds(above)) continue
    if ([...taken, ...added].some(({ stems }) => holds(stems))) continue
    const holding = candidates.filter(
      ({ sentence, stems }) =>
        !sentence.facts && holds(stems) && (!isAboutTime || hasLook(kind, sentence.text)),
    )
    if (holding.length === 0 || holding.some((one) => taken.some((other) => isShownWith(one, other))))
      continue
    added.push(holding.reduce((best, one) => (one.score > best.score ? one : best)))
    if (added.length === MOST_COMPLETING) break
  }
  return added
}

/** Whether a sentence is an item of the list that another one brings. */
const isShownWith = ({ sentence }: Candidate, other: Candidate): boolean =>
  (announces(other.sentence) || isFirstItem(other)) &&
  other.sentence.list?.includes(`- ${sentence.text}`) === true

/** The headings above code, to introduce it; many pages have their title as the first one too. */
const nameOf = ({ context }: Section): string => `${[...new Set(context)].slice(-3).join(' › ')}:`

/** In the best sentence's document, the sentence whose code shows most of what was asked. */
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

/** The first code after a sentence under the same heading. */
const codeAfter = ({ section, sentence }: Candidate): string | undefined =>
  section.candidates.find((other) => other.sentence.position >= sentence.position && other.sentence.code)
    ?.sentence.code
