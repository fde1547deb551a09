/**
 * Compiles the query DSL into a collection's search: words to search and rank by, a filter, or a vector.
 *
 * Only one query ranks: the first in `must` that searches for words. All others only filter. What cannot be expressed
 * this way is refused by name.
 */

import { spanOf } from '../../lib/dates'
import {
  adjacent,
  and,
  begins,
  dated,
  equals,
  type Filter,
  or,
  plain,
  present,
  same,
} from '../../search/filter/write'
import type { VectorDistance } from '../../search/types'
import {
  BOOL_OPTIONS,
  type Clause,
  type Compiled,
  checkBoost,
  clauseIn,
  constant,
  type Fuzziness,
  fuzzinessOf,
  lookUp,
  NONE,
  options,
  single,
  type VectorSearch,
  type Words,
  wordsOf,
} from './compiled'
import { illegalArgument, type OpenSearchError, parsingError, shardError, unsupported } from './errors'
import type { Fields, Target } from './fields'
import { DISTANCES } from './mapping'
import { isObject, type Json, listed, onlyEntry, own } from './route'

/** @throws ApiError 400 that names what is unknown */
export function compileQuery(query: unknown, fields: Fields, depth = 0): Compiled {
  const [compile, clause] = clauseIn(query, QUERIES, depth)
  return compile({ ...clause, fields, depth })
}

const QUERIES: Record<string, (clause: Clause) => Compiled> = {
  match_all: (clause) => constant(true, options(clause)),
  match_none: (clause) => constant(false, options(clause)),
  match: (clause) => match(clause, {}, 'operator minimum_should_match fuzziness'),
  match_phrase: (clause) => match(clause, { phrase: true }),
  match_phrase_prefix: (clause) => match(clause, { phrase: true, prefix: true }, 'max_expansions'),
  match_bool_prefix: (clause) => match(clause, { prefix: true }, 'operator minimum_should_match'),
  multi_match: multiMatch,
  query_string: (clause) => queryString(clause, parseQueryString, 'default_field'),
  simple_query_string: (clause) => queryString(clause, parseSimple),
  bool,
  constant_score: (clause) => {
    const { filter } = options(clause, 'filter')
    const inner = compileQuery(filter, clause.fields, clause.depth + 1)
    return { filter: inner.filter }
  },
  term: (clause) => {
    const [target, { value }] = single(clause, 'value')
    return values(target, [value])
  },
  terms: (clause) => {
    const { boost: _, ...body } = checkBoost(clause.body)
    const [field, list] = onlyEntry(body) ?? []
    if (field === undefined || !Array.isArray(list)) {
      throw parsingError('[terms] query takes one field and a list of values')
    }
    return values(lookUp(clause.fields, field), list)
  },
  range: (clause) => {
    const [target, bounds] = single(clause, undefined, 'gt gte lt lte format time_zone')
    return target === undefined ? NONE : { filter: (negated) => rangeFilter(target, bounds, negated) }
  },
  exists,
  ids: (clause) => {
    const { values: ids } = options(clause, 'values')
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
    const [target, { value, wildcard }] = single(clause, 'value', 'wildcard')
    const pattern = String(value ?? wildcard)
    if (target === undefined) return NONE
    if (/^\*+$/.test(pattern)) return { filter: (negated) => present(target.name, negated) }
    const beginning = pattern.replace(/(?<!\*)\*+$/, '')
    if (/[*?\\]/.test(beginning))
      throw unsupported('A [wildcard] that is not the beginning of a word (`begin*`)')
    return beginning === pattern ? values(target, [pattern]) : prefix(clause, target, beginning)
  },
  knn: (clause) => {
    const [target, { vector, k, filter }] = single(clause, undefined, 'vector k filter')
    if (!isVector(vector)) throw illegalArgument('[knn] requires query vector: a list of numbers as [vector]')
    return nearest(clause, target, k ?? 10, filter, { vector })
  },
  script_score: (clause) => {
    const { query = { match_all: {} }, script } = options(clause, 'query script')
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
    const [target, { query_text, model_id, k, filter }] = single(
      clause,
      undefined,
      'query_text model_id k filter',
    )
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
  const body = options(clause, BOOL_OPTIONS)
  const inner = (key: string): Compiled[] =>
    listed(body[key]).map((query) => compileQuery(query, clause.fields, clause.depth + 1))
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

function queryString(clause: Clause, parse: typeof parseSimple, more = ''): Compiled {
  const known = `query fields default_operator ${more}`
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

// =============================================================================
// Queries of words: `match` and its kin, and `multi_match`.

const isVector = (given: unknown): given is number[] =>
  Array.isArray(given) && given.every((part) => typeof part === 'number')

/** Several queries as one filter. @param any whether one of them suffices */
const join = (parts: readonly Compiled[], negated: boolean, any: boolean): Filter =>
  (any === negated ? and : or)(parts.map((part) => part.filter(negated)))

/** Whether all words must match. @throws ApiError 400 */
function isEvery(operator: unknown, option = 'operator'): boolean {
  const name = String(operator ?? 'or').toLowerCase()
  if (name !== 'or' && name !== 'and') throw illegalArgument(`[${option}] has to be [and] or [or]`)
  return name === 'and'
}

/** How words are looked for: their order, and whether the last one is a prefix. */
type Manner = Partial<Pick<Words, 'phrase' | 'prefix'>>

function match(clause: Clause, manner: Manner, known = ''): Compiled {
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

function multiMatch(clause: Clause): Compiled {
  const asked = options(clause, 'query fields operator type fuzziness')
  const { query, operator, type, fuzziness } = asked
  const kind = String(type ?? 'best_fields')
  const manner = own(MANNERS, kind)
  if (manner === undefined) throw unsupported(`[multi_match] of the type [${kind}]`)
  const { fields: given = ['*'] } = named(asked.fields) as { fields?: unknown[] }
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
  const counted = others.filter(({ target }) =>
    given.some((each) => lookUp(clause.fields, String(each))?.name === target.name),
  )
  if (counted.length > 0 || manner.phrase || manner.prefix || shape.across) exactly(NONE, shape.fuzziness)
  if (counted.length === 0) return texts.length === 0 ? NONE : textQuery(clause, texts, query, shape)
  const parts = counted.map(({ target }) => values(target, [query]))
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

// =============================================================================
// Ranges of numbers and of dates.

const BOUNDS = ['gte', 'gt', 'lte', 'lt']

/** The first and the last value within bounds. @param placesOf what a bound is as each of BOUNDS */
function within(
  bounds: Readonly<Json>,
  placesOf: (value: unknown, name: string) => number[],
): [from: number, to: number] {
  let [from, to] = [-Infinity, Infinity]
  for (const [name, value] of Object.entries(bounds)) {
    if (value === null || !BOUNDS.includes(name)) continue
    const place = placesOf(value, name)[BOUNDS.indexOf(name)]!
    if (name.startsWith('g')) from = Math.max(from, place)
    else to = Math.min(to, place)
  }
  return [from, to]
}

const LIMITS: Record<string, number> = {
  int32: 2 ** 31 - 1,
  int64: Number.MAX_SAFE_INTEGER,
  float: Number.MAX_VALUE,
}

/**
 * A range as one condition. So a single value of a list must satisfy both ends.
 * @throws ApiError 400 for a field without an order
 */
export function rangeFilter(target: Target, bounds: Json, negated: boolean): Filter {
  if (target.isDate || isOfDates(target, bounds)) {
    const [from, to] = timesOf(target.name, bounds)
    return from > to ? negated : dated(target.name, from, to, negated)
  }
  if (target.kind !== 'number') {
    throw unsupported(`[range] on [${target.name}], which is neither a number nor a date: it`)
  }
  const type = target.field.type.replace('[]', '')
  const most = LIMITS[type]!
  const isWhole = type !== 'float'
  const [from, to] = within(bounds, (value, name) => {
    const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value
    if (typeof number !== 'number' || !Number.isFinite(number)) {
      throw shardError(`failed to create query: [range] on [${target.name}]: [${name}] has to be a number`)
    }
    return isWhole
      ? [Math.ceil(number), Math.floor(number) + 1, Math.floor(number), Math.ceil(number) - 1]
      : [number, next(number, 1), number, next(number, -1)]
  })
  if (from > to || from > most || to < -most) return negated
  const isOpen = from === -Infinity && to === Infinity
  if (isOpen) return present(target.name, negated)
  // Adding 0 turns minus zero into zero.
  const text = (number: number): string => String(Math.min(most, Math.max(-most, number)) + 0)
  return plain(target.name, `${text(from)}..${text(to)}`, negated)
}

/** Whether a text that no mapping names is asked for dates. OpenSearch makes such a field a date. */
const isOfDates = ({ kind, hasValues }: Target, { gte, gt, lte, lt }: Json): boolean =>
  kind === 'text' &&
  hasValues &&
  [gte, gt, lte, lt].every(
    (bound) =>
      bound === undefined || bound === null || (typeof bound === 'string' && spanOf(bound) !== undefined),
  )

const bits = new DataView(new ArrayBuffer(8))

/** The nearest other float64. @param step 1 upwards, -1 downwards */
function next(number: number, step: 1 | -1): number {
  if (number === 0) return step * Number.MIN_VALUE
  bits.setFloat64(0, number)
  bits.setBigInt64(0, bits.getBigInt64(0) + BigInt(number > 0 ? step : -step))
  return bits.getFloat64(0)
}

/** The first and the last millisecond of a range. @throws ApiError 400 for a bound that is no date */
function timesOf(name: string, bounds: Readonly<Record<string, unknown>>): [number, number] {
  const zone = bounds.time_zone as string
  return within(bounds, (given) => {
    const span = typeof given === 'number' ? [given, given + 1] : spanOf(String(given), zone)
    if (span === undefined)
      throw shardError(`failed to parse date field [${String(given)}] of [${name}]`, 'parse_exception')
    const [first, end] = span as [number, number]
    return [first, end, end - 1, first - 1]
  })
}

// =============================================================================
// A simple `query_string`: words, "phrases", `field:word`, `word*`, and AND or OR between them. Other Lucene syntax
// is refused; the error names its sign.

const PART = /(?:([\w.@-]+):)?(?:"([^"]*)"|(\S+))/g
const SYNTAX = /[+\-!(){}[\]^~?\\/<>=]|&&|\|\|/

/**
 * Converts the query to the DSL.
 * @param fields the fields of words that name none; undefined for all
 * @param every whether all words must match by default
 */
function parseQueryString(query: unknown, fields: unknown, every: boolean): Json {
  if (typeof query !== 'string') throw parsingError('[query_string] takes a text as [query]')
  const text = query.trim()
  if (text === '*' || text === '*:*') return { match_all: {} }
  const parts: Json[] = []
  const plain: string[] = []
  const operators = new Set<string>()
  for (const [whole, field, phrase, word] of text.matchAll(PART)) {
    if (whole === 'AND' || whole === 'OR') {
      operators.add(whole)
      continue
    }
    if (whole === 'NOT') throw unsupported('[NOT] in a [query_string]')
    const sign = phrase === undefined ? SYNTAX.exec(word!)?.[0] : undefined
    // A hyphen or a slash inside a word is part of it.
    if (sign !== undefined && !(/[-/]/.test(sign) && /^\w[\w./-]*$/.test(word!))) {
      throw unsupported(`[${sign}] in a [query_string]`)
    }
    if (phrase === undefined && word!.includes(':')) throw unsupported('[:] in a word of a [query_string]')
    if (phrase !== undefined) {
      parts.push(
        field
          ? { match_phrase: { [field]: phrase } }
          : { multi_match: { query: phrase, type: 'phrase', ...named(fields) } },
      )
    } else if (word!.includes('*')) {
      const name = field ?? (typeof fields === 'string' ? fields : undefined)
      if (name === undefined) throw unsupported('[*] in a word of a [query_string] that names no field')
      parts.push({ wildcard: { [name]: word } })
    } else if (field !== undefined) parts.push({ match: { [field]: word } })
    else plain.push(word!)
  }
  if (operators.size > 1) throw unsupported('[AND] beside [OR] in a [query_string]')
  return joined(plain, parts, operators.size > 0 ? operators.has('AND') : every, fields)
}

/** Words and other parts as one query. @param all whether all of them must match */
function joined(plain: string[], parts: Json[], all: boolean, fields: unknown): Json {
  const operator = all ? 'and' : 'or'
  const words = { query: plain.join(' '), operator, type: 'cross_fields', ...named(fields) }
  const some = plain.length > 0 ? [{ multi_match: words }, ...parts] : parts
  if (some.length === 0) return { match_none: {} }
  return some.length === 1 ? some[0]! : { bool: { [all ? 'must' : 'should']: some } }
}

const SIMPLE = /([+|-]?)(?:"([^"]*)"|([^\s|+"]+))?/g

/**
 * Converts a `simple_query_string` to the DSL: words, "phrases", `word*`, and the signs `|`, `+` and `-`.
 * @throws ApiError 400 that names another sign
 */
function parseSimple(query: unknown, fields: unknown, every: boolean): Json {
  if (typeof query !== 'string') throw parsingError('[simple_query_string] takes a text as [query]')
  const sign = /[()~\\]/.exec(query)?.[0]
  if (sign !== undefined) throw unsupported(`[${sign}] in a [simple_query_string]`)
  const parts: Json[] = []
  const plain: string[] = []
  const without: Json[] = []
  const operators = new Set<string>()
  for (const [, operator, phrase, word = ''] of query.matchAll(SIMPLE)) {
    if (operator === '|' || operator === '+') operators.add(operator)
    const isOpen = word.endsWith('*')
    const text = phrase ?? (isOpen ? word.slice(0, -1) : word)
    if (text === '') continue
    const type = phrase !== undefined ? 'phrase' : isOpen ? 'bool_prefix' : 'best_fields'
    const part = { multi_match: { query: text, type, ...named(fields) } }
    if (operator === '-') without.push(part)
    else if (type === 'best_fields') plain.push(text)
    else parts.push(part)
  }
  if (operators.size > 1) throw unsupported('[+] beside [|] in a [simple_query_string]')
  const found = joined(plain, parts, operators.size > 0 ? operators.has('+') : every, fields)
  return without.length === 0 ? found : { bool: { must: found, must_not: without } }
}

const named = (fields: unknown): Json => (fields === undefined ? {} : { fields: listed(fields) })

// =============================================================================
// The scripts that measure vectors exactly. They are the ones in OpenSearch's documentation ("Exact k-NN with scoring script",
// "Painless extensions"), and those that LangChain and LlamaIndex send. No script is run: what each says is known.

const FUNCTIONS: Record<string, VectorDistance> = { '1/l2Squared': 'l2', cosineSimilarity: 'cosine' }
const BRACKETS = /^(1(?:\.0)?\s*\/\s*)?\((.*)\)$/s
const MEASURE = /^1(?:\.0)?\s*\+\s*(\w+)\(\s*params\.(\w+)\s*,\s*doc\[(['"])([^'"\]]+)\3\]\s*\)$/

/** What a script asks for. @throws ApiError 400 for any other script */
function readScript(script: unknown) {
  if (!isObject(script) || typeof script.source !== 'string')
    throw parsingError('[script_score] takes a [script]')
  const params = isObject(script.params) ? script.params : {}
  const { source, lang = 'painless' } = script
  const whole = source.trim()
  const [, inverse, inner = whole] = BRACKETS.exec(whole) ?? []
  const [, name, parameter = '', , named] = MEASURE.exec(inner.trim()) ?? []
  const isPlugin = lang === 'knn' && source === 'knn_score'
  const measure = own(FUNCTIONS, (inverse === undefined ? '' : '1/') + name)
  const distance = isPlugin
    ? own(DISTANCES, String(params.space_type))
    : lang === 'painless'
      ? measure
      : undefined
  if (distance === undefined) {
    throw unsupported(
      'A [script] other than [knn_score], `1/(1 + l2Squared(params.query_value, doc[...]))` and `1 + cosineSimilarity(...)`',
    )
  }
  const field = isPlugin ? params.field : named
  const vector = isPlugin ? params.query_value : own(params, parameter)
  if (typeof field !== 'string' || !isVector(vector)) {
    throw parsingError('The [script] of [script_score] takes the name of a field, and a list of numbers')
  }
  return { field, vector, distance }
}

// =============================================================================
// Queries for values: terms, prefixes and existence.

/** Documents with one of some values. */
function values(target: Target | undefined, given: readonly unknown[]): Compiled {
  if (target === undefined) return NONE
  for (const value of given) {
    if (typeof value === 'object' || value === undefined) {
      throw parsingError(`A value of [${target.name}] has to be a string, a number or a boolean`)
    }
  }
  switch (target.kind) {
    case 'number':
    case 'boolean': {
      const written = target.kind === 'number' ? numeric : truth
      const known = given.map((value) => written(target, value)).filter((value) => value !== undefined)
      return {
        filter: (negated) =>
          known.length === 0 ? negated : plain(target.name, `[${known.join(',')}]`, negated),
      }
    }
    case 'keyword':
      return {
        filter: (negated) => (target.name === 'id' ? equals : same)(target.name, given.map(String), negated),
      }
    case 'text': {
      // A term is one word, so a value of several words matches nothing.
      const words = given.map(String).filter((value) => /^\S+$/.test(value))
      return { filter: (negated) => equals(target.name, words, negated, false) }
    }
  }
  throw unsupported(`A term of [${target.name}]`)
}

const badValue = (target: Target, value: unknown): OpenSearchError =>
  shardError(`failed to create query: For input string: "${String(value)}" on [${target.name}]`)

/** A number as filters write it; undefined if no value of the field can equal it. @throws ApiError 400 */
function numeric(target: Target, value: unknown): string | undefined {
  const number = typeof value === 'string' && value.trim() === '' ? Number.NaN : Number(value)
  if (typeof value === 'boolean' || !Number.isFinite(number)) throw badValue(target, value)
  const type = target.field.type.replace('[]', '')
  if (type === 'float') return String(number)
  if (typeof value === 'bigint' && type === 'int64') return String(value)
  if (!Number.isSafeInteger(number) || (type === 'int32' && Math.abs(number) > 2 ** 31 - 1)) return undefined
  return String(number)
}

function truth(target: Target, value: unknown): string {
  if (value !== true && value !== false && value !== 'true' && value !== 'false')
    throw badValue(target, value)
  return String(value)
}

function exists({ name, body, fields }: Clause): Compiled {
  const { field } = body
  if (typeof field !== 'string' || Object.keys(body).length > 1)
    throw parsingError(`[${name}] query takes a [field]`)
  const target = field === '_id' ? undefined : fields.find(field)
  const isObject = target === undefined || target.field.type.startsWith('object')
  const targets = isObject ? fields.below(field) : [target]
  if (target?.kind === 'vector') throw unsupported(`[exists] of the vector [${field}]`)
  const known = targets.filter(({ kind }) => kind !== 'other' && kind !== 'vector')
  if (known.length < targets.length && known.length === 0) throw unsupported(`[exists] of [${field}]`)
  return {
    filter: (negated) => (negated ? and : or)(known.map((each) => present(each.name, negated))),
  }
}

function prefix({ name, fields }: Clause, target: Target, value: string): Compiled {
  if (target.name === 'id' || (target.kind !== 'keyword' && target.kind !== 'text')) {
    throw unsupported(`[${name}] on [${target.name}], which is no text,`)
  }
  if (value === '') return { filter: (negated) => present(target.name, negated) }
  const words = wordsOf(value, fields)
  const whole = target.kind === 'keyword'
  // In a text field prefixes apply to single words.
  if (words.length === 0 || (!whole && words.length > 1)) return NONE
  return { filter: (negated) => begins(target.name, words.join(' '), negated, whole) }
}
