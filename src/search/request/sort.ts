/**
 * sort_by: its grammar, its defaults, and its ORDER BY. As in Typesense, documents without a number come last in either
 * direction. A missing or empty string sorts as the largest one.
 */
import { ApiError, detailed } from '../../errors'
import { storedValues } from '../filter/columns'
import { rangedFilter } from '../filter/compile'
import type { OnRead } from '../filter/context'
import { distanceSql } from '../filter/geopoint'
import { readJoin } from '../filter/parse'

import { fragment, join, oneOf, type SqlFragment, splitOutside } from '../fragment'
import { NOWHERE, type Range } from '../range'
import { findField } from '../schema/find-field'
import {
  columnsTable,
  hasValues,
  isArray,
  isGeopoint,
  isGeopolygon,
  isNumber,
  isString,
  normColumn,
  type StoredSchema,
  scalarColumn,
} from '../schema/layout'
import type { Field } from '../types'
import type { Buckets, JoinedKey, Order } from './order'
import {
  decaySql,
  type FieldOptions,
  parseEval,
  parseFieldOptions,
  parseSeed,
  randomSql,
} from './sort-functions'
import { parseVectorQuery, type VectorQuery } from './vector-query'

type Direction = 'ASC' | 'DESC'

export type SortKey = { direction: Direction } & (
  | { kind: 'text_match' | 'vector_distance'; buckets: Buckets | undefined }
  | { kind: 'seq' | 'group_found' }
  | { kind: 'random'; seed: number }
  | { kind: 'vector_query'; query: VectorQuery }
  | ({ kind: 'field'; field: Field } & FieldOptions)
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
  const keys = splitOutside(sortBy, ',')
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
  ({ name, direction: text }: { name: string; direction: string }, index: number): SortKey => {
    const join = name.startsWith('$') ? readJoin(name) : undefined
    if (join !== undefined) {
      const { collection, inside: sortBy } = join
      return { kind: 'joined', collection, sortBy, column: `j${index}`, direction: 'ASC' }
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
  const [latitude, longitude, ...options] = splitOutside(argument, ',')
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

/**
 * The order over a relation `d(seq, score, distance, fused)` (run/candidates.ts).
 * @param last orders documents whose keys are equal; if it leaves them equal too, their age decides
 * @throws ApiError 400 for a bad filter in `_eval`
 */
export function orderBy(
  keys: SortKey[],
  sql: SqlStorage,
  schema: StoredSchema,
  hybrid: boolean,
  last: SqlFragment[] = [],
): Order {
  const evaluated = keys.filter((key) => key.kind === 'eval')
  /** of the pages that are read now */
  let counting: OnRead | undefined
  const scores = explained(() =>
    evaluated.map(({ cases }) =>
      cases.map(({ filter, score }) => ({
        passes: rangedFilter(sql, schema, filter, undefined, (documents) => counting?.(documents)),
        score,
      })),
    ),
  )
  const columns = (range: Range, onRead?: OnRead) => {
    counting = onRead
    return scores.map((cases, index) => {
      const score = evaluation(cases, sql, range)
      return { ...score, sql: `${score.sql} AS ${evalColumn(index)}` }
    })
  }
  explained(() => columns(NOWHERE))
  const distances = keys.filter(({ kind }) => kind === 'vector_query')
  const terms = keys.map((key) =>
    key.kind === 'eval'
      ? fragment(`d.${evalColumn(evaluated.indexOf(key))} ${key.direction}`)
      : key.kind === 'vector_query'
        ? fragment(`d.${distanceColumn(distances.indexOf(key))} ${key.direction} NULLS LAST`)
        : term(key, schema, hybrid),
  )
  const buckets = keys.flatMap((key) => ('buckets' in key ? (key.buckets ?? []) : []))
  const joined = keys.filter((key) => key.kind === 'joined')
  return {
    by: join([...terms, ...last, fragment('d.seq DESC')], ', '),
    terms: terms.length > 0 ? join(terms, ', ') : fragment('d.seq'),
    joined,
    columns,
    names: [
      ...evaluated.map((_, index) => evalColumn(index)),
      ...buckets.map(bucketColumn),
      ...joined.map(({ column }) => column),
      ...distances.map((_, index) => distanceColumn(index)),
    ],
    buckets,
    distances: distances.length,
    byGroupSize: keys.some(({ kind }) => kind === 'group_found'),
    newestFirst: keys.length + last.length === 0,
  }
}

/** @throws ApiError what `work` throws, as an error of `_eval` */
function explained<Result>(work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    throw detailed(error.status, 'Error parsing eval expression in sort_by clause.', error.message)
  }
}

const evalColumn = (index: number): string => `e${index}`

/** The column of the distances that a `_vector_query` asks for. */
export const distanceColumn = (index: number): string => `distance${index}`

/** The column with the number of a match's part. 1 is the best part. */
export const bucketColumn = ({ of, by, number }: Buckets): string => `bucket_${of}_${by}_${number}`

function term(
  key: Exclude<SortKey, { kind: 'eval' | 'vector_query' }>,
  schema: StoredSchema,
  hybrid: boolean,
): SqlFragment {
  const { direction } = key
  switch (key.kind) {
    case 'seq':
      return fragment(`d.seq ${direction}`)
    case 'joined':
      return fragment(`d.${key.column} ASC NULLS LAST`)
    case 'random': {
      const { sql: text, bindings } = randomSql(key.seed)
      return { sql: `${text} ${direction}`, bindings }
    }
    case 'group_found':
      return fragment(`d.group_found ${direction}`)
    case 'vector_distance':
      if (key.buckets !== undefined) return fragment(`d.${bucketColumn(key.buckets)} ${direction}`)
      return fragment(`d.distance ${direction} NULLS LAST`)
    case 'text_match': {
      // FTS5's BM25 is best when lowest. A fused score is best when highest.
      const by = hybrid ? `d.fused ${direction}` : `d.score ${reverse(direction)}`
      if (key.buckets === undefined) return fragment(`${by} NULLS LAST`)
      return fragment(`d.${bucketColumn(key.buckets)} ${reverse(direction)}`)
    }
    case 'field': {
      const value = fieldValue(schema, key.field)
      const written = isString(key.field) ? `nullif(${value}, '')` : value
      const { sql: text, bindings } = key.decay ? decaySql(value, key.decay) : fragment(written)
      const largest = isString(key.field) && direction === 'DESC' ? 'first' : 'last'
      const nulls = key.missing === 'normal' ? largest : key.missing
      return { sql: `${text} ${direction} NULLS ${nulls.toUpperCase()}`, bindings }
    }
    case 'geopoint': {
      const { sql: text, bindings } = nearestPlace(schema, key)
      const excluded =
        key.exclude > 0 ? `CASE WHEN x < ${key.exclude} THEN 0 ELSE x END` : key.precision > 0 ? 'x' : ''
      if (excluded === '') return { sql: `${text} ${direction} NULLS LAST`, bindings }
      const rounded = key.precision > 0 ? `floor((${excluded}) / ${key.precision})` : excluded
      return { sql: `(SELECT ${rounded} FROM (SELECT ${text} AS x)) ${direction} NULLS LAST`, bindings }
    }
  }
}

/** The score of the first case that a document of the range meets. */
function evaluation(
  cases: { passes: ReturnType<typeof rangedFilter>; score: number }[],
  sql: SqlStorage,
  range: Range,
): SqlFragment {
  const whens = cases.map(({ passes, score }) => {
    const { sql: where, bindings } = shortFilter(sql, passes(range), range)
    return { sql: `WHEN ${where} THEN ${score}`, bindings }
  })
  const { sql: text, bindings } = join(whens, ' ')
  return { sql: `CASE ${text} ELSE 0 END`, bindings }
}

/** A filter with few bound values: an order may contain many filters, and a statement has a hundred bindings. */
function shortFilter(
  sql: SqlStorage,
  { where, bindings }: ReturnType<ReturnType<typeof rangedFilter>>,
  range: Range,
): SqlFragment {
  if (bindings.length <= 2) return { sql: where, bindings }
  const rows = sql.exec<{ seq: number }>(
    `SELECT d.seq FROM documents d WHERE d.seq BETWEEN ? AND ? AND (${where})`,
    range.low,
    range.high,
    ...bindings,
  )
  return oneOf(rows.toArray().map(({ seq }) => seq))
}

const reverse = (direction: Direction): Direction => (direction === 'ASC' ? 'DESC' : 'ASC')

/** The SQL of a document's value of a scalar field. Strings are in normal form, so case does not count. */
export function fieldValue(schema: StoredSchema, field: Field): string {
  const slot = schema.slots[field.name]!
  const column = isString(field) ? normColumn(slot) : scalarColumn(slot)
  return `(SELECT c.${column} FROM ${columnsTable(slot)} c WHERE c.seq = d.seq)`
}

/** Metres from the key's place to the document's place, or to the nearest of its places. */
export function nearestPlace(
  schema: StoredSchema,
  key: { field: Field; latitude: number; longitude: number },
): SqlFragment {
  const { table, columns } = storedValues(schema, key.field)
  const { sql, bindings } = distanceSql(columns, key.latitude, key.longitude)
  return {
    sql: `(SELECT ${isArray(key.field) ? `min(${sql})` : sql} FROM ${table} c WHERE c.seq = d.seq)`,
    bindings,
  }
}
