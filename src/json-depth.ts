/**
 * How deep JSON from outside may be nested. Its parser takes any depth, but whatever walks the result afterwards,
 * the platform's own copying between objects included, ends with the stack.
 */
import { ApiError } from './errors'

export const MAX_JSON_DEPTH = 100

/** @throws ApiError 400 */
export function requireShallow(json: string): void {
  // Nearly every text has fewer brackets than levels are allowed, and is done with here.
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

/** How often a bracket occurs, counted no further than is of interest. */
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
