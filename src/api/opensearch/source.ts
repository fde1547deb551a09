/**
 * `_source` and documents. A document's `id` is its `_id` here, so a source's own `id` is stored under another name.
 * Everything else is the same for both.
 */
import { base64Url, fromBase64 } from '../../lib/base64'
import type { Document } from '../../search/types'
import { illegalArgument, type Json } from './errors'

/** Most stars in a name: a pattern with many can take very long to fail. */
const MOST_STARS = 8

/**
 * A name as a regular expression; `*` matches anything.
 * @param tail of the expression, after the name
 * @throws ApiError 400
 */
export function starPattern(text: string, tail = ''): RegExp {
  const parts = text.split(/\*+/).map((part) => part.replace(/[\\^$.+?()[\]{}|]/g, '\\$&'))
  if (parts.length > MOST_STARS + 1)
    throw illegalArgument(`A name takes at most ${MOST_STARS} stars: [${text}]`)
  return new RegExp(`^${parts.join('.*')}${tail}$`, 's')
}

/** The field that stores a source's own `id`. No source may use this name. */
const OWN_ID = '_source_id'

/** A field's name in the collection. */
export const storedName = (name: string): string => (name === 'id' ? OWN_ID : name)

/** A field's name in OpenSearch's words. */
export const shownName = (name: string): string => (name === OWN_ID ? 'id' : name)

/** @throws ApiError 400 for a reserved name */
export function toDocument(source: Json, id: string): Json {
  if (Object.hasOwn(source, OWN_ID)) {
    throw illegalArgument(`Field [${OWN_ID}] is reserved: it holds the [id] of a source.`)
  }
  const { id: own, ...rest } = source
  return { ...rest, ...(own !== undefined && { [OWN_ID]: own }), id }
}

export function toSource(document: Document): Json {
  const { id: _, [OWN_ID]: own, ...rest } = document
  return own === undefined ? rest : { id: own, ...rest }
}

/** There are no versions, so each document shows the first. */
export const FIRST = { _version: 1, _seq_no: 0, _primary_term: 1 }

/** Makes an id as OpenSearch does: 20 characters of URL-safe base64. */
export const newId = (): string => base64Url(crypto.getRandomValues(new Uint8Array(15)))

/** The text in plain base64. @throws if it is none */
export const textIn = (base64: string): string => new TextDecoder().decode(fromBase64(base64))

/** Selects what is shown of a source. undefined: nothing */
export type SourceFilter = ((source: Json) => Json) | undefined

/** Reads `_source` of a body, or the query parameters. @throws ApiError 400 */
export function sourceFilter(given: unknown, query: Record<string, string> = {}): SourceFilter {
  const { _source: named, _source_includes, _source_excludes } = query
  let includes: string[] = []
  let excludes: string[] = []
  let wanted = given
  if (named !== undefined) wanted = named === 'true' ? true : named === 'false' ? false : named.split(',')
  if (wanted === false) return undefined
  if (typeof wanted === 'string') includes = [wanted]
  else if (Array.isArray(wanted)) includes = names(wanted)
  else if (typeof wanted === 'object' && wanted !== null) {
    for (const [key, value] of Object.entries(wanted)) {
      const list = names(Array.isArray(value) ? value : [value])
      if (key === 'includes' || key === 'include') includes = list
      else if (key === 'excludes' || key === 'exclude') excludes = list
      else throw illegalArgument(`Unknown key for [_source]: [${key}]`)
    }
  } else if (wanted !== undefined && wanted !== true)
    throw illegalArgument('[_source] has to be a list of names')
  if (_source_includes !== undefined) includes = _source_includes.split(',')
  if (_source_excludes !== undefined) excludes = _source_excludes.split(',')
  if (includes.length === 0 && excludes.length === 0) return (source) => source
  const included = includes.map(patternOf)
  const excluded = excludes.map(patternOf)
  return (source) => select(source, '', included, excluded) ?? {}
}

/** Reads `fields`: selects values by the dotted names of their fields, each as a list. @throws ApiError 400 */
export function fieldsShown(given: unknown): SourceFilter {
  if (given === undefined) return undefined
  const wanted = (Array.isArray(given) ? given : [given]).map((each) => (isNamed(each) ? each.field : each))
  const shown = sourceFilter(names(wanted))
  return (source) => {
    const values: Record<string, unknown[]> = {}
    flatten(shown!(source), '', values)
    return values
  }
}

/** An entry without a `format` of its own. */
const isNamed = (each: unknown): each is { field: unknown } =>
  typeof each === 'object' && each !== null && Object.keys(each).join() === 'field'

function flatten(value: unknown, path: string, into: Record<string, unknown[]>): void {
  if (Array.isArray(value)) for (const each of value) flatten(each, path, into)
  else if (typeof value === 'object' && value !== null) {
    for (const [name, inner] of Object.entries(value))
      flatten(inner, (path && `${path}.${name}`) || name, into)
  } else into[path] = [...(into[path] ?? []), value]
}

/** What `filter_path` shows of an answer: paths, and with `-` before them what is left out. @throws ApiError 400 */
export function pathFilter(text: string): (answer: unknown) => unknown {
  const paths = text.split(',').filter((path) => path !== '')
  const included = paths.filter((path) => !path.startsWith('-')).map(patternOf)
  const excluded = paths.filter((path) => path.startsWith('-')).map((path) => patternOf(path.slice(1)))
  return (answer) => below(answer, '', included, excluded) ?? {}
}

function names(list: unknown[]): string[] {
  if (!list.every((name) => typeof name === 'string'))
    throw illegalArgument('[_source] has to be a list of names')
  return list
}

/** Says whether a dotted path is selected, and whether something below it may be. */
interface Pattern {
  covers(path: string): boolean
  reaches(path: string): boolean
}

function patternOf(text: string): Pattern {
  const expression = starPattern(text, '(?:\\..*)?')
  const [head = '', ...others] = text.split('*')
  return {
    covers: (path) => expression.test(path),
    reaches: (path) => head.startsWith(`${path}.`) || (others.length > 0 && `${path}.`.startsWith(head)),
  }
}

function select(value: Json, path: string, included: Pattern[], excluded: Pattern[]): Json | undefined {
  const kept: Json = {}
  for (const [name, inner] of Object.entries(value)) {
    const at = path + name
    if (excluded.some(({ covers }) => covers(at))) continue
    const covered = included.length === 0 || included.some(({ covers }) => covers(at))
    if (covered && excluded.length === 0) kept[name] = inner
    else if (covered || included.some(({ reaches }) => reaches(at))) {
      const part = below(inner, `${at}.`, covered ? [] : included, excluded)
      if (part !== undefined) kept[name] = part
      // It is shown without what is left out, which is all of it.
      else if (covered) kept[name] = Array.isArray(inner) ? [] : {}
    }
  }
  return Object.keys(kept).length > 0 || path === '' ? kept : undefined
}

function below(value: unknown, path: string, included: Pattern[], excluded: Pattern[]): unknown {
  if (Array.isArray(value)) {
    const kept = value
      .map((each) => below(each, path, included, excluded))
      .filter((each) => each !== undefined)
    return kept.length > 0 ? kept : undefined
  }
  if (typeof value !== 'object' || value === null) return included.length === 0 ? value : undefined
  return select(value as Json, path, included, excluded)
}
