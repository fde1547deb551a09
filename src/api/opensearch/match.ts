/** Queries of words: `match` and its kin, and `multi_match`. */
import {
  type Clause,
  type Compiled,
  type Fuzziness,
  fuzzinessOf,
  lookUp,
  NONE,
  options,
  single,
  type Words,
  wordsOf,
} from './compiled'
import { illegalArgument, parsingError, unsupported } from './errors'
import type { Target } from './fields'
import { adjacent, and, begins, equals, type Filter, or } from './filter'
import { values } from './terms'

/** Several queries as one filter. @param any whether one of them suffices */
export const join = (parts: readonly Compiled[], negated: boolean, any: boolean): Filter =>
  (any === negated ? and : or)(parts.map((part) => part.filter(negated)))

/** Whether all words must match. @throws ApiError 400 */
export function isEvery(operator: unknown, option = 'operator'): boolean {
  const name = String(operator ?? 'or').toLowerCase()
  if (name !== 'or' && name !== 'and') throw illegalArgument(`[${option}] has to be [and] or [or]`)
  return name === 'and'
}

/** How words are looked for: their order, and whether the last one is a prefix. */
type Manner = Partial<Pick<Words, 'phrase' | 'prefix'>>

export function match(clause: Clause, manner: Manner, known: readonly string[] = []): Compiled {
  const [target, given] = single(clause, 'query', known)
  const { query, operator, minimum_should_match: least } = given
  if (least !== undefined && !['1', '100%'].includes(String(least))) {
    throw unsupported(`[minimum_should_match: ${String(least)}] of [${clause.name}]`)
  }
  const every = isEvery(operator) || String(least) === '100%'
  const fuzziness = fuzzinessOf(given.fuzziness)
  if (target === undefined) return NONE
  if (target.kind !== 'text') return exactly(values(target, [query]), fuzziness)
  return textQuery(clause, [{ target, weight: 1 }], query, {
    every,
    ...manner,
    across: false,
    fuzziness,
  })
}

/** @throws ApiError 400 */
function exactly(compiled: Compiled, fuzziness: Fuzziness): Compiled {
  if (fuzziness !== 0) throw unsupported('[fuzziness] of values and phrases')
  return compiled
}

/** By the type of a `multi_match`. */
const MANNERS: Record<string, Manner> = {
  best_fields: {},
  most_fields: {},
  cross_fields: {},
  phrase: { phrase: true },
  phrase_prefix: { phrase: true, prefix: true },
  bool_prefix: { prefix: true },
}

export function multiMatch(clause: Clause): Compiled {
  const {
    query,
    fields: names,
    operator,
    type,
    fuzziness,
  } = options(clause, ['query', 'fields', 'operator', 'type', 'fuzziness'])
  const kind = String(type ?? 'best_fields')
  const manner = Object.hasOwn(MANNERS, kind) ? MANNERS[kind]! : undefined
  if (manner === undefined) throw unsupported(`[multi_match] of the type [${kind}]`)
  const given = names === undefined ? ['*'] : Array.isArray(names) ? names : [names]
  const targets = given.flatMap((each) => {
    const [, name = '', boost] = /^(.*?)(?:\^(\d+(?:\.\d+)?))?$/s.exec(String(each))!
    return clause.fields.matching(name).map((target) => ({ target, weight: Number(boost ?? 1) }))
  })
  const texts = targets.filter(({ target }) => target.kind === 'text')
  const others = targets.filter(({ target }) => ['keyword', 'number', 'boolean'].includes(target.kind))
  const shape = {
    every: isEvery(operator),
    ...manner,
    across: kind === 'cross_fields',
    fuzziness: fuzzinessOf(fuzziness),
  }
  // Fields that hold values instead of words only count if the query names them.
  const named = others.filter(({ target }) =>
    given.some((each) => lookUp(clause.fields, String(each))?.name === target.name),
  )
  if (named.length > 0 || manner.phrase || manner.prefix || shape.across) exactly(NONE, shape.fuzziness)
  if (named.length === 0) return texts.length === 0 ? NONE : textQuery(clause, texts, query, shape)
  const parts = named.map(({ target }) => values(target, [query]))
  if (texts.length > 0) parts.push(textQuery(clause, texts, query, shape))
  return { filter: (negated) => join(parts, negated, true) }
}

/** Searches words in text fields. @param shape.across whether each word may be in another field */
function textQuery(
  { name, fields }: Clause,
  targets: Words['fields'],
  query: unknown,
  {
    every,
    phrase = false,
    prefix: open = false,
    across,
    fuzziness,
  }: Pick<Words, 'every' | 'fuzziness'> & Manner & { across: boolean },
): Compiled {
  if (typeof query === 'object' || query === undefined) throw parsingError(`[${name}] query takes a text`)
  const words = wordsOf(String(query), fields)
  if (words.length === 0) return NONE
  const text = words.join(' ')
  const last = words.at(-1)
  const contains = (target: Target, word: string, negated: boolean) =>
    open && word === last
      ? begins(target.name, word, negated, false)
      : equals(target.name, [word], negated, false)
  const filter = (negated: boolean): Filter => {
    if (fuzziness !== 0) throw unsupported(`[fuzziness] of a [${name}] where hits are not ranked by it`)
    const [inner, outer] = negated ? [or, and] : [and, or]
    if (phrase) return outer(targets.map(({ target }) => adjacent(target.name, text, negated, open)))
    if (!every)
      return outer(words.flatMap((word) => targets.map(({ target }) => contains(target, word, negated))))
    return across
      ? inner(words.map((word) => outer(targets.map(({ target }) => contains(target, word, negated)))))
      : outer(targets.map(({ target }) => inner(words.map((word) => contains(target, word, negated)))))
  }
  // The search knows no phrase that is open: it ranks by the words.
  const asked: Words = {
    fields: targets,
    text,
    every: every || phrase,
    phrase: phrase && !open,
    prefix: open,
    fuzziness,
  }
  // The search matches words in any of the fields. The filter then requires all of them in one field.
  const isApart = every && !across && !phrase && targets.length > 1
  const isStricter = words.length > 1 && (isApart || (phrase && open))
  return { filter, words: asked, rest: () => (isStricter ? filter(false) : true) }
}
