/** Checks and coerces single values, by Typesense's rules. */
import { integer, isInt64 } from '../../lib/exact-json'
import type { Kind } from '../schema/plan'

/** The value cannot be coerced to the type. */
export const INVALID = Symbol('invalid')
/** A whole number outside the type's range. */
export const OVERFLOW = Symbol('overflow')

const INT32_MAX = 2 ** 31 - 1
const INT32_MIN = -(2 ** 31)

const isNumber = (value: unknown): value is number | bigint =>
  typeof value === 'bigint' || (typeof value === 'number' && Number.isFinite(value))

const isPair = (value: unknown): value is [unknown, unknown] => Array.isArray(value) && value.length === 2

/** @returns the value as it is, OVERFLOW, or INVALID */
export function checked(kind: Kind, value: unknown): unknown {
  switch (kind) {
    case 'string':
      return typeof value === 'string' ? value : INVALID
    case 'int32':
      if (typeof value === 'bigint') return OVERFLOW
      if (!Number.isInteger(value)) return INVALID
      return (value as number) > INT32_MAX || (value as number) < INT32_MIN ? OVERFLOW : value
    case 'int64':
      return isInt64(value) ? value : INVALID
    case 'float':
      return isNumber(value) ? value : INVALID
    case 'bool':
      return typeof value === 'boolean' ? value : INVALID
    case 'geopoint':
      return isPair(value) && isNumber(value[0]) && isNumber(value[1]) ? value : INVALID
    case 'geopolygon':
      return Array.isArray(value) && value.length >= 6 && value.length % 2 === 0 && value.every(isNumber)
        ? value
        : INVALID
    default:
      return value
  }
}

/** @returns a value of the type, OVERFLOW, or INVALID */
export function coerced(kind: Kind, value: unknown): unknown {
  switch (kind) {
    case 'string':
      return isNumber(value) || typeof value === 'boolean' ? String(value) : INVALID
    case 'int32':
    case 'int64':
      return checked(kind, wholeNumber(value))
    case 'float':
      return floatNumber(value)
    case 'bool':
      return truth(value)
    case 'geopoint': {
      if (!isPair(value)) return INVALID
      const point = value.map((part) => (isNumber(part) ? part : floatNumber(part)))
      return point.every(isNumber) ? point : INVALID
    }
    case 'geopolygon':
      if (!Array.isArray(value)) return INVALID
      return checked(
        'geopolygon',
        value.map((part) => (isNumber(part) ? part : floatNumber(part))),
      )
    default:
      return INVALID
  }
}

function wholeNumber(value: unknown): unknown {
  if (typeof value === 'bigint') return value
  if (isNumber(value)) return Math.trunc(Number(value))
  if (typeof value === 'boolean') return value ? 1 : 0
  return typeof value === 'string' && /^[+-]?\d{1,308}$/.test(value) ? integer(value) : INVALID
}

function floatNumber(value: unknown): unknown {
  if (typeof value === 'boolean') return value ? 1 : 0
  if (typeof value !== 'string' || !/^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?$/.test(value)) return INVALID
  const number = Number(value)
  return Number.isFinite(number) ? number : INVALID
}

function truth(value: unknown): unknown {
  if (value === 1 || value === 0) return value === 1
  if (typeof value !== 'string') return INVALID
  const word = value.toLowerCase()
  if (word === 'true') return true
  return word === 'false' ? false : INVALID
}
