/** Functions of sort_by: distance of a number from an origin, decay with that distance, random order. */
import { ApiError } from '../../errors'
import { integer, isInt64 } from '../../lib/exact-json'
import { splitOutside } from '../fragment'

/** How far a number is from an origin, or a score that falls with the distance. */
export interface Decay {
  func: 'gauss' | 'exp' | 'linear' | 'diff'
  origin: number | bigint
  /** the distance at which the score is `decay` */
  scale: number | bigint
  /** distances up to this count as none */
  offset: number | bigint
  decay: number
}

export interface FieldOptions {
  /** where documents without a value go; `normal`: last for numbers, beside the largest value for strings */
  missing: 'first' | 'last' | 'normal'
  decay: Decay | undefined
}

const FUNCTIONS = ['gauss', 'exp', 'linear', 'diff'] as const

/**
 * The options of a field: `missing_values: first` or `origin: 10, func: gauss, scale: 5, decay: 0.5, offset: 1`.
 * @throws ApiError 400 in Typesense's words
 */
export function parseFieldOptions(field: string, text: string): FieldOptions {
  const given = new Map<string, string>()
  let missing: FieldOptions['missing'] = 'normal'
  for (const option of text === '' ? [] : splitOutside(text, ',')) {
    const [, name = '', value = ''] = /^(\w+)\s*:\s*([^:]*)$/.exec(option) ?? []
    if (name === 'missing_values' && (value === 'first' || value === 'last' || value === 'normal')) {
      missing = value
    } else if (['func', 'origin', 'scale', 'offset', 'decay'].includes(name)) given.set(name, value)
    else throw new ApiError(400, `Bad syntax for sorting field \`${field}\``)
  }
  return { missing, decay: given.size > 0 ? parseDecay(given) : undefined }
}

function parseDecay(given: ReadonlyMap<string, string>): Decay {
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
  return { func, origin, scale: scale ?? 1, offset: offset ?? 0, decay }
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
export function parseSeed(text: string): number {
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
export function parseEval(argument: string): { filter: string; score: number }[] {
  if (argument === '') throw new ApiError(400, 'The eval expression in sort_by is empty.')
  const list = /^\[(.*)\]$/s.exec(argument)
  if (!list) return [{ filter: argument, score: 1 }]
  const parts = splitOutside(list[1]!, ',')
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
