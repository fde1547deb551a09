/**
 * Compiles the query DSL into a collection's search: words to search and rank by, a filter, or a vector.
 *
 * Only one query ranks: the first in `must` that searches for words. All others only filter. What cannot be expressed
 * this way is refused by name.
 */
import {
  type Clause,
  type Compiled,
  constant,
  type Fuzziness,
  fuzzinessOf,
  NONE,
  type VectorSearch,
  type Words,
  wordsOf,
} from './compiled'
import { illegalArgument, parsingError, shardError, suggestion, unsupported } from './errors'
import type { Fields, Target } from './fields'
import { and, equals, type Filter, or, present } from './filter'
import { parseQueryString } from './query-string'
import { rangeFilter } from './range'
import { isObject, type Json } from './route'
import { readScript } from './script-score'
import { exists, prefix, values } from './terms'

/** Nesting depth of queries: as deep as a filter may be, because they become one. */
const DEEPEST = 30

/** @throws ApiError 400 that names what is unknown */
export function compileQuery(query: unknown, fields: Fields, depth = 0): Compiled {
  if (!isObject(query)) throw parsingError('[_na] query malformed, must start with start_object')
  const [[name, body] = [], ...others] = Object.entries(query)
  if (name === undefined) throw illegalArgument('query malformed, empty clause found')
  if (others.length > 0) {
    throw parsingError(`[${name}] malformed query, expected [END_OBJECT] but found [FIELD_NAME]`)
  }
  if (depth > DEEPEST) throw parsingError(`Queries may be ${DEEPEST} deep in each other`)
  const compile = Object.hasOwn(QUERIES, name) ? QUERIES[name] : undefined
  if (compile === undefined)
    throw parsingError(`unknown query [${name}]${suggestion(name, Object.keys(QUERIES), '')}`)
  return compile({ name, body: isObject(body) ? body : invalid(name), fields, depth })
}

function invalid(name: string): never {
  throw parsingError(`[${name}] query malformed, no start_object after query name`)
}

const QUERIES: Record<string, (clause: Clause) => Compiled> = {
  match_all: (clause) => constant(true, options(clause)),
  match_none: (clause) => constant(false, options(clause)),
  match: (clause) => match(clause, false),
  match_phrase: (clause) => match(clause, true),
  multi_match: multiMatch,
  query_string: (clause) => {
    const {
      query,
      fields: names,
      default_field,
      default_operator,
    } = options(clause, ['query', 'fields', 'default_field', 'default_operator'])
    const parsed = parseQueryString(
      query,
      names ?? default_field,
      isEvery(default_operator, 'default_operator'),
    )
    return compileQuery(parsed, clause.fields, clause.depth + 1)
  },
  bool,
  constant_score: (clause) => {
    const { filter } = options(clause, ['filter'])
    const inner = compileQuery(filter, clause.fields, clause.depth + 1)
    return { filter: inner.filter }
  },
  term: (clause) => {
    const [target, { value }] = single(clause, 'value')
    return values(target, [value])
  },
  terms: (clause) => {
    const { boost: _, ...body } = checkBoost(clause.body)
    const [[field, list] = [], ...others] = Object.entries(body)
    if (field === undefined || others.length > 0 || !Array.isArray(list)) {
      throw parsingError('[terms] query takes one field and a list of values')
    }
    return values(lookUp(clause.fields, field), list)
  },
  range: (clause) => {
    const [target, bounds] = single(clause, undefined, ['gt', 'gte', 'lt', 'lte'])
    return target === undefined ? NONE : { filter: (negated) => rangeFilter(target, bounds, negated) }
  },
  exists: (clause) => exists(clause),
  ids: (clause) => {
    const { values: ids } = options(clause, ['values'])
    if (!Array.isArray(ids)) throw parsingError('[ids] query takes a list of [values]')
    // A filter cannot say an id with a backtick.
    const plain = ids.map(String).filter((id) => !id.includes('`'))
    return { filter: (negated) => equals('id', plain, negated) }
  },
  prefix: (clause) => {
    const [target, { value }] = single(clause, 'value')
    return target === undefined ? NONE : prefix(clause, target, String(value))
  },
  wildcard: (clause) => {
    const [target, { value, wildcard }] = single(clause, 'value', ['wildcard'])
    const pattern = String(value ?? wildcard)
    if (target === undefined) return NONE
    if (/^\*+$/.test(pattern)) return { filter: (negated) => present(target.name, negated) }
    const beginning = pattern.replace(/(?<!\*)\*+$/, '')
    if (/[*?\\]/.test(beginning))
      throw unsupported('A [wildcard] that is not the beginning of a word (`begin*`)')
    return beginning === pattern ? values(target, [pattern]) : prefix(clause, target, beginning)
  },
  knn: (clause) => {
    const [target, { vector, k, filter }] = single(clause, undefined, ['vector', 'k', 'filter'])
    if (!Array.isArray(vector) || !vector.every((part) => typeof part === 'number')) {
      throw illegalArgument('[knn] requires query vector: a list of numbers as [vector]')
    }
    return nearest(clause, target, k ?? 10, filter, { vector })
  },
  script_score: (clause) => {
    const { query = { match_all: {} }, script } = options(clause, ['query', 'script'])
    const { field, distance, ...asked } = readScript(script)
    const target = lookUp(clause.fields, field)
    if (target === undefined)
      throw shardError(`No field found for [${field}] in mapping`, 'illegal_argument_exception')
    if (target.kind === 'vector' && (target.field.vec_dist ?? 'cosine') !== distance) {
      throw unsupported(`A script that measures [${field}] otherwise than by the [space_type] of its mapping`)
    }
    return nearest(clause, target, undefined, query, asked)
  },
  neural: (clause) => {
    const [target, { query_text, model_id, k, filter }] = single(clause, undefined, [
      'query_text',
      'model_id',
      'k',
      'filter',
    ])
    if (typeof query_text !== 'string') throw parsingError('[neural] query takes a text as [query_text]')
    const model = target?.field.embed?.model_config.model_name
    if (target !== undefined && model === undefined) {
      throw unsupported(`[neural] on [${target.name}], which has no model of its own,`)
    }
    if (model_id !== undefined && model_id !== model) {
      throw illegalArgument(
        `[neural] searches with the model of its field, [${model}]: leave [model_id] out or name it`,
      )
    }
    return nearest(clause, target, k ?? 10, filter, { text: query_text })
  },
}

/** The body without its boost. The boost may only be 1, because only one query ranks. @throws ApiError 400 */
function checkBoost(body: Json): Json {
  if (body.boost !== undefined && body.boost !== 1) throw unsupported('[boost] of a query')
  return body
}

/** The options of a query that has no field of its own. @throws ApiError 400 */
function options({ name, body }: Clause, known: readonly string[] = []): Json {
  for (const key of Object.keys(checkBoost(body))) {
    if (key !== 'boost' && !known.includes(key))
      throw parsingError(`[${name}] query does not support [${key}]`)
  }
  return body
}

const lookUp = (fields: Fields, name: string): Target | undefined => (name === '_id' ? ID : fields.find(name))

const ID = { name: 'id', kind: 'keyword', hasValues: false, isArray: false, isDate: false } as Target

/**
 * The field of a single-field query and its options. The field is undefined if no document has it. @throws ApiError
 * 400
 */
function single(
  { name, body, fields }: Clause,
  short?: string,
  known: readonly string[] = [],
): [Target | undefined, Json] {
  const [[field, given] = [], ...others] = Object.entries(body)
  if (field === undefined) throw parsingError(`[${name}] query takes the name of a field`)
  if (others.length > 0) {
    throw parsingError(
      `[${name}] query doesn't support multiple fields, found [${field}] and [${others[0]![0]}]`,
    )
  }
  if (!isObject(given)) {
    if (short === undefined || given === null || Array.isArray(given)) {
      throw parsingError(`[${name}] query malformed at [${field}]`)
    }
    return [lookUp(fields, field), { [short]: given }]
  }
  for (const key of Object.keys(checkBoost(given))) {
    if (key !== short && key !== 'boost' && !known.includes(key)) {
      throw parsingError(`[${name}] query does not support [${key}]`)
    }
  }
  return [lookUp(fields, field), given]
}

/** Whether all words must match. @throws ApiError 400 */
function isEvery(operator: unknown, option = 'operator'): boolean {
  const name = String(operator ?? 'or').toLowerCase()
  if (name !== 'or' && name !== 'and') throw illegalArgument(`[${option}] has to be [and] or [or]`)
  return name === 'and'
}

function match(clause: Clause, phrase: boolean): Compiled {
  const known = phrase ? [] : ['operator', 'minimum_should_match', 'fuzziness']
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
    phrase,
    across: false,
    fuzziness,
  })
}

/** @throws ApiError 400 */
function exactly(compiled: Compiled, fuzziness: Fuzziness): Compiled {
  if (fuzziness !== 0) throw unsupported('[fuzziness] of values and phrases')
  return compiled
}

function multiMatch(clause: Clause): Compiled {
  const {
    query,
    fields: names,
    operator,
    type,
    fuzziness,
  } = options(clause, ['query', 'fields', 'operator', 'type', 'fuzziness'])
  const kind = type ?? 'best_fields'
  if (!['best_fields', 'most_fields', 'cross_fields', 'phrase'].includes(String(kind))) {
    throw unsupported(`[multi_match] of the type [${String(kind)}]`)
  }
  const given = names === undefined ? ['*'] : Array.isArray(names) ? names : [names]
  const targets = given.flatMap((each) => {
    const [, name = '', boost] = /^(.*?)(?:\^(\d+(?:\.\d+)?))?$/s.exec(String(each))!
    return clause.fields.matching(name).map((target) => ({ target, weight: Number(boost ?? 1) }))
  })
  const texts = targets.filter(({ target }) => target.kind === 'text')
  const others = targets.filter(({ target }) => ['keyword', 'number', 'boolean'].includes(target.kind))
  const shape = {
    every: isEvery(operator),
    phrase: kind === 'phrase',
    across: kind === 'cross_fields',
    fuzziness: fuzzinessOf(fuzziness),
  }
  // Fields that hold values instead of words only count if the query names them.
  const named = others.filter(({ target }) =>
    given.some((each) => lookUp(clause.fields, String(each))?.name === target.name),
  )
  if (named.length > 0 || shape.phrase || shape.across) exactly(NONE, shape.fuzziness)
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
  { every, phrase, across, fuzziness }: Pick<Words, 'every' | 'phrase' | 'fuzziness'> & { across: boolean },
): Compiled {
  if (typeof query === 'object' || query === undefined) throw parsingError(`[${name}] query takes a text`)
  const words = wordsOf(String(query), fields)
  if (words.length === 0) return NONE
  const contains = (target: Target, word: string, negated: boolean) =>
    equals(target.name, [word], negated, false)
  const filter = (negated: boolean): Filter => {
    if (phrase && words.length > 1) throw unsupported(`[${name}] where hits are not ranked by it`)
    if (fuzziness !== 0) throw unsupported(`[fuzziness] of a [${name}] where hits are not ranked by it`)
    const [inner, outer] = negated ? [or, and] : [and, or]
    if (!every)
      return outer(words.flatMap((word) => targets.map(({ target }) => contains(target, word, negated))))
    return across
      ? inner(words.map((word) => outer(targets.map(({ target }) => contains(target, word, negated)))))
      : outer(targets.map(({ target }) => inner(words.map((word) => contains(target, word, negated)))))
  }
  const asked: Words = { fields: targets, text: words.join(' '), every: every || phrase, phrase, fuzziness }
  // The search matches words in any of the fields. The filter then requires all of them in one field.
  const isApart = every && !across && !phrase && targets.length > 1 && words.length > 1
  return { filter, words: asked, rest: () => (isApart ? filter(false) : true) }
}

const join = (parts: readonly Compiled[], negated: boolean, any: boolean): Filter =>
  (any === negated ? and : or)(parts.map((part) => part.filter(negated)))

function bool(clause: Clause): Compiled {
  const known = ['must', 'filter', 'should', 'must_not', 'minimum_should_match']
  const body = options(clause, known)
  const inner = (key: string): Compiled[] => {
    const given = body[key]
    const list = given === undefined ? [] : Array.isArray(given) ? given : [given]
    return list.map((query) => compileQuery(query, clause.fields, clause.depth + 1))
  }
  const must = inner('must')
  const filters = inner('filter').map(({ filter }): Compiled => ({ filter }))
  const excluded = inner('must_not').map(
    ({ filter }): Compiled => ({ filter: (negated) => filter(!negated) }),
  )
  const parts: Compiled[] = [
    ...must,
    ...shoulds(inner('should'), body, must.length + filters.length > 0),
    ...filters,
    ...excluded,
  ]
  if (parts.length === 1) return parts[0]!
  const near = parts.find(({ vector }) => vector !== undefined)?.vector
  // Neighbours among the documents that pass the rest. Words would rank besides.
  if (near !== undefined && parts.every(({ words }) => words === undefined)) {
    const others = parts.filter(({ vector }) => vector !== near)
    const within = and([near.filter, join(others, false, false)])
    return {
      filter: parts.find(({ vector }) => vector === near)!.filter,
      vector: { ...near, filter: within },
    }
  }
  const filter = (negated: boolean) => join(parts, negated, false)
  const ranking = parts.find(({ words }) => words !== undefined)
  if (ranking === undefined) return { filter }
  const others = parts.filter((part) => part !== ranking)
  return { filter, words: ranking.words, rest: () => and([ranking.rest!(), join(others, false, false)]) }
}

/** The alternatives of a `bool` as one query. @param optional true if they may all fail unless a minimum is given */
function shoulds(alternatives: Compiled[], body: Json, optional: boolean): Compiled[] {
  if (alternatives.length === 0) return []
  const given = body.minimum_should_match ?? (optional ? 0 : 1)
  const least = Number(given)
  if (!Number.isInteger(least)) throw unsupported(`[minimum_should_match: ${String(given)}] of [bool]`)
  if (least < 1) {
    throw unsupported(
      'A [should] of [bool] that need not match: it would only change the ranking. Set [minimum_should_match: 1] or leave it out; it',
    )
  }
  if (least > alternatives.length) return [NONE]
  if (least === alternatives.length) return alternatives
  if (least > 1) throw unsupported(`[minimum_should_match: ${least}] of ${alternatives.length} in [bool]`)
  const filter = (negated: boolean) => join(alternatives, negated, true)
  const words = merged(alternatives)
  return [words === undefined ? { filter } : { filter, words, rest: () => filter(false) }]
}

/** The words that alternatives search for together, if all of them look for any of some words. */
function merged(alternatives: Compiled[]): Words | undefined {
  const all = alternatives.map(({ words }) => words)
  if (!all.every((words) => words !== undefined && !words.phrase && words.fuzziness === 0)) return undefined
  const fields = new Map<string, Words['fields'][number]>()
  for (const { fields: each } of all as Words[]) {
    for (const field of each) {
      const known = fields.get(field.target.name)
      if (known === undefined || known.weight < field.weight) fields.set(field.target.name, field)
    }
  }
  const text = [...new Set(all.flatMap((words) => words!.text.split(' ')))].join(' ')
  return { fields: [...fields.values()], text, every: false, phrase: false, fuzziness: 0 }
}

function nearest(
  { name, fields, depth }: Clause,
  target: Target | undefined,
  k: unknown,
  filter: unknown,
  query: Pick<VectorSearch, 'vector' | 'text'>,
): Compiled {
  if (target === undefined) return NONE
  const { length } = query.vector ?? []
  const { num_dim } = target.field
  if (target.kind !== 'vector')
    throw shardError(`failed to create query: Field '${target.name}' is not knn_vector type.`)
  if (query.vector !== undefined && length !== num_dim) {
    throw shardError(
      `failed to create query: Query vector has invalid dimension: ${length}. Dimension should be: ${num_dim}`,
    )
  }
  if (k !== undefined && !(Number.isInteger(k) && (k as number) > 0)) {
    throw illegalArgument(`[${name}] requires [k] to be a number greater than 0`)
  }
  const within = filter === undefined ? true : compileQuery(filter, fields, depth + 1).filter(false)
  return {
    filter: () => {
      throw unsupported(
        `[${name}] beside other queries: put them into its [filter]; a part of another query it`,
      )
    },
    vector: { target, k: k as number | undefined, filter: within, ...query },
  }
}
