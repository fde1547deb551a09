/** What a query of the DSL becomes. */
import { tokenize } from '../../search/text/words'
import type { Fields, Target } from './fields'
import type { Filter } from './filter'
import type { Json } from './route'

/** Words that are looked for, and that hits are ranked by. */
export interface Words {
  fields: { target: Target; weight: number }[]
  /** words with spaces between them: nothing in it is syntax */
  text: string
  /** whether every word has to be found; else one of them */
  every: boolean
  phrase: boolean
}

export interface VectorSearch {
  target: Target
  /** the query's own vector, or a text to embed */
  vector?: number[]
  text?: string
  k: number
  filter: Filter
}

export interface Compiled {
  /** what is found, or all that is not. @throws ApiError 400 where a filter cannot say it */
  filter(negated: boolean): Filter
  words?: Words | undefined
  /** what decides besides the words */
  rest?: () => Filter
  vector?: VectorSearch
}

/** A query to compile. */
export interface Clause {
  name: string
  body: Json
  fields: Fields
  depth: number
}

export const constant = (all: boolean, _options: Json = {}): Compiled => ({
  filter: (negated) => all !== negated,
})
export const NONE: Compiled = constant(false)

/** The words of a text, as they are written. */
export const wordsOf = (text: string, { schema }: Fields): string[] =>
  tokenize(text, schema).map(({ start, end }) => text.slice(start, end))
