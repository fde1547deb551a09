/** `sort`: as `sort_by`, and as the values that each hit shows. */
import { timeOf } from '../../lib/dates'
import { valuesAt } from '../../search/schema/values'
import type { Document } from '../../search/types'
import { illegalArgument, noValues, shardError, unsupported } from './errors'
import type { Fields, Target } from './fields'
import { isObject } from './route'

export interface Sort {
  /** the value for `sort_by` */
  by: string
  /** the values that a hit is sorted by; `score` if it is sorted by that */
  values(document: Document, score: number): unknown[]
}

interface Key {
  by: string
  value(document: Document, score: number): unknown
}

/** @returns undefined if hits are sorted by score. @throws ApiError 400 */
export function parseSort(given: unknown, fields: Fields): Sort | undefined {
  if (given === undefined) return undefined
  const keys = (Array.isArray(given) ? given : [given]).map((each) => keyOf(each, fields))
  if (keys.length === 0) return undefined
  if (keys.length > 3) throw unsupported('A [sort] by more than 3 keys')
  const isByScore = keys.length === 1 && keys[0]!.by === SCORE
  if (isByScore) return undefined
  return {
    by: keys.map(({ by }) => by).join(','),
    values: (document, score) => keys.map(({ value }) => value(document, score)),
  }
}

const SCORE = '_text_match:desc'

function keyOf(given: unknown, fields: Fields): Key {
  const [[name, body] = [], ...others] =
    typeof given === 'string' ? [[given, {}]] : isObject(given) ? Object.entries(given) : []
  if (typeof name !== 'string' || others.length > 0)
    throw illegalArgument('A key of [sort] has to name one field')
  const options = isObject(body) ? body : { order: body }
  const unknown = Object.keys(options).find((key) => !['order', 'missing', 'unmapped_type'].includes(key))
  if (unknown !== undefined) throw unsupported(`[${unknown}] of a [sort]`)
  const order = String(options.order ?? (name === '_score' ? 'desc' : 'asc')).toLowerCase()
  if (order !== 'asc' && order !== 'desc') throw illegalArgument(`Unknown SortOrder [${order}]`)
  if (name === '_score') return { by: `_text_match:${order}`, value: (_, score) => score }
  // Documents show no number of their own. They keep the order in which they came.
  if (name === '_doc') return { by: `_seq_id:${order}`, value: () => null }
  const target = fields.find(name)
  if (target === undefined) {
    if (options.unmapped_type !== undefined) return { by: `_seq_id:asc`, value: () => null }
    throw shardError(`No mapping found for [${name}] in order to sort on`)
  }
  checkSortable(name, target)
  const missing = options.missing ?? '_last'
  if (missing !== '_last' && missing !== '_first')
    throw unsupported(`[missing: ${String(missing)}] of a [sort]`)
  return {
    // Of strings, a missing one would be the highest value.
    by: `${target.name}(missing_values: ${missing.slice(1)}):${order}`,
    value: (document) => shown(target, valuesAt(document, target.name)[0]),
  }
}

function checkSortable(name: string, target: Target): void {
  if (target.kind === 'text') throw noValues(name)
  if (target.isArray) throw unsupported(`[sort] by [${name}], of which documents have lists,`)
  if (!target.hasValues || !target.field.sort) throw unsupported(`[sort] by [${name}]`)
}

function shown(target: Target, value: unknown): unknown {
  if (value === undefined) return null
  if (typeof value === 'boolean') return value ? 1 : 0
  const time = target.isDate ? timeOf(String(value)) : Number.NaN
  return Number.isNaN(time) ? value : time
}
