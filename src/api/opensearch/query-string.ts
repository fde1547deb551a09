/**
 * A simple `query_string`: words, "phrases", `field:word`, `word*`, and AND or OR between them. Other Lucene syntax
 * is refused; the error names its sign.
 */
import { parsingError, unsupported } from './errors'
import type { Json } from './route'

const PART = /(?:([\w.@-]+):)?(?:"([^"]*)"|(\S+))/g
const SYNTAX = /[+\-!(){}[\]^~?\\/<>=]|&&|\|\|/

/**
 * Converts the query to the DSL.
 * @param fields the fields of words that name none; undefined for all
 * @param every whether all words must match by default
 */
export function parseQueryString(query: unknown, fields: unknown, every: boolean): Json {
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
export function parseSimple(query: unknown, fields: unknown, every: boolean): Json {
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

const named = (fields: unknown): Json =>
  fields === undefined ? {} : { fields: Array.isArray(fields) ? fields : [fields] }
