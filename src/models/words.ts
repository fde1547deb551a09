/** Words for the built-in models: folded, stemmed, and classified by how informative they are. */

import { stemmer } from 'stemmer'
import { once, regExp, remembered } from '../lib/once'
import { SNOWBALL, type Stemmer } from '../lib/snowball'

export interface Word {
  /** as written */
  raw: string
  /** lower case, no diacritics, no possessive */
  folded: string
  stem: string
  /** a verb and its particle, which people also write as one word: `back up` */
  isCompound?: true
}

const SPACELESS = String.raw`\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u30fc\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}`
/** A run of a script without spaces between words, or a word of one with spaces. */
const WORD = regExp(
  String.raw`([${SPACELESS}][${SPACELESS}\p{M}]*)|[\p{L}\p{N}\p{M}]+(?:['\u2019.]\p{L}+)*`,
  'gu',
)
/** The same for a text in ASCII, where it takes a fraction of the time. */
const ASCII_WORD = /[a-z0-9]+(?:['.][a-z]+)*/gi
const ASCII_TEXT = regExp(String.raw`^[\x00-\x7f]*$`, '')
const MARKS = regExp(String.raw`\p{M}+`, 'gu')

const ASCII = /^[a-z0-9]+$/

/** Lower case, without diacritics and possessive endings. */
const fold = (word: string): string => {
  const lower = word.toLowerCase()
  if (ASCII.test(lower)) return lower
  return lower
    .normalize('NFD')
    .replace(MARKS(), '')
    .replace(/['\u2019]s?$|['\u2019]/g, '')
}

/** Stems of a language that are kept. */
const MOST_STEMS = 20_000

const porter = remembered(MOST_STEMS, stemmer)

/** Porter's stem. */
export const stemOf = (folded: string): string =>
  folded.length < 3 || !ASCII.test(folded) ? folded : porter(folded)

/** Those of other languages by Snowball, without accents then. */
const STEMS = Object.fromEntries(
  Object.entries(SNOWBALL).map(([locale, stem]) => [
    locale,
    remembered(MOST_STEMS, (word) => fold(stem(word))),
  ]),
)

/** The words of a text, in order. @param locale of the language of their stems; default: English */
export const wordsOf = (text: string, locale = 'en'): Word[] =>
  writtenWords(text).map((raw) => wordOf(raw, STEMS[locale]))

/** The words of a text as they are written. */
function writtenWords(text: string): string[] {
  if (ASCII_TEXT().test(text)) return text.match(ASCII_WORD) ?? []
  return Array.from(text.matchAll(WORD()), ([raw, spaceless]) =>
    spaceless === undefined ? raw : segments(spaceless),
  ).flat()
}

const wordOf = (raw: string, stem: Stemmer | undefined): Word => {
  const folded = fold(raw)
  return { raw, folded, stem: stem ? stem(raw.normalize('NFC').toLowerCase()) : stemOf(folded) }
}

let segmenter: Intl.Segmenter | undefined

/** The words of a text without spaces, by the dictionary that its script has in ICU. */
function segments(text: string): string[] {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: 'word' })
  const words: string[] = []
  for (const { segment, isWordLike } of segmenter.segment(text)) if (isWordLike) words.push(segment)
  return words
}

const PARTICLES = /^(?:up|out|off|down|over|back|away|in|on)$/
/** `in` and `on` follow most words, and mean a place then. These verbs are one word with them. */
const WITH_IN_OR_ON = /^(?:log|sign|check|plug|add|opt|clock|built)$/

/** Verbs and their particles as one word: `backup` for "backing up", `login` for "logged in". */
export const compoundsOf = (words: readonly { folded: string; stem: string }[]): Word[] =>
  words.flatMap(({ folded: particle }, at) => {
    const verb = words[at - 1]
    if (verb === undefined || !PARTICLES.test(particle) || isStopword(verb.folded)) return []
    if (/^[io]n$/.test(particle) && !WITH_IN_OR_ON.test(verb.stem)) return []
    return [...new Set([verb.stem, verb.folded])].map((written) => {
      const folded = written + particle
      return { raw: folded, folded, stem: stemOf(folded), isCompound: true as const }
    })
  })

const list = (words: string): (() => ReadonlySet<string>) => once(() => new Set(words.split(' ').map(fold)))

const STOPWORDS = list(
  'a about above after again against all also am an and any are aren arent as at be because been before being ' +
    'below between both but by can cant cannot could couldnt did didnt do does doesnt doing dont down during each ' +
    'either else ever every few for from further get gets give given go had has have having he her here hers him his ' +
    'how i if im in into is isnt it its itself just let lets like made make makes many may me might more most much ' +
    'must my need no nor not now of off on once one ones only or other others our out over own please same say she ' +
    'should shouldnt so some such tell than thanks that thats the their theirs them then there theres these they ' +
    'this those through to too under until up upon us use used using very was wasnt way we were what whats when ' +
    'where which while who whom whose why will with within without wont would you your yours ' +
    // Japanese, Chinese and Thai: particles, endings and words that ask.
    'は が の を に で と も へ や か から まで より です ます でした ました ません ない です か ね よ する した して し される れる いる ある あり ' +
    'なる こと もの これ それ あれ この その あの ここ そこ どこ いつ 何 なに なん どう どの どれ だれ 誰 なぜ いくら ください 教え て た だ な い き てい て でき できる 何か ' +
    '的 了 吗 呢 吧 是 在 和 与 我 你 您 他 她 它 们 我们 你们 这 那 这个 那个 什么 怎么 怎样 如何 为什么 哪里 哪个 哪些 谁 多少 几 请 请问 有 没有 要 会 能 可以 不 ' +
    '嗎 麼 什麼 這 個 个 ที่ และ ของ คือ เป็น มี ได้ ไหม หรือ อะไร ไร เท่าไร เท่าไหร่ อย่างไร ยังไง ทำไม เมื่อไร เมื่อไหร่ ใคร ครับ ค่ะ คะ จะ ให้ ใน กับ ก็ นี้ นั้น ต้อง',
)

/** Whether a folded word is only grammar and says nothing about the subject. */
export const isStopword = (folded: string): boolean => STOPWORDS().has(folded)

/** Words that phrase a question, besides the stopwords. They seldom occur in its answer. */
const ASKING = list(
  'describe explain define definition difference discuss find know list main mean meaning name show talk tell ' +
    'think understand want wonder work works happen happens kind kinds sort type types example examples ' +
    'wat wut waht whta hwo pls plz',
)

/** Whether a word says something about a subject. */
export const isContent = (word: Word): boolean => !isStopword(word.folded)

/** Whether a word says something about the subject of a question. */
export const isTopical = (word: Word): boolean => isContent(word) && !ASKING().has(word.folded)

/** The distinct stems of a text's words, without stopwords. */
export function contentStems(text: string): Set<string> {
  const stems = new Set<string>()
  for (const word of writtenWords(text)) {
    const folded = fold(word)
    if (!isStopword(folded)) stems.add(stemOf(folded))
  }
  return stems
}
