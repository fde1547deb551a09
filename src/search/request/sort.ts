/**
 * sort_by: its grammar and its defaults. As in Typesense, documents without a number come last in either
 * direction. A missing or empty string sorts as the largest one.
 */
import { ApiError } from '../../errors'
import { integer, isInt64 } from '../../lib/json'
import { readJoin } from '../filter/parse'
import { splitOutside } from '../fragment'
import { hasValues, isArray, isGeopoint, isGeopolygon, isNumber, type StoredSchema } from '../schema/layout'
import { findField } from '../schema/schema'
import type { Field } from '../types'
import { parseVectorQuery, type VectorQuery } from './parameters'

type Direction = 'ASC' | 'DESC'

/** `$collection(sort_by)`: the order of the best related document. */
export interface JoinedKey {
  kind: 'joined'
  collection: string
  sortBy: string
}

/** How matches are divided into parts whose members count as equal: by the number of parts, or by the size of a part. */
export interface Buckets {
  /** the score that decides which part a match belongs to */
  of: 'text_match' | 'vector_distance'
  by: 'count' | 'size'
  number: number
}

export type SortKey = { direction: Direction } & (
  | { kind: 'text_match' | 'vector_distance'; buckets: Buckets | undefined }
  | { kind: 'seq' | 'group_found' }
  | { kind: 'random'; seed: number }
  | { kind: 'vector_query'; query: VectorQuery }
  | ({ kind: 'field'; field: Field } & ReturnType<typeof parseFieldOptions>)
  | {
      kind: 'geopoint'
      field: Field
      latitude: number
      longitude: number
      exclude: number
      precision: number
    }
  | { kind: 'eval'; cases: { filter: string; score: number }[] }
  | JoinedKey
)

const MAX_KEYS = 3
const MAX_UINT32 = 2 ** 32 - 1
const MALFORMED = 'Parameter `sort_by` is malformed.'

/** Parses the syntax, without a schema. @throws ApiError 400 for a missing colon or more than three keys */
export function splitSort(sortBy: string): { name: string; direction: string }[] {
  const keys = splitOutside(sortBy)
    .filter((part) => part !== '')
    .map((part) => {
      if (part.startsWith('$')) return joinPart(part)
      const match = /^(.+?)(?<!\s)\s*:([^:()[\]]*)$/s.exec(part)
      if (!match) throw new ApiError(400, MALFORMED)
      return { name: match[1]!.trim(), direction: match[2]!.trim() }
    })
  if (keys.length > MAX_KEYS) throw new ApiError(400, 'Only upto 3 sort fields are allowed.')
  return keys
}

/** The other collection reads the order inside. @throws ApiError 400 */
function joinPart(part: string): { name: string; direction: string } {
  const join = readJoin(part)
  if (join === undefined || join.end < part.length) throw new ApiError(400, MALFORMED)
  if (!join.inside.includes(':')) throw new ApiError(400, 'Reference `sort_by` is malformed.')
  return { name: part, direction: 'asc' }
}

/**
 * @throws ApiError 404 for a field that cannot be sorted by, 400 for a bad direction or parameter, 422 for more than one
 *   `_eval`
 */
export function parseSort(keys: { name: string; direction: string }[], schema: StoredSchema): SortKey[] {
  const parsed = keys.map(parseKey(schema))
  if (parsed.filter(({ kind }) => kind === 'eval').length > 1) {
    throw new ApiError(422, 'Only one sorting eval expression is allowed.')
  }
  return parsed
}

const parseKey =
  (schema: StoredSchema) =>
  ({ name, direction: text }: { name: string; direction: string }): SortKey => {
    const join = name.startsWith('$') ? readJoin(name) : undefined
    if (join !== undefined) {
      const { collection, inside: sortBy } = join
      return { kind: 'joined', collection, sortBy, direction: 'ASC' }
    }
    const call = /^([^(]+)\((.*)\)$/s.exec(name)
    const subject = call?.[1]?.trim() ?? name
    const argument = call?.[2]?.trim() ?? ''
    const upper = text.toUpperCase()
    const key = parseSubject(subject, argument, schema)
    if (upper !== 'ASC' && upper !== 'DESC') {
      throw new ApiError(400, `Order for field\` ${subject}\` should be either ASC or DESC.`)
    }
    return { ...key, direction: upper }
  }

type Undirected<Key> = Key extends SortKey ? Omit<Key, 'direction'> : never

function parseSubject(subject: string, argument: string, schema: StoredSchema): Undirected<SortKey> {
  if (argument !== '' && ['_seq_id', '_group_found'].includes(subject)) {
    throw new ApiError(400, `Invalid sorting parameter passed for ${subject}.`)
  }
  switch (subject) {
    case '_text_match':
      return { kind: 'text_match', buckets: parseBuckets('text_match', argument) }
    case '_vector_distance':
      return { kind: 'vector_distance', buckets: parseBuckets('vector_distance', argument) }
    case '_vector_query':
      if (argument === '') throw new ApiError(400, 'The vector query in sort_by is empty.')
      return { kind: 'vector_query', query: parseVectorQuery(argument, schema) }
    case '_rand':
      return { kind: 'random', seed: parseSeed(argument) }
    case '_seq_id':
      return { kind: 'seq' }
    case '_group_found':
      return { kind: 'group_found' }
    case '_eval':
      return { kind: 'eval', cases: parseEval(argument) }
  }
  const field = findField(schema, subject)
  if (
    field === undefined ||
    !field.sort ||
    !hasValues(field) ||
    isGeopolygon(field) ||
    (isArray(field) && !isGeopoint(field))
  ) {
    throw new ApiError(404, `Could not find a field named \`${subject}\` in the schema for sorting.`)
  }
  return isGeopoint(field) ? parseGeopoint(field, argument) : parseField(field, argument)
}

/** @returns undefined for none, which `buckets: 0` also asks for */
function parseBuckets(of: Buckets['of'], argument: string): Buckets | undefined {
  if (argument === '') return undefined
  const match = /^(buckets|bucket_size)\s*:\s*([^:]*)$/.exec(argument)
  if (!match) throw new ApiError(400, `Invalid sorting parameter passed for _${of}.`)
  const number = /^\d+$/.test(match[2]!) ? Number(match[2]) : MAX_UINT32 + 1
  if (number > MAX_UINT32) {
    throw new ApiError(400, `Invalid value passed for _${of} \`buckets\` or \`bucket_size\` configuration.`)
  }
  return number === 0 ? undefined : { of, by: match[1] === 'buckets' ? 'count' : 'size', number }
}

function parseField(field: Field, argument: string): Undirected<SortKey> {
  const options = parseFieldOptions(field.name, argument)
  if (options.decay !== undefined && !isNumber(field)) {
    throw new ApiError(400, `Bad syntax for sorting field \`${field.name}\``)
  }
  return { kind: 'field', field, ...options }
}

function parseGeopoint(field: Field, argument: string): Undirected<SortKey> {
  const [latitude, longitude, ...options] = splitOutside(argument)
  const key = {
    kind: 'geopoint' as const,
    field,
    latitude: Number(latitude || Number.NaN),
    longitude: Number(longitude || Number.NaN),
    exclude: 0,
    precision: 0,
  }
  if (!Number.isFinite(key.latitude) || !Number.isFinite(key.longitude)) throw badSyntax(field)
  for (const option of options) {
    const [, name, amount, unit = ''] =
      /^(exclude_radius|precision)\s*:\s*(-?[\d.]+)\s*(.*)$/.exec(option) ?? []
    if (name === undefined) throw badSyntax(field)
    if (unit !== 'km' && unit !== 'mi') {
      throw new ApiError(400, "Sort field's parameter unit must be either `km` or `mi`.")
    }
    const meters = Number(amount) * (unit === 'km' ? 1000 : 1609.344)
    if (!Number.isFinite(meters)) throw badSyntax(field)
    if (meters <= 0) throw new ApiError(400, "Sort field's parameter must be a positive number.")
    key[name === 'precision' ? 'precision' : 'exclude'] = meters
  }
  return key
}

const badSyntax = ({ name }: Field): ApiError => new ApiError(400, `Bad syntax for sorting field \`${name}\``)

/**
 * Adds the implied keys, up to three keys in all: text match and vector distance, if the search has them. Without sort_by,
 * the default sorting field is added too. The last tie-breaker puts newer documents first.
 */
export function completeSort(
  given: SortKey[] | undefined,
  schema: StoredSchema,
  search: { text: boolean; vector: boolean },
): SortKey[] {
  const keys = [...(given ?? [])]
  const add = (key: SortKey): void => {
    if (keys.length < MAX_KEYS && !keys.some(({ kind }) => kind === key.kind)) keys.push(key)
  }
  if (search.text) add({ kind: 'text_match', buckets: undefined, direction: 'DESC' })
  if (search.vector) add({ kind: 'vector_distance', buckets: undefined, direction: 'ASC' })
  const field = findField(schema, schema.default_sorting_field)
  if (given === undefined && field !== undefined && hasValues(field)) {
    keys.push({ kind: 'field', field, missing: 'normal', decay: undefined, direction: 'DESC' })
  }
  return keys
}

// =============================================================================
// Functions of sort_by: distance of a number from an origin, decay with that distance, random order.

const FUNCTIONS = ['gauss', 'exp', 'linear', 'diff'] as const

/**
 * The options of a field: `missing_values: first` or `origin: 10, func: gauss, scale: 5, decay: 0.5, offset: 1`.
 * @returns `missing`: where documents without a value go; `normal`: last for numbers, beside the largest value for strings
 * @throws ApiError 400 in Typesense's words
 */
function parseFieldOptions(field: string, text: string) {
  const given = new Map<string, string>()
  let missing: 'first' | 'last' | 'normal' = 'normal'
  for (const option of text === '' ? [] : splitOutside(text)) {
    const [, name = '', value = ''] = /^(\w+)\s*:\s*([^:]*)$/.exec(option) ?? []
    if (name === 'missing_values' && (value === 'first' || value === 'last' || value === 'normal')) {
      missing = value
    } else if (['func', 'origin', 'scale', 'offset', 'decay'].includes(name)) given.set(name, value)
    else throw new ApiError(400, `Bad syntax for sorting field \`${field}\``)
  }
  return { missing, decay: given.size > 0 ? parseDecay(given) : undefined }
}

/** How far a number is from an origin, or a score that falls with the distance. */
type Decay = ReturnType<typeof parseDecay>

function parseDecay(given: ReadonlyMap<string, string>) {
  const key = given.get('func')
  const func = FUNCTIONS.find((name) => name === key)
  if (key !== undefined && func === undefined) {
    throw new ApiError(400, `Bad syntax. Not a valid decay function key \`${key}\`.`)
  }
  const scale = whole(given.get('scale'), 'sort_by: scale param should be non-zero integer.')
  if (scale !== undefined && Number(scale) === 0) {
    throw new ApiError(400, 'sort_by: scale param should be non-zero integer.')
  }
  const origin = whole(given.get('origin'), 'sort_by: origin param should be integer.')
  const offset = whole(given.get('offset'), 'sort_by: offset param should be integer.')
  const decay = Number(given.get('decay') ?? 0.5)
  if (Number.isNaN(decay)) throw new ApiError(400, 'sort_by: decay param should be float.')
  if (decay < 0 || decay > 1) {
    throw new ApiError(400, 'sort_by: decay param should be float in range [0.0, 1.0].')
  }
  if (func === undefined) throw new ApiError(400, 'Bad syntax. Missing param `func`.')
  if (origin === undefined && func === 'diff') {
    throw new ApiError(400, 'Bad syntax. origin param is mandatory for diff function.')
  }
  if (origin === undefined || (scale === undefined && func !== 'diff')) {
    throw new ApiError(400, `Bad syntax. origin and scale are mandatory params for decay function ${func}`)
  }
  return {
    func,
    origin,
    /** the distance at which the score is `decay` */
    scale: scale ?? 1,
    /** distances up to this count as none */
    offset: offset ?? 0,
    decay,
  }
}

/** @throws ApiError 400 with the message for what is not a whole number of 64 bits */
function whole(text: string | undefined, message: string): number | bigint | undefined {
  if (text === undefined) return undefined
  const value = /^-?\d{1,19}$/.test(text) ? integer(text) : undefined
  if (value === undefined || !isInt64(value)) throw new ApiError(400, message)
  return value
}

/**
 * The score of a value, with Typesense's formulas. `distance` is |origin - value| - offset, but at least 0. For `diff` the
 * score is that difference itself, which may be negative.
 *
 *     gauss   decay ^ (distance / scale)^2
 *     exp     decay ^ (distance / scale)
 *     linear  max(0, 1 - distance * (1 - decay) / scale)
 */
export function decayed(
  { func, origin, scale, offset, decay }: Decay,
  value: number | bigint,
): number | bigint {
  const isWhole = typeof value === 'bigint' || Number.isInteger(value)
  // Whole numbers keep all their digits.
  const difference = isWhole
    ? exactDifference(BigInt(origin), BigInt(value), BigInt(offset))
    : Math.abs(Number(origin) - Number(value)) - Number(offset)
  if (func === 'diff') return difference
  const scaled = Math.max(0, Number(difference)) / Number(scale)
  if (func === 'gauss') return decay ** (scaled * scaled)
  return func === 'exp' ? decay ** scaled : Math.max(0, 1 - scaled * (1 - decay))
}

function exactDifference(origin: bigint, value: bigint, offset: bigint): number | bigint {
  const difference = (origin > value ? origin - value : value - origin) - offset
  return Number.isSafeInteger(Number(difference)) ? Number(difference) : difference
}

/** The seed of `_rand(seed)`; without one, the time. @throws ApiError 400 */
function parseSeed(text: string): number {
  if (text === '') return Date.now() % 2 ** 32
  if (!/^\d{1,10}$/.test(text) || Number(text) >= 2 ** 32) {
    throw new ApiError(400, 'Only positive integer seed value is allowed.')
  }
  return Number(text)
}

/**
 * A pseudorandom number of 32 bits for each document: Wellons' `lowbias32` hash of its sequence number and the seed,
 * https://nullprogram.com/blog/2018/07/31/.
 */
export function randomOf(seed: number, seq: number): number {
  let hash = ((seq * 2 + (Math.imul(seed, 0x9e3779b1) >>> 0) + 1) % 2 ** 32) >>> 0
  hash = Math.imul(hash ^ (hash >>> 16), 0x21f0aaad)
  hash = Math.imul(hash ^ (hash >>> 15), 0x735a2d97)
  return (hash ^ (hash >>> 15)) >>> 0
}

/** Conditions of `_eval` with different scores: each is evaluated for all matches. */
const MAX_EVAL_CASES = 16
/** Conditions of `_eval`. */
const MAX_EVAL_EXPRESSIONS = 100

/** The conditions of `_eval` and their scores. The first that holds counts. @throws ApiError 400 */
function parseEval(argument: string): { filter: string; score: number }[] {
  if (argument === '') throw new ApiError(400, 'The eval expression in sort_by is empty.')
  const list = /^\[(.*)\]$/s.exec(argument)
  if (!list) return [{ filter: argument, score: 1 }]
  const parts = splitOutside(list[1]!)
  if (parts.length > MAX_EVAL_EXPRESSIONS) {
    throw new ApiError(400, `\`_eval\` takes at most ${MAX_EVAL_EXPRESSIONS} expressions.`)
  }
  const cases: { filter: string; score: number }[] = []
  for (const part of parts) {
    const match = /^(.*):\s*(\d{1,9})$/s.exec(part)
    if (!match) throw new ApiError(400, 'Parameter `sort_by` is malformed.')
    const [filter, score] = [match[1]!, Number(match[2])]
    const last = cases.at(-1)
    if (last?.score === score) last.filter = `(${last.filter}) || (${filter})`
    else cases.push({ filter, score })
  }
  if (cases.length > MAX_EVAL_CASES) {
    throw new ApiError(
      400,
      `\`_eval\` takes at most ${MAX_EVAL_CASES} different scores. Put expressions with the same score side by side.`,
    )
  }
  return cases
}
