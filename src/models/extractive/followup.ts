/**
 * A follow-up made to stand alone, without a language model: what it points at is put back in.
 *
 * The questions so far are walked through once, to know what the talk is about by now. A pronoun is replaced
 * by that; a question that leaves its subject out ("What are the symptoms?", "What about films from 1995?")
 * is joined with it. A question that says enough by itself is returned as it came.
 */
import { regExp } from '../../once'
import type { ChatMessage } from '../language-model'
import { wordsOf } from '../words'
import { answeredName, namesSubject, type Phrase, phrasesOf } from './phrases'
import { smallTalk } from './small-talk'

const PRONOUN = /\b(it|its|they|them|their|theirs|he|him|his|she|her|hers)\b/i
const POINTING =
  /\b(this|that|these|those|ones?|here|former|latter|same|such|others?|another)\b|(?<!\b(?:is|are|was|were) )\bthere\W*$/i
const ELLIPTIC =
  /^\s*(?:\w+\. )?((and |so |ok |but )*(what|how) about\b|and\b|or\b|but\b|why\b\W*$|how so\b|how come\b|also\b|else\b)/i

// "Is there a cure?", "those who", "it is true that": nothing is pointed at.
// After "can", "is" and the like "that" is a subject: "Can that be undone?"
const EMPTY_POINTER =
  /\b(those|ones?|that) (who|of|with)\b|\b(?!(?:can|could|is|was|are|were|does|do|did|will|would|should|has|had|may|might|must|about)\b)\w+ that\b(?!\W*$)|\bit (is|was) (true|possible|necessary)\b/gi

/** What is asked for by "who" and "which" is named in the answer. */
const ASKS_FOR_NAME =
  /\b(who|which|whom)\b|\bwhat (film|movie|book|company|person|country|city|product|song|team|page)\b/i

/**
 * @param history the conversation so far, oldest first
 * @returns the question, standing alone
 */
export function standalone(question: string, history: ChatMessage[]): string {
  if (smallTalk(question) !== undefined) return question
  const asked = history.findLast(({ role, content }) => role === 'user' && smallTalk(content) === undefined)
  const again = asked && askedAgain(question, asked.content)
  if (again !== undefined) return again
  const talk = topicOf(history)
  if (talk.topic.length === 0 || !needsContext(question, talk)) return question
  const own = new Set(wordsOf(question).map((word) => word.stem))
  const isNew = (phrase: Phrase) => !phrase.stems.every((stem) => own.has(stem))
  const elliptic = ELLIPTIC.test(question) && !PRONOUN.test(question)
  const [present, ...further] = talk.topic
  const behind = [...further, ...talk.answered]
  // What the talk began with is its frame, and says more than what it passed by on the way.
  const subject = (elliptic ? [...talk.last, ...talk.theme] : [present!, ...talk.theme, ...behind]).filter(
    isNew,
  )
  return subject.length === 0 ? question : insert(question, unrepeated(subject), room(question))
}

const PREPOSITION = 'on|in|at|for|from|to|of|with|by|about'
const OTHER_NAME = regExp(
  String.raw`^\W*(?:(?:[Aa]nd|[Oo]r|[Bb]ut|[Oo]k|[Ss]o|[Tt]hen) )*(?:(?:[Ww]hat|[Hh]ow) about )?((?:${PREPOSITION}) )?` +
    String.raw`(?:the )?(\p{Lu}[\p{L}\p{N}.'’-]*(?: \p{Lu}[\p{L}\p{N}.'’-]*)*)\W*$`,
  'u',
)
const AFTER_PREPOSITION = regExp(String.raw`\b(?:${PREPOSITION}) (?:the )?$`, 'i')

/**
 * The question before, asked of another name: "Which supplier delivers Tofu?", "And Ikura?". With a preposition ("And in
 * Rome?") the name before needs one too: "How do I install Parley?", "And on Windows?" does not ask to install Windows.
 * Undefined where the question is no name alone, or the one before does not have exactly one name to replace.
 */
function askedAgain(question: string, before: string): string | undefined {
  const [, preposition, name] = OTHER_NAME().exec(question) ?? []
  const names = phrasesOf(before).filter(({ proper }) => proper)
  if (name === undefined || names.length !== 1) return undefined
  const known = NAME_WITHIN().exec(names[0]!.text)?.[0]
  const parts = known === undefined ? [] : before.split(known)
  if (parts.length !== 2 || (preposition && !AFTER_PREPOSITION().test(parts[0]!))) return undefined
  return parts.join(name)
}

const NAME_WITHIN = regExp(String.raw`\p{Lu}\S*(?: \p{Lu}\S*)*`, 'u')

/** Phrases that are put in: a search is helped by what the talk was about before, too. */
const MOST = 8
const FEWEST = 2
/** phrases of the talk that are kept in mind */
const KEPT = 6

interface Talk {
  /** what the talk is about, the most present first */
  topic: Phrase[]
  /** the first phrase of the first question */
  theme: Phrase[]
  /** all phrases of the last question */
  last: Phrase[]
  /** what the last answer is about, where it begins with a name */
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
      // Still the same subject; what is asked of it is kept behind it.
      talk.topic = unrepeated([...talk.topic, ...phrases])
    } else if (phrases.length > 0) talk.topic = unrepeated([...phrases, ...talk.topic])
    talk.last = [...phrases, ...verbsOf(content, phrases)]
    const reply = history[index + 1]
    const name = reply?.role === 'assistant' ? answeredName(reply.content) : undefined
    const named = name === undefined ? [] : phrasesOf(`about ${name}`)
    if (ASKS_FOR_NAME.test(content)) talk.topic = unrepeated([...named, ...talk.topic])
    // One capital alone begins a sentence as often as a name.
    talk.answered = named.filter(({ stems }) => stems.length > 1)
    talk.topic = talk.topic.slice(0, KEPT)
  })
  return talk
}

/** The words that a question says beside its phrases, such as its verb: each a phrase of its own. */
function verbsOf(question: string, phrases: Phrase[]): Phrase[] {
  const said = new Set(phrases.flatMap(({ stems }) => stems))
  return wordsOf(question)
    .filter((word) => namesSubject(word) && !said.has(word.stem))
    .map(({ raw, stem }) => ({ text: raw, stems: [stem], proper: false }))
}

/** Without phrases whose words are all in an earlier one; a longer form takes the place of a shorter. */
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

/** Points at something said before, or names no subject of its own. */
function needsContext(question: string, talk: Talk): boolean {
  if (ELLIPTIC.test(question) || pointsBack(question.replace(EMPTY_POINTER, ''))) return true
  if (POINTING.test(question.replace(EMPTY_POINTER, ''))) return true
  if (!wordsOf(question).some(namesSubject)) return true
  return leavesOut(question) || talk.topic.some((phrase) => isShortened(question, phrase))
}

/** Has a pronoun whose subject the question has not named before it: "What is a millet and why was it important?" has. */
function pointsBack(question: string): boolean {
  const pronoun = PRONOUN.exec(question)
  if (!pronoun) return false
  const [named] = /^.*\band\b/is.exec(question.slice(0, pronoun.index)) ?? []
  return named === undefined || !wordsOf(named).some(namesSubject)
}

const NAMED = regExp(String.raw`(?<=\S\s+["'“(]?)\p{Lu}[\p{L}\p{N}]`, 'u')
const DEFINITE =
  /\b(?:the|some|typical|more|most|best|good|similar|overall|related|specific|needed|required|available)\b/i
/** Says whose: "the history of glass", "the best way to freeze bread". */
const COMPLETE =
  /\bthe (?:\w+ ){1,3}(?:of|for|in|on|between|to|with|from|by|at) (?!the\b)\w+ \w+|\b(?:tell|talk)\b[^.?!]{0,40}\babout\b/i

/** Speaks of "the role" or "a typical round" without saying of what, and names nobody. */
const leavesOut = (question: string): boolean =>
  DEFINITE.test(question) &&
  !NAMED().test(question) &&
  !COMPLETE.test(question) &&
  // "How long was the reef filmed?" asks for a measure of something that it names.
  wordsOf(question).filter(namesSubject).length <= (/^\W*how\b/i.test(question) ? 1 : 2)

/** "the College", where the talk is about the US Electoral College. */
const isShortened = (question: string, phrase: Phrase): boolean => {
  const head = phrase.stems.at(-1)!
  const own = wordsOf(question)
  const at = own.findIndex((word) => word.stem === head)
  // Who says as much as this by themselves speak of something else that is called the same.
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

/** The phrase that agrees with the pronoun: a name for "he", one of many for "they"; else the first. */
function referentOf(pronoun: string, subject: Phrase[]): Phrase {
  const many = (phrase: Phrase) => /[^s]s$/.test(phrase.text)
  if (/^(he|him|his|she|her|hers)$/.test(pronoun)) return subject.find(({ proper }) => proper) ?? subject[0]!
  if (/^(they|them|their|theirs)$/.test(pronoun)) return subject.find(many) ?? subject[0]!
  return subject.find((phrase) => !many(phrase)) ?? subject[0]!
}

const possessive = (phrase: string): string => (phrase.endsWith('s') ? `${phrase}'` : `${phrase}'s`)

/** How many phrases are put in: the fewer the more a question says by itself. */
const room = (question: string): number =>
  Math.max(FEWEST, MOST - wordsOf(question).filter(namesSubject).length)
