/**
 * The order in which a plain search looks at more matches than it can read: first those whose words stand together, as
 * FTS5 finds them without ranking, then the others.
 *
 * Each tier is a part of the next, and nothing in a tier can fit worse than what the tiers after it add.
 */
import { matchExpression, type Term, termExpression } from '../../text/query'
import type { TokenRules } from '../../text/words'
import type { TextMatch } from '../candidates'

export interface Tier {
  match: TextMatch
  /** its documents fit equally well, so the other keys of the sort decide which of them are read */
  tied: boolean
}

export interface Column {
  column: string
  prefix: boolean
  /** Typesense's weight of the field */
  rank: number
}

/** Tokens between two words that are together: they are at most ten apart. */
const NEAR = 9
/** A phrase of more words than this is not looked for. */
const MOST_NEAR = 16

/**
 * @param whole what the search matches
 * @param terms all of them are in each match; none, if a part of the query was dropped
 */
export function tiersOf(
  whole: TextMatch,
  terms: readonly Term[],
  excluded: readonly Term[],
  columns: readonly Column[],
  rules: TokenRules,
): Tier[] {
  const tier = (match: string, tied: boolean): Tier => ({ match: { ...whole, match }, tied })
  const all = { match: whole, tied: false }
  if (terms.length === 0 || terms.length > MOST_NEAR) return [all]
  const unwanted = matchWithout(excluded, columns, rules)
  const heaviest = Math.max(...columns.map(({ rank }) => rank))
  const best = columns.filter(({ rank }) => rank === heaviest)
  const exact = terms.map((term) => ({ ...term, prefix: false, corrections: [] }))
  if (terms.length === 1) {
    const only = best.length < columns.length
    const tiers: Tier[] = []
    if (only) tiers.push(tier(inColumns(exact, best, rules) + unwanted, true))
    tiers.push(tier(inColumns(exact, columns, rules) + unwanted, !only))
    return isExact(terms)
      ? tiers.slice(0, -1).concat({ match: whole, tied: tiers.length === 1 })
      : [...tiers, all]
  }
  const phrase = `${names(columns)} : ("${exact.map((term) => bare(term, rules)).join(' ')}")${unwanted}`
  const near = `${names(columns)} : (${nearExpression(exact, rules)})${unwanted}`
  const tiers = [tier(phrase, false), tier(near, false)]
  if (terms.at(-1)!.prefix && columns.some(({ prefix }) => prefix)) {
    tiers.push(
      tier(
        `${names(columns.filter(({ prefix }) => prefix))} : (${nearExpression(exact, rules, '*')})${unwanted}`,
        false,
      ),
    )
  }
  return [...tiers, all]
}

const isExact = (terms: readonly Term[]): boolean =>
  terms.every(({ prefix, corrections }) => !prefix && corrections.length === 0)

const names = (columns: readonly Column[]): string => `{${columns.map(({ column }) => column).join(' ')}}`

/** The words of a term as they stand in an FTS5 string. */
const bare = (term: Term, rules: TokenRules): string => termExpression(term, rules, false).slice(1, -1)

/** @param end '*' if the last word may be unfinished */
const nearExpression = (terms: readonly Term[], rules: TokenRules, end: '' | '*' = ''): string =>
  `NEAR(${terms.map((term) => `"${bare(term, rules)}"`).join(' ')}${end}, ${NEAR})`

const inColumns = (terms: Term[], columns: readonly Column[], rules: TokenRules): string =>
  matchExpression(terms, [], [...columns], 'AND', rules)

const matchWithout = (excluded: readonly Term[], columns: readonly Column[], rules: TokenRules): string =>
  excluded.length === 0 ? '' : ` NOT (${matchExpression([], [...excluded], [...columns], 'AND', rules)})`
