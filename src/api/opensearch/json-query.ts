/**
 * The query DSL over a list of plain objects, for `_search` of connectors, models, memories and messages. These lists
 * are small and no collection holds them.
 */
import { wordsOf } from '../../models/words'
import { BOOL_OPTIONS } from './compiled'
import {
  illegalArgument,
  parsingError,
  requireKeys,
  requireOptions,
  searched,
  suggestion,
  unsupported,
} from './errors'
import { isObject, type Json } from './route'
import { parseSearchBody, SEARCH_KEYS_OF_LISTS } from './search'
import { FIRST, sourceFilter, starPattern } from './source'

/** Query parameters of a search over a list of objects. */
export const LIST_PARAMETERS = 'from size sort _source _source_includes _source_excludes'

/** A searchable object. */
export interface Entry {
  _index: string
  _id: string
  _version?: number
  _source: Json
}

const words = (text: string): string[] => wordsOf(text).map(({ folded }) => folded)

/** Answers a search over entries. @throws ApiError 400 that names what is unknown */
export function searchEntries(entries: readonly Entry[], body: Json, query: Record<string, string>): Json {
  requireKeys(body, SEARCH_KEYS_OF_LISTS, (key) => unsupported(`[${key}] of a search here`))
  const { from, size, source, sort, query: wanted } = parseSearchBody(body, query)
  const matches = matcherOf(wanted)
  const shown = sourceFilter(source, query)
  const found = entries.filter(({ _id, _source }) => matches({ ..._source, _id }))
  const order = orderOf(sort)
  if (order !== undefined) found.sort(order.compare)
  const hits = found.slice(from, from + size).map((entry) => ({
    ...entry,
    ...FIRST,
    _version: entry._version ?? 1,
    _score: order === undefined ? 1 : null,
    _source: shown === undefined ? undefined : shown(entry._source),
    ...(order !== undefined && { sort: order.values(entry) }),
  }))
  return searched(Date.now(), {
    total: { value: found.length, relation: 'eq' },
    max_score: hits.length === 0 || order !== undefined ? null : 1,
    hits,
  })
}

type Matcher = (document: Json) => boolean

/** @throws ApiError 400 */
export function matcherOf(query: unknown, depth = 0): Matcher {
  if (depth > 20) throw parsingError('Queries may be 20 deep in each other')
  const [[name, body] = [], ...others] = isObject(query) ? Object.entries(query) : []
  if (name === undefined || others.length > 0) throw parsingError('[_na] query malformed')
  if (!isObject(body)) throw parsingError(`[${name}] query malformed, no start_object after query name`)
  const compile = Object.hasOwn(QUERIES, name) ? QUERIES[name]! : undefined
  if (compile === undefined)
    throw parsingError(`unknown query [${name}]${suggestion(name, Object.keys(QUERIES), '')}`)
  return compile(body, depth)
}

const QUERIES: Record<string, (body: Json, depth: number) => Matcher> = {
  match_all: () => () => true,
  match_none: () => () => false,
  match: (body) => {
    const [field, { query, operator }] = fieldOf(body, 'query')
    const wanted = words(String(query))
    const every = String(operator ?? 'or').toLowerCase() === 'and'
    return withText(field, (text) => {
      const has = (word: string) => text.includes(word)
      return every ? wanted.every(has) : wanted.some(has)
    })
  },
  match_phrase: (body) => {
    const [field, { query }] = fieldOf(body, 'query')
    const wanted = ` ${words(String(query)).join(' ')} `
    return withText(field, (text) => ` ${text.join(' ')} `.includes(wanted))
  },
  term: (body) => {
    const [field, { value }] = fieldOf(body, 'value')
    return (document) => holds(document, field, String(value))
  },
  terms: (body) => {
    const [[field, list] = []] = Object.entries(body)
    if (field === undefined || !Array.isArray(list)) throw parsingError('[terms] takes a list of values')
    return (document) => list.some((value) => holds(document, field, String(value)))
  },
  ids: ({ values }) => {
    if (!Array.isArray(values)) throw parsingError('[ids] query takes a list of [values]')
    return ({ _id }) => values.includes(_id)
  },
  exists: ({ field }) => {
    if (typeof field !== 'string') throw parsingError('[exists] must be provided with a [field]')
    return (document) => valuesAt(document, field).length > 0
  },
  prefix: (body) => {
    const [field, { value }] = fieldOf(body, 'value')
    return (document) => valuesAt(document, field).some((each) => String(each).startsWith(String(value)))
  },
  wildcard: (body) => {
    const [field, { value, wildcard }] = fieldOf(body, 'value')
    const pattern = starPattern(String(value ?? wildcard))
    return (document) => valuesAt(document, field).some((each) => pattern.test(String(each)))
  },
  range: (body) => {
    const [field, bounds] = fieldOf(body, '')
    requireOptions('range', bounds, 'gt gte lt lte')
    return (document) =>
      valuesAt(document, field).some((value) =>
        Object.entries(bounds).every(([key, bound]) => {
          const order = compareValues(value, bound)
          return key.startsWith('gt')
            ? order > 0 || (key === 'gte' && order === 0)
            : order < 0 || (key === 'lte' && order === 0)
        }),
      )
  },
  bool: (body, depth) => {
    const part = (key: string): Matcher[] => {
      const given = body[key] ?? []
      return (Array.isArray(given) ? given : [given]).map((query) => matcherOf(query, depth + 1))
    }
    requireOptions('bool', body, BOOL_OPTIONS)
    const all = [...part('must'), ...part('filter')]
    const some = part('should')
    const none = part('must_not')
    const least = Number(body.minimum_should_match ?? (all.length === 0 && some.length > 0 ? 1 : 0))
    return (document) =>
      all.every((matches) => matches(document)) &&
      !none.some((matches) => matches(document)) &&
      some.filter((matches) => matches(document)).length >= least
  },
}

/** The field of a single-field query, and its options. */
function fieldOf(body: Json, short: string): [string, Json] {
  const [[field, given] = [], ...others] = Object.entries(body)
  if (field === undefined || others.length > 0) throw parsingError('A query takes one field')
  return [field, isObject(given) ? given : { [short]: given }]
}

/** The non-empty values of a dotted field. `.keyword` means the field itself. */
function valuesAt(document: Json, field: string): unknown[] {
  let values: unknown[] = [document]
  for (const name of field.replace(/\.keyword$/, '').split('.')) {
    values = values.flatMap((value) => {
      const inner = isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined
      return Array.isArray(inner) ? inner : [inner]
    })
  }
  return values.filter((value) => value !== undefined && value !== null)
}

const withText =
  (field: string, test: (text: string[]) => boolean): Matcher =>
  (document) =>
    valuesAt(document, field).some((value) => test(words(String(value))))

/** Whether a field has a value: as a word of its text, or as the whole of it. */
const holds = (document: Json, field: string, value: string): boolean =>
  valuesAt(document, field).some(
    (each) =>
      String(each) === value ||
      (!field.endsWith('.keyword') && words(String(each)).includes(value.toLowerCase())),
  )

const compareValues = (a: unknown, b: unknown): number => {
  if (typeof a === 'number' && Number.isFinite(Number(b))) return a - Number(b)
  const [left, right] = [String(a), String(b)]
  return left < right ? -1 : left > right ? 1 : 0
}

interface Order {
  compare(a: Entry, b: Entry): number
  values(entry: Entry): unknown[]
}

/** OpenSearch sorts times by their milliseconds, and shows those. */
const sortValue = (value: unknown): unknown =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value) ? Date.parse(value) : value

function orderOf(sort: unknown): Order | undefined {
  if (sort === undefined) return undefined
  const keys = (Array.isArray(sort) ? sort : [sort]).map((key) => {
    if (typeof key === 'string') return { field: key, sign: 1 }
    const [[field, how] = [], ...others] = isObject(key) ? Object.entries(key) : []
    const order = String(isObject(how) ? (how.order ?? 'asc') : how).toLowerCase()
    if (field === undefined || others.length > 0 || !['asc', 'desc'].includes(order)) {
      throw illegalArgument('[sort] takes fields with an [order] of asc or desc')
    }
    return { field, sign: order === 'desc' ? -1 : 1 }
  })
  const firstValue = ({ _id, _source }: Entry, field: string) =>
    valuesAt({ ..._source, _id }, field)[0] ?? null
  return {
    values: (entry) => keys.map(({ field }) => sortValue(firstValue(entry, field))),
    compare: (a, b) => {
      for (const { field, sign } of keys) {
        const [left, right] = [firstValue(a, field), firstValue(b, field)]
        // A missing value sorts last, whatever the order.
        const order =
          left === null ? (right === null ? 0 : 1) : right === null ? -1 : sign * compareValues(left, right)
        if (order !== 0) return order
      }
      return 0
    },
  }
}
