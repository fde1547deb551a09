/**
 * JSON with exact whole numbers.
 *
 * `JSON.parse` reads every number as a double, which has 53 bits: 1712345678901234567 becomes another number. Here
 * a whole number that a double cannot hold becomes a BigInt. All others stay numbers, so only documents with such
 * values ever meet a BigInt. Once this module is loaded, `JSON.stringify` writes a BigInt as its digits.
 *
 * A reviver with source text access could do this too. But `JSON.parse` calls a reviver for every value: a list of
 * 1,536 floats takes ten times as long, and 4 MB of small numbers more than a second. Libraries parse in JavaScript
 * or use that reviver. So here long numbers become marked strings in the text, the platform parses that, and the
 * marked strings become numbers again.
 */

import { badRequest } from '../errors'

declare global {
  interface JSON {
    /** Text that `JSON.stringify` writes unchanged (ECMAScript 2026, JSON.parse source text access). */
    rawJSON(text: string): unknown
  }
}

Object.defineProperty(BigInt.prototype, 'toJSON', {
  value(this: bigint) {
    return JSON.rawJSON(String(this))
  },
  configurable: true,
  writable: true,
})

/**
 * Doubles end at 309 digits. Larger numbers are refused, as in Typesense's parser; reading them would also be slow.
 */
const MOST_DIGITS = 308

// Safe integers have up to 16 digits. The first test costs next to nothing on text without such a run. The second
// skips the fractions of floats; it costs a fifth of parsing them.
const LONG_RUN = /[1-9]\d{15}/
const LONG_NUMBER = /[[:,\s-]\d{16}/

/** Whole numbers of 16 digits and more, with the character before them, in text outside of strings. */
const LONG_INTEGERS = /([[:,\s])(-?\d{16,})(?![\d.eE])/g

/** Begins a string that stands for a number. It is secret, so no document can hold such a string. */
let mark: string | undefined

/**
 * Parses JSON. Whole numbers that a double cannot hold become BigInt.
 * @throws SyntaxError as `JSON.parse` does, and for a whole number of more than 308 digits
 */
export function parseExact(text: string): unknown {
  const parsed: unknown = JSON.parse(text)
  if (!LONG_RUN.test(text)) return parsed
  if (typeof parsed === 'number') return exactNumber(text.trim())
  if (!LONG_NUMBER.test(text)) return parsed
  mark ??= crypto.randomUUID()
  return restore(JSON.parse(marked(text, mark)), mark)
}

/** @returns undefined for text that is no JSON */
export function tryJson(text: string, parse: (text: string) => unknown = JSON.parse): unknown {
  try {
    return parse(text)
  } catch {
    return undefined
  }
}

/** @param text valid JSON @returns the text with each long whole number replaced by a marked string */
function marked(text: string, prefix: string): string {
  const pieces: string[] = []
  let done = 0
  for (let at = 0; at < text.length; ) {
    const quote = text.indexOf('"', at)
    const end = quote < 0 ? text.length : quote
    if (end - at >= MIN_LENGTH) {
      const outside = text.slice(at, end)
      if (LONG_RUN.test(outside)) {
        pieces.push(text.slice(done, at), outside.replace(LONG_INTEGERS, `$1"${prefix}$2"`))
        done = end
      }
    }
    at = quote < 0 ? end : afterClosedString(text, quote)
  }
  pieces.push(text.slice(done))
  return pieces.join('')
}

const MIN_LENGTH = 16

/** @param open where a string begins @returns where it ends */
function afterClosedString(text: string, open: number): number {
  for (let at = open + 1; ; ) {
    const close = text.indexOf('"', at)
    let backslashes = 0
    while (text[close - 1 - backslashes] === '\\') backslashes++
    at = close + 1
    if (backslashes % 2 === 0) return at
  }
}

function restore(value: unknown, prefix: string): unknown {
  if (typeof value === 'string') return value.startsWith(prefix) ? integer(value.slice(prefix.length)) : value
  if (Array.isArray(value)) {
    for (const [index, element] of value.entries()) {
      if (typeof element === 'string' || typeof element === 'object') value[index] = restore(element, prefix)
    }
  } else if (typeof value === 'object' && value !== null) {
    // Assign only to the object's own names, `__proto__` included, so that no assignment reaches a prototype.
    const object = value as Record<string, unknown>
    for (const name of Object.keys(object)) object[name] = restore(object[name], prefix)
  }
  return value
}

/**
 * Reads a whole number: as a number if that is exact, else as a BigInt.
 * @param digits decimal digits, with or without a sign
 * @throws SyntaxError for more than 308 digits
 */
export function integer(digits: string): number | bigint {
  const number = Number(digits)
  if (Number.isSafeInteger(number)) return number
  if (digits.length > MOST_DIGITS) throw new SyntaxError(`A number has more than ${MOST_DIGITS} digits.`)
  return BigInt(digits)
}

/**
 * Reads a number from text: a whole one exactly, any other as a double.
 * @returns NaN if it is no number
 */
export const exactNumber = (text: string): number | bigint =>
  /^[+-]?\d{1,308}$/.test(text) ? integer(text) : Number(text)

const INT64_MIN = -(2n ** 63n)
const INT64_MAX = 2n ** 63n - 1n

/** Whether a value is a 64-bit whole number. */
export function isInt64(value: unknown): value is number | bigint {
  if (typeof value === 'bigint') return value >= INT64_MIN && value <= INT64_MAX
  // As doubles the bounds are -2^63, which is included, and 2^63, which is not.
  return Number.isInteger(value) && (value as number) >= -(2 ** 63) && (value as number) < 2 ** 63
}

// =============================================================================
// Limits how deep JSON from outside is nested. The parser takes any depth, but code that walks the result overflows the stack,
// including the platform's own copying between objects.

export const MAX_JSON_DEPTH = 100

/** @throws ApiError 400 */
export function requireShallow(json: string): void {
  // Fast path: almost every text has fewer brackets than the limit.
  if (count(json, '{') + count(json, '[') <= MAX_JSON_DEPTH) return
  let depth = 0
  let inString = false
  for (let index = 0; index < json.length; index++) {
    const character = json[index]
    if (character === '"') inString = !inString
    else if (inString) index += character === '\\' ? 1 : 0
    else if (character === '}' || character === ']') depth--
    else if ((character === '{' || character === '[') && ++depth > MAX_JSON_DEPTH) {
      throw badRequest(`JSON is nested too deeply: at most ${MAX_JSON_DEPTH} levels are allowed.`)
    }
  }
}

/** @throws ApiError 400 for text that is nested too deeply; SyntaxError */
export function parseShallow(json: string): unknown {
  requireShallow(json)
  return JSON.parse(json)
}

/** Counts a bracket, up to the limit. */
function count(json: string, bracket: string): number {
  let found = 0
  for (
    let at = json.indexOf(bracket);
    at >= 0 && found <= MAX_JSON_DEPTH;
    at = json.indexOf(bracket, at + 1)
  ) {
    found++
  }
  return found
}

// =============================================================================
// Says where JSON is broken. `JSON.parse` gives a position for some faults only, and never for an unexpected character.
// This runs after the parser has refused a text, so it costs nothing on good ones.

const SPACE = /[ \t\r\n]*/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y
const LITERALS = ['true', 'false', 'null']

/** What may come next. */
type Next = 'value' | 'value or ]' | 'name' | 'name or }' | ':' | ', or end'

/** @returns where the first match of a sticky expression at `from` ends; `from` if there is none */
function after(expression: RegExp, text: string, from: number): number {
  expression.lastIndex = from
  return expression.test(text) ? expression.lastIndex : from
}

/** Steps over a string. @returns its end, or where it goes wrong as a negative number below 0 (`~at`) */
function afterString(text: string, open: number): number {
  for (let at = open + 1; at < text.length; ) {
    const code = text.charCodeAt(at)
    if (code === 0x22) return at + 1
    if (code < 0x20) return ~at
    if (code !== 0x5c) at++
    else {
      const end = after(ESCAPE, text, at)
      if (end === at) return ~at
      at = end
    }
  }
  return ~text.length
}

/** Steps over a value that is no list and no object. @returns its end, or `~at` as `afterString` does */
function afterScalar(text: string, from: number): number {
  if (text[from] === '"') return afterString(text, from)
  const literal = LITERALS.find((each) => each[0] === text[from])
  if (literal === undefined) {
    const end = after(NUMBER, text, from)
    return end > from ? end : ~from
  }
  for (let index = 0; index < literal.length; index++) {
    if (text[from + index] !== literal[index]) return ~(from + index)
  }
  return from + literal.length
}

/**
 * The first place at which a text stops being JSON.
 *
 * @returns its index in UTF-16 units, which is the text's length if the text ends too soon; undefined for JSON
 */
export function faultOf(text: string): number | undefined {
  const open: ('{' | '[')[] = []
  let next: Next = 'value'
  for (let at = 0; ; ) {
    at = after(SPACE, text, at)
    const character = text[at]
    if (character === undefined) return next === ', or end' && open.length === 0 ? undefined : at
    const inside = open.at(-1)
    const isEnd =
      (character === ']' && inside === '[' && (next === 'value or ]' || next === ', or end')) ||
      (character === '}' && inside === '{' && (next === 'name or }' || next === ', or end'))
    if (isEnd) {
      open.pop()
      next = ', or end'
      at++
    } else if (next === ', or end') {
      if (character !== ',' || inside === undefined) return at
      next = inside === '{' ? 'name' : 'value'
      at++
    } else if (next === ':') {
      if (character !== ':') return at
      next = 'value'
      at++
    } else if (next === 'name' || next === 'name or }') {
      if (character !== '"') return at
      const end = afterString(text, at)
      if (end < 0) return ~end
      next = ':'
      at = end
    } else if (character === '{' || character === '[') {
      open.push(character)
      next = character === '{' ? 'name or }' : 'value or ]'
      at++
    } else {
      const end = afterScalar(text, at)
      if (end < 0) return ~end
      next = ', or end'
      at = end
    }
  }
}

/**
 * Where a text stops being JSON, for the person who wrote it: `line 2, column 7: unexpected "]"`. Lines and columns begin
 * at 1; a column is a UTF-16 unit.
 *
 * @returns undefined for JSON
 */
export function describeFault(text: string): string | undefined {
  const at = faultOf(text)
  if (at === undefined) return undefined
  const lines = text.slice(0, at).split('\n')
  const place = `line ${lines.length}, column ${lines.at(-1)!.length + 1}`
  const found = text.codePointAt(at)
  if (found === undefined) return `${place}: the text ends too soon`
  // JSON writes a control character as its escape.
  return `${place}: unexpected ${JSON.stringify(String.fromCodePoint(found))}`
}
