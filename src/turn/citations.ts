/**
 * Finds which source supports which sentence of the answer.
 *
 * Each sentence is matched to the sentence of a document that shares most of its content words. It is cited if
 * it holds enough of them (SHARE) and no number differs. A document's id or label in square brackets counts as
 * the model's own citation. No second model is asked: this takes a millisecond, and people can check the result
 * by eye.
 */

import { once } from '../lib/once'
import { languageOf, phrasesFor } from '../models/extractive/language'
import { sentencesOf, splitSentences } from '../models/extractive/sentences'
import type { SentenceSupport, Source } from '../models/language-model'
import { namespaceOf } from '../models/providers'
import { contentStems, isContent, type Word, wordsOf } from '../models/words'
import type { Citation } from './facts'
import type { AskRequest, SupportRule } from './request'
import type { Generated } from './trace'

/** share of an answer sentence's content words that its source must hold */
const SHARE = 0.6
const FEWEST_SHARED = 3
/** most sources cited for one sentence of the answer */
const MOST_A_SENTENCE = 2

/** A sentence of a document. */
interface Passage {
  source: Source
  /** absent: it cannot be cited */
  id?: string
  text: string
  /** the title and headings above it */
  context: string
  /** the code that it is about */
  code?: string
  numbers: Set<string>
  /** of its content words and of those of its context */
  stems: Set<string>
}

/** A sentence of an answer. */
interface Span {
  text: string
  start: number
  end: number
}

/** Returns the citations of an answer, in the order of their places. @param index of the sources */
export function resolveCitations(
  answer: string,
  sources: Source[],
  index: PassageIndex = indexPassages(sources),
): Citation[] {
  const citations: Citation[] = []
  for (const span of spansOf(answer)) {
    const marked = markedSources(span, sources)
    const traced = marked.length > 0 || TITLE.test(span.text) ? [] : trace(span, index)
    citations.push(...marked, ...traced)
  }
  return citations
}

/** A heading, or a line that is all bold. It names what follows and states nothing. */
const TITLE = /^(?:#{1,6}\s|\*\*[^*]+\*\*:?$)/

interface PassageIndex {
  passages: Passage[]
  /** stem -> the passages that hold it, in their own words or in their title's */
  holding: Map<string, number[]>
}

/** Indexes the sentences of the documents in a prompt. */
export function indexPassages(sources: Source[]): PassageIndex {
  const passages: Passage[] = []
  const holding = new Map<string, number[]>()
  for (const source of sources) {
    const { id } = source.document
    for (const { text, place, context, code } of sentencesOf(source.document)) {
      const block = place?.blocks[place.at]
      const quote = block?.kind === 'table' ? block.units[place!.unit]!.shown : text
      const above = context.join(' ')
      const stems = contentStems(`${above} ${text}`)
      const passage = {
        source,
        ...(typeof id === 'string' && { id }),
        text: quote,
        context: above,
        ...(code !== undefined && { code }),
        numbers: numbersOf(text),
        stems,
      }
      const number = passages.push(passage) - 1
      for (const stem of stems) {
        const list = holding.get(stem)
        if (list) list.push(number)
        else holding.set(stem, [number])
      }
    }
  }
  return { passages, holding }
}

function trace(span: Span, { passages, holding }: PassageIndex): Citation[] {
  const stems = contentStems(span.text)
  const needed = Math.max(FEWEST_SHARED, Math.ceil(stems.size * SHARE))
  if (stems.size < FEWEST_SHARED) return []
  const shared = new Map<number, number>()
  for (const stem of stems) {
    for (const number of holding.get(stem) ?? []) shared.set(number, (shared.get(number) ?? 0) + 1)
  }
  const numbers = [...numbersOf(span.text)]
  const found = [...shared]
    .filter(
      ([number, count]) =>
        count >= needed &&
        passages[number]!.id !== undefined &&
        numbers.every((value) => passages[number]!.numbers.has(value)),
    )
    // Most shared words first, then the better document: passages are numbered in the order of their ranks.
    .sort((a, b) => b[1] - a[1] || a[0] - b[0])
  const best = found[0]?.[1] ?? 0
  const seen = new Set<Source>()
  const citations: Citation[] = []
  for (const [number, count] of found) {
    const { source, id, text } = passages[number]!
    // A second document counts only if it matches at least nine tenths as well as the first.
    if (citations.length >= MOST_A_SENTENCE || count < best * 0.9) break
    if (seen.has(source)) continue
    seen.add(source)
    citations.push({
      collection: source.collection,
      document_id: id!,
      start: span.start,
      end: span.end,
      quote: text,
    })
  }
  return citations
}

/** Documents named in square brackets, alone or in a list: [17], [a.pdf#page=3], [1, 2]. */
function markedSources(span: Span, sources: Source[]): Citation[] {
  const citations = new Map<Source, Citation>()
  for (const [, inside] of span.text.matchAll(/\[([^[\]]+)\](?!\()/g)) {
    for (const name of [inside!, ...inside!.split(/[,;]/)]) {
      const wanted = name.trim().replace(/^id:\s*/i, '')
      const source = sources.find(({ document, label }) => label === wanted || document.id === wanted)
      const id = source?.document.id
      if (!source || typeof id !== 'string' || citations.has(source)) continue
      citations.set(source, {
        collection: source.collection,
        document_id: id,
        start: span.start,
        end: span.end,
      })
    }
  }
  return [...citations.values()]
}

/** The sentences of an answer with their places. Code is skipped: it is never cited. */
function spansOf(answer: string): Span[] {
  const spans: Span[] = []
  let at = 0
  let fenced = false
  for (const line of answer.split('\n')) {
    if (/^\s*(```|~~~)/.test(line)) fenced = !fenced
    else if (!fenced) {
      let from = at
      for (const text of splitSentences(line)) {
        const start = answer.indexOf(text, from)
        from = start + text.length
        // A marker after the full stop belongs to the sentence before it.
        const last = spans.at(-1)
        if (last && /^\s*(\[[^[\]]+\]\s*)+\.?$/.test(text) && last.end >= at) {
          last.end = from
          last.text = answer.slice(last.start, from)
        } else spans.push({ text, start, end: from })
      }
    }
    at += line.length + 1
  }
  return spans
}

/** Numbers in digits, without separators of thousands. */
const numbersOf = (text: string): Set<string> =>
  new Set(text.match(/\d+(?:[.,]\d+)*/g)?.map((value) => value.replaceAll(',', '')))

// =============================================================================
// Says of each sentence of an answer whether the documents in the prompt support it.
//
// Some neighbouring sentences of a document have to hold its numbers, its names and much of its wording. If it cites documents, it
// has to be one of these. What a document affirms does not support a sentence that denies it. No model is asked: this takes
// milliseconds, and people can check the result by eye. A table of word vectors was tried and left out: it supported 1% more of
// the right sentences, and has 8 MB.

/** Sentences before and after one that are read with it. */
const AROUND = 2
/** Sentences of the documents that one of the answer is compared with: those that share most of its words. */
const MOST_COMPARED = 12
/** From this share of its words on, a sentence without a wrong number or name is supported. */
const SUPPORTED = 0.35
/** From this share on, one with a wrong number or name is supported in part. */
const PARTLY = 0.5
/** A sentence that denies something counts as the denial of one that shares so many of its words. */
const SAME = 0.7
/** Sentences that are judged, the first ones, and characters of each: the work is bounded, whatever a model writes. */
const [MOST_JUDGED, LONGEST] = [500, 2_000]
/** Missing numbers and names that are told of a sentence. */
const MOST_MISSING = 5
/** Fewer words and numbers state nothing that could be compared. */
const FEWEST_WORDS = 3

/** Of the languages that the built-in answerer speaks, and the commonest of Japanese and Chinese. */
const NEGATION =
  /\b(?:not|no|never|none|neither|nor|without|cannot|nicht|kein(?:e[mnrs]?)?|nie|ohne|ne|pas|jamais|sans|nunca|sin|n\u00e3o|sem|non|senza|mai)\b|n['\u2019]t\b|\u306a\u3044|\u307e\u305b\u3093|\u4e0d|\u6ca1/iu
/** "No." answers a question and denies nothing in its own sentence. */
const ANSWERING = /^\s*(?:no|nein|non|n\u00e3o)[,.;:!]\s*/iu
/** Markers of citations. */
const MARKERS = /\[[^[\]]*\]/g
const CODE = /[\p{Ll}\d]\p{Lu}|[\p{L}\d][_$][\p{L}\d]/u
/** What stands before the first word of a sentence, or of a part that begins like one. */
const BEGINNING = /(?:^|[.!?:;\u2022"\u201c(*#>-])\s{0,2}$/
/** Numbers of kings and wars, and initials. */
const NUMERAL = /^(?:\d+|[IVX]+|[A-Z])$/
/** The number of an item of a list. */
const ITEM = /^\s*\d+[.)]\s/

/**
 * Words for the numbers from 2 on: 1 is an article in most languages. Left out are those that mean something else in another
 * language, such as `once`, `due`, `sei`, `elf`.
 */
const SPELLED = once(
  () =>
    new Map(
      [
        'two zwei deux dos dois',
        'three drei trois tres tre três',
        'four vier quatre cuatro quattro quatro',
        'five fünf cinq cinco cinque',
        'six sechs seis',
        'seven sieben siete sette sete',
        'eight acht huit ocho otto oito',
        'nine neun neuf nueve nove',
        'ten zehn dix diez dieci dez',
        'eleven onze undici',
        'twelve zwölf douze doce dodici doze',
      ].flatMap((words, at) => words.split(' ').map((word): [string, string] => [word, String(at + 2)])),
    ),
)

/**
 * What the documents say of an answer. The built-in model quotes them, and a form has no sentences.
 * @returns the answer as it is given, with the remark on it that the assistant's rule asks for
 */
export function checked(
  { support: rule, form, given }: AskRequest,
  answer: Generated,
  question: string,
  sources: Source[],
): { answer: Generated; citations: Citation[]; remark?: string } {
  if (answer.verdict.declined) return { answer, citations: [] }
  const index = indexPassages(sources)
  const citations = resolveCitations(answer.text, sources, index)
  const isWhole = !form && !given?.alone && answer.finish !== 'tool_calls'
  if (!isWhole || namespaceOf(answer.model) === 'local') return { answer, citations }
  const support = supportOf(answer.text, question, citations, index)
  if (support.length === 0) return { answer, citations }
  const verdict = { ...answer.verdict, support }
  const remark = rule && remarkOn(support, rule, question)
  if (remark === undefined) return { answer: { ...answer, verdict }, citations }
  return rule?.below === 'withhold'
    ? { answer: { ...answer, text: remark, verdict: { declined: true } }, citations: [], remark }
    : {
        answer: { ...answer, text: answer.text + remark, verdict: { ...verdict, warned: true } },
        citations,
        remark,
      }
}

/** What an answer ends with, or is replaced by, if too little of it is supported; undefined if there is enough. */
function remarkOn(
  support: readonly SentenceSupport[],
  { minimum, below }: SupportRule,
  question: string,
): string | undefined {
  const shares: number[] = support.map((each) => SHARES[each.support])
  if (shares.length === 0 || shares.reduce((sum, share) => sum + share, 0) / shares.length >= minimum)
    return undefined
  const { notFound, check } = phrasesFor(question)
  return below === 'withhold' ? notFound : `\n\n${check}`
}

const SHARES = { supported: 1, partly: 0.5, not_found: 0 }

/** @returns one for each sentence that states something. Headings, code and what is very long are left out */
export function supportOf(
  answer: string,
  question: string,
  citations: readonly Citation[],
  index: PassageIndex,
): SentenceSupport[] {
  const given = new Set(wordsOf(question).map(({ stem }) => stem))
  const capitalizesNouns = languageOf(wordsOf(answer))?.locale === 'de'
  for (const figure of figuresOf(question)) given.add(figure)
  const readings = new Map<Passage, Reading>()
  const spans = spansOf(answer).filter(({ text }) => text.length <= LONGEST && !TITLE.test(text))
  return spans.slice(0, MOST_JUDGED).flatMap((span) => {
    const claim = claimOf(span, given, capitalizesNouns)
    if (claim.stems.length + claim.figures.length < FEWEST_WORDS) return []
    const cited = citations.filter(({ start }) => start === span.start)
    const isCited = ({ collection, document }: Source) =>
      cited.length === 0 ||
      // The visitor's own file, which no answer can cite.
      document.id === undefined ||
      cited.some((citation) => citation.collection === collection && citation.document_id === document.id)
    const { share, missing, isDenied } = bestOf(claim, index, readings, isCited)
    const isWhole = missing.length === 0 && !isDenied
    const support = share < (isWhole ? SUPPORTED : PARTLY) ? 'not_found' : isWhole ? 'supported' : 'partly'
    return {
      start: span.start,
      end: span.end,
      support,
      ...(missing.length > 0 && { missing: missing.slice(0, MOST_MISSING) }),
    }
  })
}

interface Claim {
  /** of its words, but for those that are only grammar */
  stems: string[]
  /** those of them that the question has */
  given: ReadonlySet<string>
  figures: string[]
  names: Word[]
  denies: boolean
}

/** @param given what the question says, which needs no support */
function claimOf(span: Span, given: ReadonlySet<string>, capitalizesNouns: boolean): Claim {
  const text = span.text.replace(MARKERS, '').replace(ITEM, ' ').replace(ANSWERING, '')
  const words = wordsOf(text).filter((word) => isContent(word) && !/^\d/.test(word.folded))
  return {
    stems: [...new Set(words.filter(({ folded }) => !SPELLED().has(folded)).map(({ stem }) => stem))],
    given,
    figures: [...figuresOf(text)].filter((figure) => !given.has(figure)),
    names: namesIn(text, capitalizesNouns).filter(({ stem }) => !given.has(stem)),
    denies: NEGATION.test(text),
  }
}

interface Evidence {
  /** of the sentence's words */
  share: number
  /** numbers and names */
  missing: string[]
  /** it has no negation where the sentence has one */
  isDenied: boolean
}

/** What the sentences say that hold most of a claim. */
function bestOf(
  claim: Claim,
  { passages, holding }: PassageIndex,
  readings: Map<Passage, Reading>,
  isCited: (source: Source) => boolean,
): Evidence {
  const shared = new Map<number, number>()
  for (const stem of claim.stems) {
    for (const number of holding.get(stem) ?? []) {
      if (isCited(passages[number]!.source)) shared.set(number, (shared.get(number) ?? 0) + 1)
    }
  }
  const near = [...shared].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, MOST_COMPARED)
  const worth = ({ share, missing }: Evidence) => share - 0.3 * missing.length
  const read = (passage: Passage): Reading => {
    const known = readings.get(passage) ?? readingOf(passage)
    readings.set(passage, known)
    return known
  }
  return near
    .map(([number]) => evidenceIn(around(passages, number).map(read), claim))
    .reduce((best, next) => (worth(next) > worth(best) ? next : best), evidenceIn([], claim))
}

/** What a sentence of a document says. */
interface Reading {
  stems: ReadonlySet<string>
  figures: ReadonlySet<string>
  denies: boolean
}

const readingOf = ({ text, context, stems, code = '' }: Passage): Reading => ({
  stems: code === '' ? stems : new Set([...stems, ...contentStems(code)]),
  figures: figuresOf(`${context} ${text} ${code}`),
  denies: NEGATION.test(text),
})

function evidenceIn(some: readonly Reading[], { stems, given, figures, names, denies }: Claim): Evidence {
  const says = (stem: string) => some.some((reading) => reading.stems.has(stem))
  const said = stems.filter((stem) => given.has(stem) || says(stem)).length
  const share = stems.length === 0 ? 1 : said / stems.length
  return {
    share,
    missing: [
      ...figures.filter((figure) => !some.some((reading) => reading.figures.has(figure))),
      ...names.filter(({ stem }) => !says(stem)).map(({ raw }) => raw),
    ],
    isDenied: denies && share > SAME && !some.some((reading) => reading.denies),
  }
}

/** A sentence of a document with those near it. */
function around(passages: readonly Passage[], number: number): Passage[] {
  const { source } = passages[number]!
  return passages
    .slice(Math.max(0, number - AROUND), number + AROUND + 1)
    .filter((near) => near.source === source)
}

/** Numbers in digits: `two` is 2, and `1990s` 1990. */
function figuresOf(text: string): Set<string> {
  const figures = numbersOf(text.replace(/(\d)(?:st|nd|rd|th|s)\b/g, '$1'))
  for (const word of text.toLowerCase().match(/\p{L}+/gu) ?? []) {
    const figure = SPELLED().get(word)
    if (figure !== undefined) figures.add(figure)
  }
  return figures
}

/** Words with a capital letter within a sentence, where not every noun has one, and those written as code is. */
function namesIn(text: string, capitalizesNouns: boolean): Word[] {
  const names: Word[] = []
  let from = 0
  for (const word of wordsOf(text)) {
    const begin = text.indexOf(word.raw, from)
    from = begin + word.raw.length
    const isCapital = !capitalizesNouns && /^\p{Lu}/u.test(word.raw) && isContent(word) && text[from] !== '-'
    const isName =
      CODE.test(word.raw) || (isCapital && !BEGINNING.test(text.slice(Math.max(0, begin - 3), begin)))
    if (isName && !NUMERAL.test(word.raw)) names.push(word)
  }
  return names
}
