/**
 * Says where JSON is broken. `JSON.parse` gives a position for some faults only, and never for an unexpected character.
 * This runs after the parser has refused a text, so it costs nothing on good ones.
 */

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
