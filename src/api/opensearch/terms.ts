/** Queries for values: terms, prefixes and existence. */
import { type Clause, type Compiled, NONE, wordsOf } from './compiled'
import { type OpenSearchError, parsingError, shardError, unsupported } from './errors'
import type { Target } from './fields'
import { and, begins, equals, type Filter, or, plain, present, same } from './filter'

/** Documents with one of some values. */
export function values(target: Target | undefined, given: readonly unknown[]): Compiled {
  if (target === undefined) return NONE
  for (const value of given) {
    if (typeof value === 'object' || value === undefined) {
      throw parsingError(`A value of [${target.name}] has to be a string, a number or a boolean`)
    }
  }
  switch (target.kind) {
    case 'number':
    case 'boolean': {
      const wanted = given.map((value) =>
        target.kind === 'number' ? numeric(target, value) : truth(target, value),
      )
      const known = wanted.filter((value) => value !== undefined)
      return {
        filter: (negated) =>
          known.length === 0 ? negated : plain(target.name, `[${known.join(',')}]`, negated),
      }
    }
    case 'keyword':
      return {
        filter: (negated) => (target.name === 'id' ? equals : same)(target.name, given.map(String), negated),
      }
    case 'text':
      return { filter: (negated) => oneWord(target, given.map(String), negated) }
  }
  throw unsupported(`A term of [${target.name}]`)
}

/** In a text field a term is one word, so a value of several words matches nothing. */
function oneWord(target: Target, given: readonly string[], negated: boolean): Filter {
  return equals(
    target.name,
    given.filter((value) => /^\S+$/.test(value)),
    negated,
    false,
  )
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

export function exists({ name, body, fields }: Clause): Compiled {
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

export function prefix({ name, fields }: Clause, target: Target, value: string): Compiled {
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
