/**
 * Compiles the query DSL into a collection's search: words to search and rank by, a filter, or a vector.
 *
 * Only one query ranks: the first in `must` that searches for words. All others only filter. What cannot be expressed
 * this way is refused by name.
 */
import {
  type Clause,
  type Compiled,
  checkBoost,
  constant,
  lookUp,
  NONE,
  options,
  single,
  type VectorSearch,
  type Words,
} from './compiled'
import { illegalArgument, parsingError, shardError, suggestion, unsupported } from './errors'
import type { Fields, Target } from './fields'
import { and, equals, present } from './filter'
import { isEvery, join, match, multiMatch } from './match'
import { parseQueryString, parseSimple } from './query-string'
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
  match: (clause) => match(clause, {}, ['operator', 'minimum_should_match', 'fuzziness']),
  match_phrase: (clause) => match(clause, { phrase: true }),
  match_phrase_prefix: (clause) => match(clause, { phrase: true, prefix: true }, ['max_expansions']),
  match_bool_prefix: (clause) => match(clause, { prefix: true }, ['operator', 'minimum_should_match']),
  multi_match: multiMatch,
  query_string: (clause) => queryString(clause, parseQueryString, ['default_field']),
  simple_query_string: (clause) => queryString(clause, parseSimple),
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
    const [target, bounds] = single(clause, undefined, ['gt', 'gte', 'lt', 'lte', 'format', 'time_zone'])
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
  const isOptional = must.length + filters.length > 0 && Number(body.minimum_should_match ?? 0) === 0
  const alternatives = inner('should')
  const needed = isOptional ? lifted(must, alternatives) : [...must, ...shoulds(alternatives, body)]
  const parts: Compiled[] = [...needed, ...filters, ...excluded]
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

/** What must match, ranked by the words of alternatives too, which need not match. @throws ApiError 400 */
function lifted(must: Compiled[], alternatives: Compiled[]): Compiled[] {
  if (alternatives.length === 0) return must
  const ranking = must.find(({ words }) => words !== undefined)
  const words = ranking && merged([ranking, ...alternatives])
  if (words === undefined) {
    throw unsupported(
      'A [should] of [bool] that need not match, beside no [must] of words: it would only change the ranking. Set [minimum_should_match: 1] or leave it out; it',
    )
  }
  return must.map((part) => (part === ranking ? { ...part, words, rest: () => part.filter(false) } : part))
}

/** The alternatives of a `bool` as one query. */
function shoulds(alternatives: Compiled[], body: Json): Compiled[] {
  if (alternatives.length === 0) return []
  const given = body.minimum_should_match ?? 1
  const least = Number(given)
  if (!Number.isInteger(least) || least < 1)
    throw unsupported(`[minimum_should_match: ${String(given)}] of [bool]`)
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
  const isPlain = ({ phrase, prefix, fuzziness }: Words) => !phrase && !prefix && fuzziness === 0
  if (!all.every((words) => words !== undefined && isPlain(words))) return undefined
  const fields = new Map<string, Words['fields'][number]>()
  for (const { fields: each } of all as Words[]) {
    for (const field of each) {
      const known = fields.get(field.target.name)
      if (known === undefined || known.weight < field.weight) fields.set(field.target.name, field)
    }
  }
  const text = [...new Set(all.flatMap((words) => words!.text.split(' ')))].join(' ')
  return { fields: [...fields.values()], text, every: false, phrase: false, prefix: false, fuzziness: 0 }
}

function queryString(clause: Clause, parse: typeof parseSimple, more: string[] = []): Compiled {
  const known = ['query', 'fields', 'default_operator', ...more]
  const { query, fields, default_field, default_operator } = options(clause, known)
  const parsed = parse(query, fields ?? default_field, isEvery(default_operator, 'default_operator'))
  return compileQuery(parsed, clause.fields, clause.depth + 1)
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
