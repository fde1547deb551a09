/**
 * Templates of connectors: `${parameters.x}`, `${parameters.x:-default}` and `${credential.x}`.
 *
 * A template is filled in one pass. Values are never searched for placeholders, so that a question cannot read a
 * connector's parameters.
 */
import { ApiError } from '../../errors'

export type Values = Readonly<Record<string, unknown>>

const PLACEHOLDER = /\$\{(parameters|credential)\.([\w.-]+?)(?::-([^}]*))?\}/g

/** Names that a template asks for. */
export const namesIn = (template: string, group: 'parameters' | 'credential'): string[] =>
  [...template.matchAll(PLACEHOLDER)].flatMap(([, found, name]) => (found === group ? [name!] : []))

/**
 * Fills a URL or a header.
 * @throws ApiError 400 for a placeholder that nothing fills
 */
export function fillText(template: string, parameters: Values, credential: Values = {}): string {
  const missing: string[] = []
  const filled = template.replace(PLACEHOLDER, (_, group, name, otherwise) => {
    const values: Values = group === 'parameters' ? parameters : credential
    const value = Object.hasOwn(values, name) ? values[name] : otherwise
    if (value === undefined) missing.push(name)
    return textOf(value)
  })
  requireFilled(missing)
  return filled
}

/**
 * Fills a body that is JSON with placeholders in it. Inside a string, a value is inserted as escaped text. Elsewhere
 * it is inserted as JSON: text that is valid JSON as it is, other text as a string. So no value can end the string
 * around it.
 * @param lenient leave placeholders that nothing fills
 * @throws ApiError 400 for a placeholder that nothing fills, and if the result is not JSON
 */
export function fillJson(template: string, parameters: Values, lenient = false): Record<string, unknown> {
  const missing: string[] = []
  let filled = ''
  let end = 0
  let inString = false
  for (const match of template.matchAll(PLACEHOLDER)) {
    const [whole, group, name, otherwise] = match
    const before = template.slice(end, match.index)
    inString = endsInString(before, inString)
    filled += before
    end = match.index + whole.length
    const given = group === 'parameters' && Object.hasOwn(parameters, name!) ? parameters[name!] : undefined
    const value = given ?? otherwise
    if (value === undefined) {
      if (lenient) filled += inString ? escaped(whole) : JSON.stringify(whole)
      else missing.push(name!)
    } else if (given === undefined && otherwise === 'null' && inString && isAlone(filled, template, end)) {
      // "${parameters.x:-null}" gives null, not the string "null".
      filled = `${filled.slice(0, -1)}null`
      end += 1
      inString = false
    } else filled += inString ? escaped(textOf(value)) : jsonOf(value)
  }
  requireFilled(missing)
  return parse(filled + template.slice(end))
}

const isAlone = (filled: string, template: string, end: number): boolean =>
  filled.endsWith('"') && template[end] === '"'

function endsInString(text: string, inString: boolean): boolean {
  let inside = inString
  for (let at = 0; at < text.length; at++) {
    if (inside && text[at] === '\\') at++
    else if (text[at] === '"') inside = !inside
  }
  return inside
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value ?? ''))

const escaped = (text: string): string => JSON.stringify(text).slice(1, -1)

function jsonOf(value: unknown): string {
  if (typeof value !== 'string') return JSON.stringify(value)
  try {
    JSON.parse(value)
    return value
  } catch {
    return JSON.stringify(value)
  }
}

function parse(text: string): Record<string, unknown> {
  try {
    const body: unknown = JSON.parse(text)
    if (typeof body === 'object' && body !== null) return body as Record<string, unknown>
  } catch {
    // Reported below. The parser's own message would quote the prompt.
  }
  throw new ApiError(
    400,
    'Invalid payload: the request_body of the connector is no JSON when it is filled in.',
  )
}

function requireFilled(missing: string[]): void {
  if (missing.length === 0) return
  const names = [...new Set(missing)].join(', ')
  throw new ApiError(400, `Some parameter placeholder not filled in payload: ${names}`)
}
