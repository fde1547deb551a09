/** Finds the phrases of a question: what it is about, not what it asks of it. */
import { once, regExp } from '../../lib/once'
import { isTopical, type Word, wordsOf } from '../words'

export interface Phrase {
  text: string
  stems: string[]
  /** true for a name: capitalised inside the sentence */
  proper: boolean
}

const list = (words: string): (() => ReadonlySet<string>) => once(() => new Set(words.split(' ')))

/**
 * Words that ask about a subject without naming one: "the symptoms", "main characters", "its role". A question of
 * only such words takes its subject from what was said before.
 */
const RELATIONAL = list(
  'main key new old good best better bad worst important common similar similarity similarities typical popular possible ' +
    'different differences famous large larger largest big bigger biggest small smallest long longest first last next ' +
    'early modern current recent average total whole own real true easy hard pros cons benefit benefits advantage ' +
    'advantages disadvantage disadvantages role effect effects impact cause causes reason reasons symptom symptoms ' +
    'history purpose cost costs price number rule rules character characters theme themes plot author director finding ' +
    'findings result results risk risks problem problems issue issues detail details meaning origin origins term name ' +
    'part parts step steps process method methods option options alternative alternatives version versions feature ' +
    'features requirement requirements location locations place time date year age size length weight height member ' +
    'members factor factors solution solutions approach approaches treatment treatments side thing things area people ' +
    'person someone anything something everything please sure interesting ok yes great thanks differ compare change ' +
    'changed start started begin began end ended come came become became important dangerous needed required involved ' +
    'called said known considered hello hi hey okay oh well yeah yep nope wow hmm cool nice alright fact facts info information ' +
    'interesting relationship love like id ill ive im youre hed shed theyd wed dear welcome bye curious thought thoughts ' +
    'idea ideas opinion going',
)

const SPEAKERS = list('i you we they he she it one to')
const NAME = regExp(String.raw`^\p{Lu}`, 'u')
const WORD = regExp(String.raw`[\p{L}\p{N}\p{M}]+(?:['\u2019.-][\p{L}\p{N}]+)*`, 'gu')
const NAMES = regExp(
  String.raw`\p{Lu}[\p{L}\p{N}'\u2019.-]*(?: (?:of |the |de |and )?\p{Lu}[\p{L}\p{N}'\u2019.-]*)*`,
  'gu',
)

/** Whether a word names a subject by itself. */
export const namesSubject = (word: Word): boolean => isTopical(word) && !RELATIONAL().has(word.folded)

/**
 * Returns runs of meaningful words. A word after "they", "to" and the like is an action and starts no phrase. "does
 * ... spread" does not keep its verb either. In "does Parley store history" the verb separates two phrases, and the
 * second is what the question is about.
 */
export function phrasesOf(question: string): Phrase[] {
  const phrases: Phrase[] = []
  let run: { raw: string; word: Word; proper: boolean }[] = []
  const asksWithDo = /\b(do|does|did)\b/i.test(question)
  // "do I create": the verb was already skipped.
  let verbSeen = false
  const add = (words: typeof run, isObject = false) => {
    if (!isObject && !words.some(({ word }) => namesSubject(word))) return
    phrases.push({
      text: words.map(({ raw }) => raw).join(' '),
      stems: words.map(({ word }) => word.stem),
      proper: words.some(({ proper }) => proper),
    })
  }
  const close = (clauseEnds: boolean) => {
    const verb = run.findIndex(({ proper }) => !proper)
    if (clauseEnds && asksWithDo && !verbSeen && run.length > 1 && verb >= 0) {
      if (verb > 0 && verb < run.length - 1) {
        add(run.slice(verb + 1), true)
        run = run.slice(0, verb)
      } else if (verb === run.length - 1 || !run.at(-1)!.proper) run.pop()
    }
    add(run)
    run = []
    if (clauseEnds) verbSeen = false
  }
  let end = 0
  let before = ''
  for (const match of question.matchAll(WORD())) {
    if (/[,;:.!?()"]/.test(question.slice(end, match.index))) close(true)
    const word = wordsOf(match[0])[0]
    const verb = SPEAKERS().has(before) && !NAME().test(match[0])
    verbSeen ||= verb
    if (word && isTopical(word) && !verb) {
      run.push({ raw: match[0].replace(/['\u2019]s$/, ''), word, proper: end > 0 && NAME().test(match[0]) })
    } else close(false)
    end = match.index + match[0].length
    before = word?.folded ?? ''
  }
  close(true)
  return phrases
}

/** The first name in an answer to "Who ...?" or "Which film ...?". */
export function answeredName(answer: string): string | undefined {
  // A list names several.
  if (answer.startsWith('- ')) return undefined
  const first = answer.split('\n')[0]!.slice(0, 300)
  for (const match of first.matchAll(NAMES())) {
    const text = match[0]
      .replace(/(?<![.'\u2019-])[.'\u2019-]+$/, '')
      .replace(/^(?:The|A|An|In|On|At|It|This|That|Its)\b ?/, '')
    if (wordsOf(text).some(isTopical)) return text
  }
  return undefined
}
