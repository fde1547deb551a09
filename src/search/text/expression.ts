/** Parses FTS5 expressions, as text/query.ts and ranking/tiers.ts write them. */
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

/** Words that follow each other in one of some columns, or are near each other. */
export interface Together {
  kind: 'together'
  words: WordIn[]
  /** whether the first one begins the text of the column */
  initial: boolean
  /** how many words may be between the first and the last of them, in any order; undefined if they follow each other */
  near: number | undefined
}

export type Expression =
  | WordIn
  | Together
  | { kind: 'and' | 'or'; parts: Expression[] }
  | { kind: 'not'; part: Expression; without: Expression }

const TOKEN = / ?(?:(\{[^{}]*\}) ?:|"((?:[^"]|"")*)"|, (\d+)|(NEAR(?=\()|[()*^]|AND\b|OR\b|NOT\b))/y

/** Characters that the tokenizers leave as they are: ASCII without capitals, and letters of scripts without capitals. */
export const PLAIN_WORD = /^[!#-@[-~\p{Lo}]+$/u
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
    if (within === undefined) return undefined
    if (token?.sign === 'NEAR') return near(within)
    const initial = token?.sign === '^'
    const words = wordsOf((initial ? tokens[at++] : token)?.word, within)
    const last = words?.at(-1)
    if (words === undefined || last === undefined) return undefined
    last.prefix = take('*')
    return initial || words.length > 1 ? { kind: 'together', words, initial, near: undefined } : last
  }
  const wordsOf = (phrase: string | undefined, columns: readonly number[]): WordIn[] | undefined => {
    const plain = stems ? PLAIN_STEM : PLAIN_WORD
    const words = phrase?.split(' ')
    if (!words?.every((word) => plain.test(word))) return undefined
    return words.map((word) => ({
      kind: 'word',
      word: stems ? stem(word.toLowerCase()) : word,
      prefix: false,
      columns,
    }))
  }
  const near = (within: readonly number[]): Expression | undefined => {
    const words: WordIn[] = []
    if (!take('(')) return undefined
    while (tokens[at]?.word !== undefined) {
      const [word, ...more] = wordsOf(tokens[at++]!.word, within) ?? []
      if (word === undefined || more.length > 0) return undefined
      words.push(word)
    }
    const most = tokens[at++]?.number
    if (most === undefined || !take(')')) return undefined
    return { kind: 'together', words, initial: false, near: most }
  }
  const expression = either(undefined)
  return at === tokens.length ? expression : undefined
}

type Columns = readonly number[] | undefined

interface Token {
  columns?: number[]
  word?: string
  number?: number
  sign?: string
}

function* tokensOf(text: string): Generator<Token | undefined> {
  TOKEN.lastIndex = 0
  while (TOKEN.lastIndex < text.length) {
    const found = TOKEN.exec(text)
    if (found === null) return yield undefined
    const [, columns, word, number, sign] = found
    if (columns !== undefined) yield { columns: (columns.match(/\d+/g) ?? []).map(Number) }
    else if (word !== undefined) yield { word }
    else if (number !== undefined) yield { number: Number(number) }
    else yield { sign: sign! }
  }
}

/** The words of an expression, from left to right. */
export const wordsIn = (expression: Expression): WordIn[] =>
  expression.kind === 'word'
    ? [expression]
    : expression.kind === 'not'
      ? [...wordsIn(expression.part), ...wordsIn(expression.without)]
      : expression.kind === 'together'
        ? expression.words
        : expression.parts.flatMap(wordsIn)
