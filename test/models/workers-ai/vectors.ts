/** What stands in for the models' arithmetic: deterministic, and near for texts that share words. */

const WORD = /[\p{L}\p{N}]+/gu

export const wordsOf = (text: string): string[] => text.toLowerCase().match(WORD) ?? []

/** FNV-1a. */
function hash(text: string): number {
  let value = 0x811c9dc5
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 0x01000193)
  return value >>> 0
}

/** @returns a vector of length 1 */
export function embed(text: string, dimensions: number, tokens: number, salt: string): number[] {
  const vector = new Array<number>(dimensions).fill(0)
  for (const word of ['', ...wordsOf(text).slice(0, tokens)]) {
    const value = hash(salt + word)
    vector[value % dimensions]! += value & 0x10000 ? 1 : -1
  }
  const length = Math.hypot(...vector) || 1
  return vector.map((part) => part / length)
}

/** How well a text answers a query, between 0 and 1: which part of the query's words it holds. */
export function score(query: string, text: string): number {
  const asked = new Set(wordsOf(query))
  const held = new Set(wordsOf(text))
  if (asked.size === 0) return 0
  let shared = 0
  for (const word of asked) if (held.has(word)) shared += 1
  // Longer texts score a little lower, so that few scores are equal.
  return (shared / asked.size) * (1 - Math.min(held.size, 1000) / 100_000)
}
