/**
 * Limits how deep JSON from outside is nested. The parser takes any depth, but code that walks the result overflows the stack,
 * including the platform's own copying between objects.
 */
import { ApiError } from '../errors'

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
      throw new ApiError(400, `JSON is nested too deeply: at most ${MAX_JSON_DEPTH} levels are allowed.`)
    }
  }
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
