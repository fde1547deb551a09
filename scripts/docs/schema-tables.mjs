/** Schemas of openapi.json as tables. */
import { escaped, inline } from './markdown.mjs'

/**
 * The parts of JSON Schema and OpenAPI that the document uses.
 * @typedef {{ $ref?: string, type?: string, title?: string, description?: string, properties?: Record<string, Schema>,
 *   required?: string[], items?: Schema, anyOf?: Schema[], minimum?: number, maximum?: number, maxLength?: number,
 *   maxItems?: number, pattern?: string, default?: unknown, 'x-events'?: Record<string, Schema> }} Schema
 * @typedef {{ name: string, in: string, required: boolean, description?: string, schema: Schema }} Parameter
 * @typedef {{ description: string, content?: Record<string, { schema: Schema }> }} Answer
 */

/** @param {string} ref */
const nameOf = (ref) => ref.split('/').at(-1) ?? ref

/** What kind of value a schema asks for, in a few words. @param {Schema} schema @returns {string} HTML */
function kind(schema) {
  if (schema.$ref !== undefined) {
    const name = nameOf(schema.$ref)
    return `<a href="#${name}">${name}</a>`
  }
  if (schema.anyOf) return schema.anyOf.map(kind).join(' or ')
  if (schema.type === 'array') return `list of ${kind(schema.items ?? {})}`
  return escaped(schema.title ?? schema.type ?? 'anything')
}

/** What a value has to keep to. @param {Schema} schema */
function bounds({ minimum, maximum, maxLength, maxItems, pattern, default: otherwise }) {
  const parts = []
  if (minimum !== undefined && maximum !== undefined) parts.push(`${minimum} to ${maximum}`)
  if (maxLength !== undefined) parts.push(`at most ${maxLength} characters`)
  if (maxItems !== undefined) parts.push(`at most ${maxItems}`)
  if (pattern !== undefined) parts.push(`matches <code>${escaped(pattern)}</code>`)
  if (otherwise !== undefined) parts.push(`default ${escaped(JSON.stringify(otherwise))}`)
  return parts.join(', ')
}

/** @param {string} caption @param {string[]} rows */
const table = (caption, rows) =>
  `<div class="table fields" tabindex="0"><table><caption>${caption}</caption><tbody>${rows.join('')}</tbody></table></div>`

/** @param {string} name @param {string} type HTML @param {string} said HTML */
const row = (name, type, said) =>
  `<tr><th scope="row"><code>${escaped(name)}</code></th><td>${type}</td><td>${said}</td></tr>`

/** @param {Schema} schema @param {boolean} required @param {string} [description] */
function words(schema, required, description = schema.description) {
  const limits = bounds(schema)
  const must = required ? '<strong>required</strong> ' : ''
  const said = description === undefined ? '' : inline(description)
  return `${must}${said}${limits === '' ? '' : said === '' ? limits : ` (${limits})`}`
}

/** @param {Parameter[]} given */
export const parameters = (given) =>
  given.length === 0
    ? ''
    : table(
        'Parameters',
        given.map(({ name, in: place, required, description, schema }) =>
          row(name, `${kind(schema)}, in the ${place}`, words(schema, required, description)),
        ),
      )

/** @param {string} caption @param {Schema | undefined} schema @param {Record<string, Schema>} schemas */
export function propertiesOf(caption, schema, schemas = {}) {
  const shape = schema?.$ref === undefined ? schema : schemas[nameOf(schema.$ref)]
  if (shape?.properties === undefined) return ''
  const rows = Object.entries(shape.properties).map(([name, value]) =>
    row(name, kind(value), words(value, shape.required?.includes(name) ?? false)),
  )
  return table(caption, rows)
}

/** @param {Record<string, Answer>} responses */
export const answers = (responses) =>
  table(
    'Answers',
    Object.entries(responses).map(([status, { description, content = {} }]) => {
      const kinds = Object.values(content).map(({ schema }) => kind(schema))
      return row(status, kinds.join(' or '), inline(description))
    }),
  )

/** @param {string} name @param {Schema} schema */
export function objectSection(name, schema) {
  const said = schema.description === undefined ? '' : `<p>${inline(schema.description)}</p>`
  const events = Object.entries(schema['x-events'] ?? {})
  const listed =
    events.length === 0
      ? ''
      : table(
          'Events',
          events.map(([type, data]) => row(type, kind(data), '')),
        )
  return `<section aria-labelledby="${name}"><h3 id="${name}"><a href="#${name}">${name}</a></h3>${said}${propertiesOf('Properties', schema)}${listed}</section>`
}
