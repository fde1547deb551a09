/**
 * Rewrites a follow-up to stand alone, without a language model: it puts back what the follow-up points at.
 *
 * One pass over the earlier questions finds what the talk is about. That replaces a pronoun. A question without a
 * subject ("What are the symptoms?", "What about films from 1995?") is joined with it. A question that says enough
 * is returned unchanged.
 */
import { regExp } from '../../lib/once'
import type { ChatMessage } from '../language-model'
import { wordsOf } from '../words'
import { asksAbout } from './language'
import { answeredName, namesSubject, type Phrase, phrasesOf } from './phrases'
import { ASKING_WORD, AUXILIARY } from './question'
import { smallTalk } from './small-talk'

const PRONOUN = /\b(it|its|they|them|their|theirs|he|him|his|she|her|hers)\b/i
const POINTING =
  /\b(this|that|these|those|ones?|here|former|latter|same|such|others?|another)\b|(?<!\b(?:is|are|was|were) )\bthere\W*$/i
const ELLIPTIC =
  /^\s*(?:\w+\. )?((and |so |ok |but )*(what|how) about\b|and\b|or\b|but\b|und\b|et\b|\u00bf ?y\b|y (?:a|al|con|de|del|el|en|la|las|los|para|por|qu\u00e9|si|sin)\b|why\b\W*$|how so\b|how come\b|also\b|else\b)/i

const BEGINS_QUESTION = new RegExp(`^(?:${ASKING_WORD}|${AUXILIARY}|was|were|has|have|must)$`)
const LONGEST_FRAGMENT = 7

/** "Outside the US too?" asks whether the same holds. */
function asksForSame(question: string): boolean {
  const words = wordsOf(question).map(({ folded }) => folded)
  const end = words.slice(-2).join(' ')
  return (
    /(?: |^)(?:too|also|either)$|^as well$/.test(end) &&
    words.length <= LONGEST_FRAGMENT &&
    !BEGINS_QUESTION.test(words[0]!)
  )
}

// "Is there a cure?", "those who", "it is true that" point at nothing. After "can", "is" and the like, "that" is a
// subject: "Can that be undone?"
const EMPTY_POINTER =
  /\b(those|ones?|that) (who|of|with)\b|\b(?!(?:can|could|is|was|are|were|does|do|did|will|would|should|has|had|may|might|must|about)\b)\w+ that\b(?!\W*$)|\bit (is|was) (true|possible|necessary)\b/gi

/** "Who" and "which" ask for a name, and the answer to them gives it. */
const ASKS_FOR_NAME =
  /\b(who|which|whom)\b|\bwhat (film|movie|book|company|person|country|city|product|song|team|page)\b/i

/**
 * @param history the conversation so far, oldest first
 * @returns the question, standing alone
 */
export function standalone(question: string, history: ChatMessage[]): string {
  if (smallTalk(question) !== undefined || asksAbout(question)) return question
  const last = lastAsked(history)
  const again = askedAgain(question, last?.text)
  return last && again !== undefined ? withTopic(again, last.earlier) : withTopic(question, history)
}

/** Puts what a question points at or leaves out into it. */
function withTopic(question: string, history: ChatMessage[]): string {
  const talk = topicOf(history)
  if (talk.topic.length === 0 || !needsContext(question, talk)) return question
  const own = new Set(wordsOf(question).map((word) => word.stem))
  const isNew = (phrase: Phrase) => !phrase.stems.every((stem) => own.has(stem))
  const elliptic = (ELLIPTIC.test(question) || asksForSame(question)) && !PRONOUN.test(question)
  const [present, ...further] = talk.topic
  const behind = [...further, ...talk.answered]
  // The first topic frames the conversation, so it says more than the topics in between.
  const pointed = elliptic ? [...talk.last, ...talk.theme] : [present!, ...talk.theme, ...behind]
  const subject = (asksForOtherKind(question) ? pointed.map(kindOf) : pointed).filter(isNew)
  return subject.length === 0 ? question : insert(question, unrepeated(subject), room(question))
}

const PREPOSITION = 'on|in|at|for|from|to|of|with|by|about'
const OTHER_NAME = regExp(
  String.raw`^\W*(?:(?:[Aa]nd|[Oo]r|[Bb]ut|[Oo]k|[Ss]o|[Tt]hen) )*(?:(?:[Ww]hat|[Hh]ow) about )?((?:${PREPOSITION}) )?` +
    String.raw`(?:the )?(\p{Lu}[\p{L}\p{N}.'\u2019-]*(?: \p{Lu}[\p{L}\p{N}.'\u2019-]*)*)\W*$`,
  'u',
)
const AFTER_PREPOSITION = regExp(String.raw`\b(?:${PREPOSITION}) (?:the )?$`, 'i')

/**
 * Asks the question before about another name: "Which supplier delivers Tofu?", "And Ikura?". With a preposition
 * ("And in Rome?") the earlier name needs one too: "How do I install Parley?", "And on Windows?" does not ask how
 * to install Windows. Returns undefined if the question is not just a name, or if the one before does not have
 * exactly one name to replace.
 */
function askedAgain(question: string, before: string | undefined): string | undefined {
  if (before === undefined) return undefined
  const year = yearAsked(question, before)
  if (year !== undefined) return before.replace(YEAR(), year)
  const there = placeIn(question)
  const known = placeIn(before)
  if (
    there?.kept.every((word) => ONLY_GOES_ON.test(word)) &&
    !POINTER.test(there.place) &&
    there.preposition.toLowerCase() === known?.preposition.toLowerCase()
  )
    return `${known.kept.join(' ')} ${known.preposition} ${there.place}${known.end}`
  const [, preposition, name] = OTHER_NAME().exec(question) ?? []
  const names = phrasesOf(before).filter(({ proper }) => proper)
  if (name === undefined || names.length !== 1) return undefined
  const named = NAME_WITHIN().exec(names[0]!.text)?.[0]
  const parts = named === undefined ? [] : before.split(named)
  if (parts.length !== 2 || (preposition && !AFTER_PREPOSITION().test(parts[0]!))) return undefined
  return parts.join(name)
}

const AT = new RegExp(`^(?:${PREPOSITION}|f\u00fcr|im|am|bei|mit|pour|en|avec|para|con)$`, 'i')
const ONLY_GOES_ON = /^\W?(?:and|or|but|so|what|how|about|und|et|y)$/i
const POINTER = /^(?:it|them|him|her|this|that|these|those|there|here|ones?)$/i
const MOST_WORDS_THERE = 4

/** The preposition at the end of a question with what follows it: `on` and `Arch Linux` in "And on Arch Linux?" */
function placeIn(
  question: string,
): { kept: string[]; preposition: string; place: string; end: string } | undefined {
  const end = /[\s?!.]{0,4}$/.exec(question)![0]
  const words = question.slice(0, question.length - end.length).split(' ')
  const at = words.findLastIndex((word) => AT.test(word))
  const there = words.slice(at + 1)
  if (at < 1 || there.length === 0 || there.length > MOST_WORDS_THERE || /[,;:()]/.test(there.join(' ')))
    return undefined
  return { kept: words.slice(0, at), preposition: words[at]!, place: there.join(' '), end }
}

/** follow-ups of follow-ups that are traced back */
const MOST_FOLLOWED = 5

/**
 * The last question, asked in full ("How do I install it on Ubuntu?", "And on Arch Linux?"), and what was said before it was first
 * asked, which says what "it" is.
 */
function lastAsked(
  history: ChatMessage[],
  most = MOST_FOLLOWED,
): { text: string; earlier: ChatMessage[] } | undefined {
  const at = history.findLastIndex(({ role, content }) => role === 'user' && smallTalk(content) === undefined)
  if (at < 0) return undefined
  const { content } = history[at]!
  const earlier = history.slice(0, at)
  const before = most > 0 ? lastAsked(earlier, most - 1) : undefined
  const again = askedAgain(content, before?.text)
  return before && again !== undefined ? { ...before, text: again } : { text: content, earlier }
}

const YEAR = regExp(String.raw`(?<![\p{L}\p{N}.])(?:1[5-9]|20)\d\d(?![\p{L}\p{N}]|\.\d)`, 'gu')
const BEFORE_YEAR =
  /^\W?(?:(?:and|or|but|so|what about|how about|und|et|y) )*(?:(?:in|im|en) )?(?:the |el |l.)?/
const NEAR_YEAR =
  /^(?:(year before|previous year|(?:jahr )?davor|ann.e (?:pr.c.dente|d.avant)|a.o anterior)|year after|next year|(?:jahr )?danach|ann.e (?:suivante|d.apr.s)|a.o siguiente)$/

/** The year that is asked for in the place of the one year of the question before: "And in 2022?", "And the year before?" */
function yearAsked(question: string, before: string): string | undefined {
  const [known, ...others] = before.match(YEAR()) ?? []
  if (known === undefined || others.length > 0) return undefined
  const asked = question
    .toLowerCase()
    .replace(/[\s?!.]{0,4}$/, '')
    .replace(BEFORE_YEAR, '')
  if (/^\d{4}$/.test(asked)) return asked
  const near = NEAR_YEAR.exec(asked)
  return near ? `${+known + (near[1] ? -1 : 1)}` : undefined
}

const JUST_NAMED = regExp(
  String.raw`^\W*(?:(?:(?:and|or|but|ok|so|then) )+(?:(?:what|how) about )?|(?:what|how) about )` +
    String.raw`(?:the |our |my )?(?!(?:${PREPOSITION})\b)([\p{Ll}\p{N}-]+(?: [\p{Ll}\p{N}-]+)?)\W*$`,
  'iu',
)

const LONGEST_NAMED = 80

/** "And vision?" after "Who provides the dental insurance?" asks about another insurance. */
function asksForOtherKind(question: string): boolean {
  if (question.length > LONGEST_NAMED) return false
  const named = JUST_NAMED().exec(question)?.[1]
  return named !== undefined && wordsOf(named).some(namesSubject)
}

/** Words that many kinds of a thing share. Those of "climate change" and "ice cream" are nothing without the word before. */
const HAS_KINDS =
  /^(?:insurances?|coverage|polic(?:y|ies)|plans?|leaves?|days|fees?|tax(?:es)?|tickets?|pass(?:es)?|visas?|memberships?|subscriptions?|licen[cs]es?|discounts?|allowances?|deductibles?|copays?|benefits?)$/i

/** What a phrase is a kind of: the insurance of the dental insurance. */
const kindOf = (phrase: Phrase): Phrase =>
  phrase.proper || phrase.stems.length < 2 || !HAS_KINDS.test(phrase.text.split(' ').at(-1)!)
    ? phrase
    : { ...phrase, text: phrase.text.split(' ').at(-1)!, stems: phrase.stems.slice(-1) }

const NAME_WITHIN = regExp(String.raw`\p{Lu}\S*(?: \p{Lu}\S*)*`, 'u')

/** Phrases put into a question. Earlier topics help the search as well. */
const MOST = 8
const FEWEST = 2
/** phrases of the talk that are remembered */
const KEPT = 6

interface Talk {
  /** what the talk is about, most recent first */
  topic: Phrase[]
  /** the first phrase of the first question */
  theme: Phrase[]
  /** all phrases of the last question */
  last: Phrase[]
  /** what the last answer is about, if it begins with a name */
  answered: Phrase[]
}

function topicOf(history: ChatMessage[]): Talk {
  const talk: Talk = { topic: [], theme: [], last: [], answered: [] }
  history.forEach(({ role, content }, index) => {
    if (role !== 'user' || smallTalk(content) !== undefined) return
    const phrases = phrasesOf(content)
    if (talk.theme.length === 0) talk.theme = phrases.slice(0, 1)
    if (talk.topic.length === 0) talk.topic = phrases
    else if (PRONOUN.test(content) || !wordsOf(content).some(namesSubject)) {
      // The subject is the same as before: append the phrases asked about it.
      talk.topic = unrepeated([...talk.topic, ...phrases])
    } else if (phrases.length > 0) {
      if (asksForOtherKind(content))
        for (const known of ['topic', 'theme'] as const) talk[known] = talk[known].map(kindOf)
      talk.topic = unrepeated([...phrases, ...talk.topic])
    }
    talk.last = [...phrases, ...verbsOf(content, phrases)]
    const reply = history[index + 1]
    const name = reply?.role === 'assistant' ? answeredName(reply.content) : undefined
    const named = name === undefined ? [] : phrasesOf(`about ${name}`)
    if (ASKS_FOR_NAME.test(content)) talk.topic = unrepeated([...named, ...talk.topic])
    // A single capitalised word is as likely the start of a sentence as a name.
    talk.answered = named.filter(({ stems }) => stems.length > 1)
    talk.topic = talk.topic.slice(0, KEPT)
  })
  return talk
}

/** The question's words outside its phrases, such as its verb, each as a phrase. */
function verbsOf(question: string, phrases: Phrase[]): Phrase[] {
  const said = new Set(phrases.flatMap(({ stems }) => stems))
  return wordsOf(question)
    .filter((word) => namesSubject(word) && !said.has(word.stem))
    .map(({ raw, stem }) => ({ text: raw, stems: [stem], proper: false }))
}

/** Removes phrases whose words all occur in an earlier one. A longer form replaces a shorter. */
function unrepeated(phrases: Phrase[]): Phrase[] {
  const kept: Phrase[] = []
  for (const phrase of phrases) {
    const same = kept.findIndex((other) => within(phrase, other) || within(other, phrase))
    if (same < 0) kept.push(phrase)
    else if (phrase.stems.length > kept[same]!.stems.length) kept[same] = phrase
  }
  return kept
}

const within = (a: Phrase, b: Phrase): boolean => a.stems.every((stem) => b.stems.includes(stem))

/** Whether a question points at something said before, or names no subject of its own. */
function needsContext(question: string, talk: Talk): boolean {
  if (ELLIPTIC.test(question) || asksForSame(question) || pointsBack(question.replace(EMPTY_POINTER, '')))
    return true
  if (POINTING.test(question.replace(EMPTY_POINTER, ''))) return true
  if (!wordsOf(question).some(namesSubject)) return true
  return leavesOut(question) || talk.topic.some((phrase) => isShortened(question, phrase))
}

/**
 * Whether a question has a pronoun whose subject it has not named before: "What is a millet and why was it
 * important?" names it.
 */
function pointsBack(question: string): boolean {
  const pronoun = PRONOUN.exec(question)
  if (!pronoun) return false
  const [named] = /^.*\band\b/is.exec(question.slice(0, pronoun.index)) ?? []
  return named === undefined || !wordsOf(named).some(namesSubject)
}

const NAMED = regExp(String.raw`(?<=\S\s{1,40}["'\u201c(]?)\p{Lu}[\p{L}\p{N}]`, 'u')
const DEFINITE =
  /\b(?:the|some|typical|more|most|best|good|similar|overall|related|specific|needed|required|available)\b/i
/** Phrases that say whose: "the history of glass", "the best way to freeze bread". */
const COMPLETE =
  /\bthe (?:\w+ ){1,3}(?:of|for|in|on|between|to|with|from|by|at) (?!the\b)\w+ \w+|\b(?:tell|talk)\b[^.?!]{0,40}\babout\b/i

/** Whether a question mentions "the role" or "a typical round" without saying of what, and names nobody. */
const leavesOut = (question: string): boolean =>
  DEFINITE.test(question) &&
  !NAMED().test(question) &&
  !COMPLETE.test(question) &&
  // "How long was the reef filmed?" asks for a measure of something that it names.
  wordsOf(question).filter(namesSubject).length <= (/^\W*how\b/i.test(question) ? 1 : 2)

/** "the College" stands for the US Electoral College if that was mentioned before. */
const isShortened = (question: string, phrase: Phrase): boolean => {
  const head = phrase.stems.at(-1)!
  const own = wordsOf(question)
  const at = own.findIndex((word) => word.stem === head)
  // A question with this many words of its own is about something else with the same name.
  if (own.filter(namesSubject).length > 3) return false
  return phrase.stems.length > 1 && at > 0 && own[at - 1]!.folded === 'the'
}

const POSSESSIVE = regExp(String.raw`\b(its|their|his)\b|\bher(?=\s+\p{Ll})`, 'iu')
const SUBJECT = /\b(it|they|them|he|him|she|her)\b/i

function insert(question: string, subject: Phrase[], most: number): string {
  const pronoun = PRONOUN.exec(question)?.[0].toLowerCase()
  const referent = pronoun ? referentOf(pronoun, subject) : undefined
  let replaced = question
  if (referent) {
    replaced = POSSESSIVE().test(question)
      ? question.replace(POSSESSIVE(), possessive(referent.text))
      : question.replace(SUBJECT, referent.text)
  }
  const rest = subject.filter((phrase) => phrase !== referent).slice(0, referent ? most - 1 : most)
  if (rest.length === 0) return replaced
  const end = replaced.search(/(?<![\s.!?])[\s.!?]*$/)
  return `${replaced.slice(0, end)} (${rest.map(({ text }) => text).join(', ')})${replaced.slice(end)}`
}

/** The phrase that agrees with the pronoun: a name for "he", a plural for "they", else the first. */
function referentOf(pronoun: string, subject: Phrase[]): Phrase {
  const many = (phrase: Phrase) => /[^s]s$/.test(phrase.text)
  if (/^(he|him|his|she|her|hers)$/.test(pronoun)) return subject.find(({ proper }) => proper) ?? subject[0]!
  if (/^(they|them|their|theirs)$/.test(pronoun)) return subject.find(many) ?? subject[0]!
  return subject.find((phrase) => !many(phrase)) ?? subject[0]!
}

const possessive = (phrase: string): string => (phrase.endsWith('s') ? `${phrase}'` : `${phrase}'s`)

/** How many phrases to put in: the more a question says itself, the fewer. */
const room = (question: string): number =>
  Math.max(FEWEST, MOST - wordsOf(question).filter(namesSubject).length)
