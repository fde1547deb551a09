/**
 * JSON as Typesense writes it into prompts and counts it in budgets (contract 1.5): sorted keys, a line break
 * after every bracket and element, no indentation, `": "` after keys.
 */

/** Nlohmann's `dump(0)`. Values that JSON cannot hold are left out of objects and become null in arrays. */
export function serialise(value: unknown): string {
  if (Array.isArray(value)) {
    return value.length === 0 ? '[]' : `[\n${value.map(serialise).join(',\n')}\n]`
  }
  if (value !== null && typeof value === 'object') {
    const entries = Object.entries(value)
      .filter(([, item]) => item !== undefined)
      // By code point, as std::map orders UTF-8 keys.
      .sort(([a], [b]) => compareCodePoints(a, b))
    if (entries.length === 0) return '{}'
    return `{\n${entries.map(([key, item]) => `${JSON.stringify(key)}: ${serialise(item)}`).join(',\n')}\n}`
  }
  return JSON.stringify(value) ?? 'null'
}

/** UTF-8 sorts by code point. UTF-16 differs where surrogates meet U+E000 and above. */
function compareCodePoints(a: string, b: string): number {
  for (let index = 0; index < a.length && index < b.length; index++) {
    const left = a.charCodeAt(index)
    const right = b.charCodeAt(index)
    if (left === right) continue
    const surrogates = isSurrogate(left) !== isSurrogate(right)
    return (left < right ? -1 : 1) * (surrogates && Math.min(left, right) >= 0xd800 ? -1 : 1)
  }
  return a.length - b.length
}

const isSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdfff

const encoder = new TextEncoder()

/** Bytes of a text in UTF-8. */
export const byteLength = (text: string): number => encoder.encode(text).byteLength

/**
 * Bytes of a serialised array of items with these lengths: two more for each item, and two for the brackets.
 */
export const arrayBytes = (items: number[]): number => items.reduce((sum, bytes) => sum + bytes + 2, 2)
