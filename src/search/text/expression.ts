/**
 * Parses FTS5 expressions of single words, as text/query.ts writes them. Expressions with phrases, NEAR or `^` are
 * left to FTS5.
 */
import type { TextIndex } from './analyzer'
import { stem } from './words'

/** A word in any of some columns. */
export interface WordIn {
  kind: 'word'
  /** in the form of the index */
  word: string
  /** whether it matches every word that begins with it */
  prefix: boolean
  /** numbers of columns */
  columns: readonly number[]
}

export type Expression =
  | WordIn
  | { kind: 'and' | 'or'; parts: Expression[] }
  | { kind: 'not'; part: Expression; without: Expression }

const TOKEN = / ?(?:(\{[^{}]*\}) ?:|"((?:[^"]|"")*)"|([()*]|AND\b|OR\b|NOT\b))/y

/** Characters that the tokenizers leave as they are: ASCII without capitals, and letters of scripts without capitals. */
const PLAIN_WORD = /^[!#-@[-~\p{Lo}]+$/u
/** Words that FTS5 stems: no symbols, and at most 64 letters. Its stem of `flyyed` differs from ours. */
const PLAIN_STEM = /^(?!.*yy)[a-z0-9]{1,64}$/i

/** @returns undefined for any other expression */
export function parseExpression(text: string, { stems }: Pick<TextIndex, 'stems'>): Expression | undefined {
  const tokens = [...tokensOf(text)]
  if (tokens.includes(undefined)) return undefined
  let at = 0
  const take = (sign: string): boolean => tokens[at]?.sign === sign && ++at > 0
  const list = (
    kind: 'and' | 'or',
    word: string,
    next: (within: Columns) => Expression | undefined,
    within: Columns,
  ): Expression | undefined => {
    const parts: Expression[] = []
    do {
      const part = next(within)
      if (part === undefined) return undefined
      parts.push(part)
    } while (take(word))
    return parts.length === 1 ? parts[0] : { kind, parts }
  }
  const either = (within: Columns) => list('or', 'OR', both, within)
  const both = (within: Columns) => list('and', 'AND', lacking, within)
  const lacking = (within: Columns): Expression | undefined => {
    let part = primary(within)
    while (part !== undefined && take('NOT')) {
      const without = primary(within)
      part = without && { kind: 'not', part, without }
    }
    return part
  }
  const primary = (within: Columns): Expression | undefined => {
    const token = tokens[at++]
    if (token?.columns !== undefined) {
      const { columns } = token
      return primary(within === undefined ? columns : columns.filter((each) => within.includes(each)))
    }
    if (token?.sign === '(') {
      const inner = either(within)
      return take(')') ? inner : undefined
    }
    if (token?.word === undefined || within === undefined) return undefined
    if (!(stems ? PLAIN_STEM : PLAIN_WORD).test(token.word)) return undefined
    const word = stems ? stem(token.word.toLowerCase()) : token.word
    return { kind: 'word', word, prefix: take('*'), columns: within }
  }
  const expression = either(undefined)
  return at === tokens.length ? expression : undefined
}

type Columns = readonly number[] | undefined

interface Token {
  columns?: number[]
  word?: string
  sign?: string
}

function* tokensOf(text: string): Generator<Token | undefined> {
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < text.length) {
    const found = TOKEN.exec(text)
    if (found === null) return yield undefined
    const [, columns, word, sign] = found
    if (columns !== undefined) yield { columns: (columns.match(/\d+/g) ?? []).map(Number) }
    else if (word !== undefined) yield { word }
    else yield { sign: sign! }
  }
}

/** The words of an expression, from left to right. */
export const wordsIn = (expression: Expression): WordIn[] =>
  expression.kind === 'word'
    ? [expression]
    : expression.kind === 'not'
      ? [...wordsIn(expression.part), ...wordsIn(expression.without)]
      : expression.parts.flatMap(wordsIn)
