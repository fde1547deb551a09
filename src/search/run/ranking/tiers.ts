/**
 * Decides the order in which a plain search reads matches if it cannot read all: first those whose words are close
 * together, which FTS5 finds without ranking, then the others.
 *
 * Each tier is a subset of the next, and no document of a tier can fit worse than those that later tiers add.
 */

import type { TextMatch } from '../../text/query'
import {
  type ColumnGroup,
  groupsOf,
  inQuotes,
  isOpen,
  matchExpression,
  type SearchedColumn,
  type Term,
  termsFor,
  typed,
} from '../../text/query'
import { hasSynonyms } from '../../text/synonyms'
import { hasLength } from './matches'
import { costOf } from './reader'

export interface Tier {
  match: TextMatch
  /** without other keys, the documents whose text in this column is shortest are read */
  shortest?: string
  /** fields that begin with the query; the first tier has it */
  initial?: TextMatch
}

export interface Column extends SearchedColumn {
  /** Typesense's weight of the field */
  rank: number
}

/** The most tokens between two words that are close together: they are at most ten apart. */
const NEAR = 9
/** With more words than this, FTS5 is not asked whether they are close together. */
const MOST_NEAR = 16
/** The most ways to write a query with similar words. With more ways, only its own words are used. */
const MOST_WAYS = 64

/**
 * @param whole what the search matches
 * @param terms each match has all of them
 */
export function tiersOf(
  whole: TextMatch,
  terms: readonly Term[],
  excluded: readonly Term[],
  columns: readonly Column[],
  isLast: boolean,
): Tier[] {
  const all = { match: whole }
  if (terms.length > MOST_NEAR || hasSynonyms(terms)) return [all]
  const unwanted =
    excluded.length === 0 ? '' : ` NOT (${matchExpression([], [...excluded], [...columns], 'AND')})`
  const tier = (match: string): Tier => ({ match: { ...whole, match: match + unwanted } })
  const own = terms.map((term) => ({ ...term, prefix: false, corrections: [] }))
  const initial = tier(together(own, columns, 'initial')).match
  const isTyping = isOpen(terms.at(-1)!)
  const isExact = !isTyping && terms.every(({ corrections }) => corrections.length === 0)
  const heaviest = Math.max(...columns.map(({ rank }) => rank))
  const best = columns.filter(({ rank }) => rank === heaviest)
  // The query as the beginning of a field, for somebody who is still typing that text.
  const begun = own.with(-1, { ...own.at(-1)!, prefix: terms.at(-1)!.prefix })
  const typed = (some: readonly Column[]) => together(begun, some, 'initial')
  const [only] = best
  const shortest = best.length === 1 && isLast && hasLength(only!) ? { shortest: only!.column } : {}
  if (terms.length > 1) {
    const near = together(own, columns, 'near')
    const phrase = together(own, columns, 'phrase')
    const tiers: Tier[] = [{ ...tier(phrase), initial }]
    if (isTyping) {
      tiers.push({ ...tier(either(phrase, typed(best))), ...shortest })
      tiers.push(tier(either(near, typed(columns))))
    } else tiers.push(tier(near))
    if (!isExact && waysOf(terms) <= MOST_WAYS) {
      tiers.push(tier(either(near, together(terms, columns, 'phrase'))))
    }
    return [...tiers, all]
  }
  const exact = matchExpression(own, [], [...columns], 'AND')
  const inBest = tier(matchExpression(own, [], best, 'AND'))
  const isCorrected = terms[0]!.corrections.length > 0
  // How little was corrected counts more than the field.
  const close = isCorrected ? matchExpression(terms.map(nearest), [], [...columns], 'AND') : exact
  const closest = isCorrected ? [tier(close)] : []
  const completed = tier(either(close, matchExpression([...terms], [], best, 'AND')))
  if (best.length === columns.length) {
    return isExact ? [{ ...all, initial }] : [{ ...inBest, initial }, ...closest, all]
  }
  if (!isLast)
    return isExact
      ? [{ ...inBest, initial }, all]
      : [{ ...inBest, initial }, tier(exact), ...closest, completed, all]
  const tiers: Tier[] = [{ ...tier(together(own, best, 'initial')), ...shortest, initial }, inBest]
  if (isExact) return [...tiers, all]
  tiers.push(tier(exact), ...closest)
  if (isTyping) tiers.push({ ...tier(either(close, typed(best))), ...shortest })
  return [...tiers, completed, all]
}

/** A term with those of its corrections that differ from it least, whole words alone. */
function nearest(term: Term): Term {
  const costs = term.corrections.map((word) => costOf(term.tokens[0] ?? '', word, term.prefix))
  const least = Math.min(...costs)
  return { ...term, prefix: false, corrections: term.corrections.filter((_, at) => costs[at] === least) }
}

/**
 * The tiers of a query of which words were dropped: documents with more of its words come first.
 * @param whole what the search matches
 * @param terms all of the query
 */
export function tiersByCount(
  whole: TextMatch,
  terms: readonly Term[],
  columns: readonly SearchedColumn[],
): Tier[] {
  const all = { match: whole }
  if (terms.length > MOST_NEAR || hasSynonyms(terms)) return [all]
  const tiers: Tier[] = []
  for (let count = terms.length; count > 1; count--) {
    const some = choicesOf(terms, count)
    if (some.length > MOST_WAYS) continue
    const words = some.map((each) => matchExpression(each, [], [...columns], 'AND')).join(' OR ')
    tiers.push({ match: { ...whole, match: `((${words}) AND (${whole.match}))` } })
  }
  return [...tiers, all]
}

/** All choices of so many terms; more than MOST_WAYS are not all there. */
function choicesOf(terms: readonly Term[], count: number): Term[][] {
  let choices: { some: Term[]; next: number }[] = [{ some: [], next: 0 }]
  for (let taken = 0; taken < count && choices.length <= MOST_WAYS; taken++) {
    choices = choices.flatMap(({ some, next }) =>
      terms
        .slice(next, terms.length - (count - taken) + 1)
        .map((term, at) => ({ some: [...some, term], next: next + at + 1 })),
    )
  }
  return choices.map(({ some }) => some)
}

const either = (one: string, other: string): string => `((${one}) OR (${other}))`

/** An expression for words that are close together in one of the columns. */
function together(
  terms: readonly Term[],
  columns: readonly Column[],
  how: 'initial' | 'phrase' | 'near',
): string {
  const expressions = groupsOf(columns).map((group) => {
    const taken = termsFor(terms, group)
    const words = writings(taken, group).map((strings) => {
      if (how === 'near') return `NEAR(${strings.map((each) => `"${each}"`).join(' ')}, ${NEAR})`
      const phrase = strings.join(' ')
      // In a shared column, the code by itself marks the beginning of the field.
      const initial = group.code ? `"${group.code} ${phrase}"` : `^ "${phrase}"`
      return `${how === 'initial' ? initial : `"${phrase}"`}${isOpen(taken.at(-1)!) ? ' *' : ''}`
    })
    return `${group.names} : ${words.length === 1 ? words[0] : `(${words.join(' OR ')})`}`
  })
  return expressions.length === 1 ? expressions[0]! : `(${expressions.join(' OR ')})`
}

const waysOf = (terms: readonly Term[]): number =>
  terms.reduce((ways, { corrections }) => ways * (1 + corrections.length), 1)

/** All ways to write the words: as typed, or with similar words instead. */
const writings = (terms: readonly Term[], group: ColumnGroup): string[][] =>
  terms.reduce<string[][]>(
    (ways, term) => {
      const { words: own, text } = group.analyzer.phrase(typed(term))
      const typedText = group.code ? inQuotes(own, group) : text
      const words = [typedText, ...term.corrections.map((word) => inQuotes([word], group))]
      return ways.flatMap((way) => words.map((word) => [...way, word]))
    },
    [[]],
  )
