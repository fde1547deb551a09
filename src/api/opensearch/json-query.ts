/**
 * The query DSL over a list of plain objects, for `_search` of connectors, models, memories and messages. These lists
 * are small and no collection holds them.
 */
import { wordsOf } from '../../models/words'
import { valuesAt as valuesIn } from '../../search/schema/values'
import { compare } from '../../search/text/terms'
import { BOOL_OPTIONS, clauseIn } from './compiled'
import { illegalArgument, parsingError, requireKeys, requireOptions, searched, unsupported } from './errors'
import { isObject, type Json, listed, onlyEntry } from './route'
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
function matcherOf(query: unknown, depth = 0): Matcher {
  const [compile, { body }] = clauseIn(query, QUERIES, depth)
  return compile(body, depth)
}

/** A query of one field, which matches where one of the field's values fits what is asked. */
const ofField =
  (short: string, fits: (asked: Json, field: string) => (value: unknown) => boolean) =>
  (body: Json): Matcher => {
    const [field, given] = onlyEntry(body) ?? []
    if (field === undefined) throw parsingError('A query takes one field')
    const fit = fits(isObject(given) ? given : { [short]: given }, field)
    return (document) => valuesAt(document, field).some(fit)
  }

const QUERIES: Record<string, (body: Json, depth: number) => Matcher> = {
  match_all: () => () => true,
  match_none: () => () => false,
  match: ofField('query', ({ query, operator }) => {
    const wanted = words(String(query))
    const every = String(operator ?? 'or').toLowerCase() === 'and'
    return (value) => {
      const text = words(String(value))
      const has = (word: string) => text.includes(word)
      return every ? wanted.every(has) : wanted.some(has)
    }
  }),
  match_phrase: ofField('query', ({ query }) => {
    const wanted = ` ${words(String(query)).join(' ')} `
    return (value) => ` ${words(String(value)).join(' ')} `.includes(wanted)
  }),
  term: ofField('value', ({ value }, field) => holds(field, [value])),
  terms: ofField('values', ({ values }, field) => {
    if (!Array.isArray(values)) throw parsingError('[terms] takes a list of values')
    return holds(field, values)
  }),
  ids: ({ values }) => {
    if (!Array.isArray(values)) throw parsingError('[ids] query takes a list of [values]')
    return ({ _id }) => values.includes(_id)
  },
  exists: ({ field }) => {
    if (typeof field !== 'string') throw parsingError('[exists] must be provided with a [field]')
    return (document) => valuesAt(document, field).length > 0
  },
  prefix: ofField(
    'value',
    ({ value }) =>
      (each) =>
        String(each).startsWith(String(value)),
  ),
  wildcard: ofField('value', ({ value, wildcard }) => {
    const pattern = starPattern(String(value ?? wildcard))
    return (each) => pattern.test(String(each))
  }),
  range: ofField('', (bounds) => {
    requireOptions('range', bounds, 'gt gte lt lte')
    return (value) =>
      Object.entries(bounds).every(([key, bound]) => {
        const order = compareValues(value, bound)
        return (key.endsWith('e') && order === 0) || (key.startsWith('gt') ? order > 0 : order < 0)
      })
  }),
  bool: (body, depth) => {
    const part = (key: string) => listed(body[key]).map((query) => matcherOf(query, depth + 1))
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

/** The values of a dotted field. `.keyword` means the field itself. */
const valuesAt = (document: Json, field: string): unknown[] =>
  valuesIn(document, field.replace(/\.keyword$/, ''))

/** Whether a value is one of those wanted, or one of its words is. */
const holds = (field: string, wanted: readonly unknown[]) => (value: unknown) => {
  const inside = field.endsWith('.keyword') ? [] : words(String(value))
  return wanted.map(String).some((each) => each === String(value) || inside.includes(each.toLowerCase()))
}

const compareValues = (a: unknown, b: unknown): number =>
  typeof a === 'number' && Number.isFinite(Number(b)) ? a - Number(b) : compare(String(a), String(b))

/** OpenSearch sorts times by their milliseconds, and shows those. */
const sortValue = (value: unknown): unknown =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value) ? Date.parse(value) : value

function orderOf(sort: unknown) {
  if (sort === undefined) return undefined
  const keys = listed(sort).map((key) => {
    if (typeof key === 'string') return { field: key, sign: 1 }
    const [field, how] = onlyEntry(key) ?? []
    const order = String(isObject(how) ? (how.order ?? 'asc') : how).toLowerCase()
    if (field === undefined || !['asc', 'desc'].includes(order)) {
      throw illegalArgument('[sort] takes fields with an [order] of asc or desc')
    }
    return { field, sign: order === 'desc' ? -1 : 1 }
  })
  const firstValue = ({ _id, _source }: Entry, field: string) =>
    valuesAt({ ..._source, _id }, field)[0] ?? null
  return {
    values: (entry: Entry) => keys.map(({ field }) => sortValue(firstValue(entry, field))),
    compare: (a: Entry, b: Entry) => {
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
