/**
 * A follow-up made to stand alone, without a language model: what it points at is put back in.
 *
 * The subject of the earlier questions is their runs of topical words. A pronoun is replaced by it; an
 * elliptic question ("What about films from 1995?") is joined with it. A question that says enough by itself
 * is returned as it came.
 */
import type { ChatMessage } from '../language-model'
import { isContent, isTopical, STOPWORDS, wordsOf } from '../words'

const PRONOUN = /\b(it|its|they|them|their|theirs|he|him|his|she|her|hers)\b/i
const POINTING =
  /\b(this|that|these|those|there|one|ones|here|former|latter|same|such|other|another|others)\b/i
const ELLIPTIC = /^\s*(what|how) about\b|^\s*(and|or|but|why|how so|how come|so|also|else|then)\b/i

// "Is there a cure?", "those who", "it is true that": nothing is pointed at.
const EMPTY_POINTER =
  /\b(is|are|was|were|does|do) there\b|\bthere (is|are|was|were)\b|\b(those|one|ones|that) (who|of|with)\b|\b\w+ that\b/gi

/**
 * @param history the conversation so far, oldest first
 * @returns the question, standing alone
 */
export function standalone(question: string, history: ChatMessage[]): string {
  const asked = history.filter((message) => message.role === 'user').map((message) => message.content)
  if (asked.length === 0) return question
  const own = new Set(
    wordsOf(question)
      .filter(isContent)
      .map((word) => word.stem),
  )
  if (!needsContext(question)) return question
  const subject = subjectOf(asked).filter(
    (phrase) => !wordsOf(phrase).every((word) => own.has(word.stem) || STOPWORDS.has(word.folded)),
  )
  if (subject.length === 0) return question
  return insert(question, subject)
}

/** Points at something said before, or is too short to stand alone. */
function needsContext(question: string): boolean {
  if (ELLIPTIC.test(question) || PRONOUN.test(question.replace(/\bit (is|was) (true|possible)\b/gi, '')))
    return true
  if (POINTING.test(question.replace(EMPTY_POINTER, ''))) return true
  const topical = wordsOf(question).filter(isTopical)
  return topical.length < 2 && !topical.some((word) => /^\p{Lu}.+/u.test(word.raw))
}

/** Phrases that name what the questions were about, the telling ones first. */
function subjectOf(asked: string[]): string[] {
  const recent = asked.slice(-3).reverse()
  const phrases: string[] = []
  const seen = new Set<string>()
  for (const question of recent) {
    const fresh = phrasesOf(question).filter((phrase) => !seen.has(phrase.toLowerCase()))
    // A question that was itself a follow-up hands on to the one before it.
    for (const phrase of fresh) {
      seen.add(phrase.toLowerCase())
      phrases.push(phrase)
    }
    if (phrases.length > 0 && !needsContext(question)) break
  }
  return phrases.slice(0, 4)
}

/** Runs of words that say something; a small word between two of them does not break a run of capitals. */
function phrasesOf(question: string): string[] {
  const phrases: string[] = []
  let run: string[] = []
  const close = () => {
    if (run.length > 0) phrases.push(run.join(' '))
    run = []
  }
  let end = 0
  for (const match of question.matchAll(/[\p{L}\p{N}\p{M}]+(?:['’.-][\p{L}\p{N}]+)*/gu)) {
    if (/[,;:.!?()"]/.test(question.slice(end, match.index))) close()
    end = match.index + match[0].length
    const word = wordsOf(match[0])[0]
    if (word && isTopical(word)) run.push(match[0])
    else close()
  }
  close()
  return phrases.sort((a, b) => Number(/\p{Lu}/u.test(b)) - Number(/\p{Lu}/u.test(a)))
}

const POSSESSIVE = /\b(its|their|his)\b|\bher(?=\s+\p{Ll})/iu
const SUBJECT = /\b(it|they|them|he|him|she|her)\b/i

function insert(question: string, subject: string[]): string {
  const [first, ...others] = subject
  const replaced = question.match(POSSESSIVE)
    ? question.replace(POSSESSIVE, possessive(first!))
    : question.replace(SUBJECT, first!)
  const rest = replaced === question ? subject : others
  if (rest.length === 0) return replaced
  const [, body, mark] = /^(.*?)([\s.!?]*)$/s.exec(replaced)!
  return `${body} (${rest.join(', ')})${mark}`
}

const possessive = (phrase: string): string => (phrase.endsWith('s') ? `${phrase}'` : `${phrase}'s`)
