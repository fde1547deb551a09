/** `dynamic_templates` of a mapping: what becomes of strings that no property names. */
import { OpenSearchError, unsupported } from './errors'
import { isObject, type Json } from './route'

const malformed = (message: string): OpenSearchError =>
  new OpenSearchError(400, 'mapper_parsing_exception', message)

/**
 * Checks a list of templates. One of them can be for strings of all names, and make them `keyword` or `text`.
 * @throws OpenSearchError 400 for any other template
 */
export function parseTemplates(given: unknown): Json[] | undefined {
  if (given === undefined) return undefined
  if (!Array.isArray(given))
    throw malformed('Dynamic template syntax error. An array of named objects is expected.')
  for (const entry of given) {
    const [[name, template] = [], ...others] = isObject(entry) ? Object.entries(entry) : []
    if (name === undefined || others.length > 0 || !isObject(template)) {
      throw malformed('A dynamic template must be defined with a name')
    }
    if (!isOfAllStrings(template)) {
      throw unsupported(
        `The dynamic template [${name}]: only one of all strings (match_mapping_type: string), to type keyword or text, `,
      )
    }
  }
  return given
}

function isOfAllStrings({
  match_mapping_type: kind,
  match = '*',
  path_match = '*',
  mapping,
  ...others
}: Json): boolean {
  if (kind !== 'string' || match !== '*' || path_match !== '*' || Object.keys(others).length > 0) return false
  if (!isObject(mapping)) return false
  const { type, ignore_above: _, ...options } = mapping
  return (type === 'keyword' || type === 'text') && Object.keys(options).length === 0
}

/** Whether strings that no property names are `keyword`. The first template counts. */
export function areKeywords([first]: readonly Json[]): boolean {
  const [template] = Object.values(first ?? {})
  return isObject(template) && isObject(template.mapping) && template.mapping.type === 'keyword'
}
