/** What a question asks for, and what an answer to it looks like. */
import { once, regExp } from '../../lib/once'
import { isContent, isTopical, type Word, wordsOf } from '../words'
import { ENGLISH, type Language, languageOf, wordsIn } from './language'

export type Kind = (typeof KINDS)[number][0] | 'other'

const KINDS = [
  ['who', /\b(who|whom|whose)\b/i],
  // "When should I use ...?" and "What happens when I ...?" ask for no time.
  [
    'when',
    /^(?!\W*(?:what|how|which|who|why|where)\b)\W*(?:\w+\W+){0,4}when\b(?! should\b)|[,.;:!?] when (?:is|are|was|were|do|does|did|can|will)\b|\b(what|which) (year|date|day|month|decade|century|time)\b|\bhow long ago\b/i,
  ],
  ['often', /\bhow (often|frequently|regularly)\b/i],
  // "How much does it weigh?" asks for no money.
  ['price', /\bhow much (?:do|does|did|would|will)\b.*\bcosts?\b|\bhow much (?:is|are) (?:an?|the|your)\b/i],
  ['version', /\b(?:which|what) (?:\S+ ){0,3}versions?\b/i],
  [
    'count',
    /\bhow (many|much|long|old|far|tall|big|large|high|fast|quickly|soon|deep|wide)\b|\bwhat (percentage|number|amount|age|size)\b|\bwhat(?:'?s| is| are) (?:the |my |our )?(?:\w+ )?(?:max|maximum|min|minimum|limit|size|price|cost|fee|rate|copay|deductible)\b/i,
  ],
  ['where', /\bwhere\b|\b(what|which) (city|country|place|town|state|location)\b/i],
  ['why', /\bwhy\b|\bwhat (causes?|caused|is the (reason|purpose))\b|\bhow come\b/i],
  [
    'difference',
    /\bdifferences? (?:between|from|to)\b|\bdiffers? from\b|\bdifferent (?:from|than|between)\b|\b(?:vs|versus|compared? (?:to|with))\b/i,
  ],
  ['how', /\bhow (do|does|did|can|to|should|would|is|are)\b/i],
  [
    'definition',
    /^\s*(?:so,? )?(what|who)(?:'s| is| are| was| were| does) (?:an? |the )?[^,?]{1,60}(?: mean)?\s*\??\s*$|^\s*(define|describe|explain)\b/i,
  ],
] as const

const list = (words: string): (() => ReadonlySet<string>) => once(() => new Set(words.split(' ')))

/** Words that can be left out of a question. The others say what it asks for. */
const VAGUE = list(
  'something someone somebody anything anyone anybody everything everyone everybody nothing nobody anywhere somewhere ' +
    'somehow thing things stuff way ways possible possibly able go goes going went want wants wanted need needs needed see ' +
    'look looks looking put come comes came take takes taken back actually really right much lot lots still bit kinda try ' +
    'trying tried help please best good better two people person day today time know idea case start stop turn keep',
)

export const isVague = ({ folded }: Word): boolean => VAGUE().has(folded)

/** Asks for something: with a question word, a verb before its subject, or an imperative. */
const ASKS =
  /\b(?:what|whats|which|who|whom|whose|when|where|why|how|hows)\b|^\s*(?:(?:please|and|so|but|or|ok) )*(?:can|could|do|does|did|is|are|was|were|will|would|should|may|must|has|have|am|any|tell|show|explain|list|give|describe|define|name|find)\b/i
/** Characters. A longer question may contain more than it asks. */
const CHATTY = 90

/**
 * In a long question, returns the clauses that ask something, if they say what about: "I have looked for hours and
 * my boss is angry. How long is history kept?" asks how long history is kept.
 */
function askedIn(text: string): string {
  if (text.length <= CHATTY) return text
  const clauses = text.split(/(?<=[.!?;,:])\s+|\n+| [-\u2013\u2014] /).filter((clause) => ASKS.test(clause))
  const asked = clauses.join(' ')
  return wordsOf(asked).filter((word) => isTopical(word) && !isVague(word)).length >= 2 ? asked : text
}

export const ASKING_WORD = 'how|what|which|who|when|where|why'
export const AUXILIARY = 'is|are|do|does|did|can|could|may|will|should'
const NEXT_QUESTION = new RegExp(`\\? (?=\\S)|,? and (?:also )?(?=(?:${ASKING_WORD})\\b)`, 'i')
/** "Do you deliver and are you open?" is two, "Which bread keeps and is made of rye?" one. */
const NEXT_OF_YES_OR_NO = new RegExp(
  `\\? (?=\\S)|,? and (?:also )?(?=(?:${ASKING_WORD}|${AUXILIARY})\\b)`,
  'i',
)
const YES_OR_NO = new RegExp(`^ ?(?:${AUXILIARY})\\b`, 'i')
/** Words that point at another part of the question. */
const POINTS_BACK =
  /\b(?:it|its|they|them|their|theirs|he|him|his|she|her|hers|this|that|these|those|there|then|ones?|so|same|else)\b/i
/** A text of more parts is one: each is scored against all documents. */
const MOST_QUESTIONS = 3

/**
 * The questions of a text that asks several: "How much is a baguette and when do you open?" Each must stand alone: "what is it and
 * how does it work" is one question.
 */
export function questionsIn(text: string): string[] {
  const flat = text.replace(/\s+/g, ' ')
  const parts = flat.split(YES_OR_NO.test(flat) ? NEXT_OF_YES_OR_NO : NEXT_QUESTION)
  if (parts.length < 2 || parts.length > MOST_QUESTIONS) return [text]
  const isQuestion = (part: string) =>
    ASKS.test(part) && wordsOf(part).some((word) => isTopical(word) && !isVague(word))
  return parts.every(isQuestion) && !parts.slice(1).some((part) => POINTS_BACK.test(part)) ? parts : [text]
}

export type Question = ReturnType<typeof readQuestion>

/** @param language default: the one that its grammar shows */
export function readQuestion(given: string, language = languageOf(wordsOf(given))) {
  const text = askedIn(given)
  const words = wordsIn(language, text)
  // "What does it mean?" has no topical word. Then the weaker words must do.
  const topical = words.filter((word) => isTopical(word) && !language?.grammar.has(word.folded))
  const chosen = [topical.filter((word) => !isVague(word)), topical, words.filter(isContent)].find(
    ({ length }) => length > 0,
  )
  const kind: Kind = KINDS.find(([, pattern]) => pattern.test(text))?.[0] ?? 'other'
  const all = [...new Map(chosen?.map((word) => [word.stem, word])).values()]
  // "Node 22 or later" answers as well as "version 22 of Node".
  const others = kind === 'version' ? all.filter(({ folded }) => !/^versions?$/.test(folded)) : all
  const terms = others.length > 0 ? others : all
  // German nouns have a capital letter, so one does not make a name.
  const names = language?.locale === 'de' ? [] : namesIn(text, language)
  return {
    /** as asked, without what was said around it */
    text,
    /** the words to look for, each once, in the question's order */
    terms,
    kind,
    /** stems of words capitalised inside the question */
    names: new Set(names),
    /** undefined for English */
    language,
    /** what is said around an answer, in the question's language */
    says: language?.says ?? ENGLISH,
  }
}

const NAMES = regExp(String.raw`\p{Lu}[\p{L}\p{N}'\u2019-]*(?: \p{Lu}[\p{L}\p{N}'\u2019-]*)*`, 'gu')

/** Capitalised words after the first word, as stems. Days and months name nobody. */
function namesIn(text: string, language: Language | undefined): string[] {
  const inside = text.replace(/^\s*\S+/, '')
  return (inside.match(NAMES()) ?? []).flatMap((name) =>
    wordsIn(language, name)
      .filter((word) => isTopical(word) && !MONTH.test(word.folded) && !WEEKDAY.test(word.folded))
      .map((word) => word.stem),
  )
}

const MONTH = /\b(january|february|march|april|may|june|july|august|september|october|november|december)\b/i

const WEEKDAY = /^(?:mon|tues|wednes|thurs|fri|satur|sun)days?$/

const CLOCK_TIME =
  /\b\d{1,2}:\d{2}\b|\b\d{1,2}(?:\.\d{2})? ?(?:[ap]\.?m\b|o.clock|uhr\b)|\b(?:noon|midnight|(?:mon|tues|wednes|thurs|fri|satur|sun)days?)\b/i
/** Questions that a code example can answer. */
export const wantsCode = ({ kind }: Question): boolean => kind === 'how' || kind === 'other'

/**
 * Whether a text can answer a question of this kind. "When", "how often" and "how many" need a time or a number, and a
 * comparison needs a word that sets one thing apart from another.
 */
export function hasLook(kind: Kind, sentence: string): boolean {
  switch (kind) {
    case 'when':
      return (
        /\b1\d{3}\b|\b20\d{2}\b|\b\d{1,2}(st|nd|rd|th) century\b/.test(sentence) ||
        MONTH.test(sentence) ||
        CLOCK_TIME.test(sentence) ||
        /\b(days?|weeks?|months?|years?|before|after|until|within)\b/i.test(sentence) ||
        /\b\d{1,2} (?:hours|o['\u2019]clock)\b/i.test(sentence)
      )
    case 'often':
      return /\b(daily|weekly|monthly|quarterly|annual(ly)?|yearly|hourly|once|twice|each|every|per) ?\b/i.test(
        sentence,
      )
    case 'count':
      return /\d|\b(one|two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand|million|half|percent|no limit|unlimited|forever|free)\b/i.test(
        sentence,
      )
    case 'price':
      return /[$\u20ac\u00a3\u00a5\u20b9] ?\d|\d ?(?:[$\u20ac\u00a3\u00a5\u20b9]|(?:usd|eur|gbp|chf|euros?|dollars?|pounds?|francs?|cents?)\b)|\d[.,]\d\d\b|\b(?:price|cost|fee)s?\W{1,3}\d|\b(?:free|no (?:charge|cost|fee))\b/i.test(
        sentence,
      )
    case 'version':
      return /\d/.test(sentence)
    case 'difference':
      return /\b(differen(ce|ces|t|tly)|differs?|unlike|whereas|compared|contrast|other hand|instead of|rather than|while)\b/i.test(
        sentence,
      )
    default:
      return true
  }
}
