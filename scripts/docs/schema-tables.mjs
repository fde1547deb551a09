/** Schemas of openapi.json as tables of Markdown. */

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

/** What kind of value a schema asks for, in a few words. @param {Schema} schema @returns {string} */
function kind(schema) {
  if (schema.$ref !== undefined) return `[${nameOf(schema.$ref)}](#${nameOf(schema.$ref)})`
  if (schema.anyOf) return schema.anyOf.map(kind).join(' or ')
  if (schema.type === 'array') return `list of ${kind(schema.items ?? {})}`
  return schema.title ?? schema.type ?? 'anything'
}

/** What a value has to keep to. @param {Schema} schema */
function bounds({ minimum, maximum, maxLength, maxItems, pattern, default: otherwise }) {
  const parts = []
  if (minimum !== undefined && maximum !== undefined) parts.push(`${minimum} to ${maximum}`)
  if (maxLength !== undefined) parts.push(`at most ${maxLength} characters`)
  if (maxItems !== undefined) parts.push(`at most ${maxItems}`)
  if (pattern !== undefined) parts.push(`matches \`${pattern}\``)
  if (otherwise !== undefined) parts.push(`default \`${JSON.stringify(otherwise)}\``)
  return parts.join(', ')
}

/** @param {string} caption of what is named in the first column @param {string[][]} rows */
const table = (caption, rows) => {
  const lines = [[caption, 'Type', 'Meaning'], ['---', '---', '---'], ...rows].map(
    (cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|').replace(/\s+/g, ' ')).join(' | ')} |`,
  )
  return `${lines.join('\n')}\n\n`
}

/** @param {string} name @param {string} type @param {string} said */
const row = (name, type, said) => [`\`${name}\``, type, said]

/** @param {Schema} schema @param {boolean} required @param {string} [said] */
function words(schema, required, said = schema.description ?? '') {
  const limits = bounds(schema)
  const must = required ? '**required** ' : ''
  return `${must}${said}${limits === '' ? '' : said === '' ? limits : ` (${limits})`}`
}

/** @param {Parameter[]} given */
export const parameters = (given) =>
  given.length === 0
    ? ''
    : table(
        'Parameter',
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
    'Answer',
    Object.entries(responses).map(([status, { description, content = {} }]) => {
      const kinds = Object.values(content).map(({ schema }) => kind(schema))
      return row(status, kinds.join(' or '), description)
    }),
  )

/** @param {string} name @param {Schema} schema */
export function objectSection(name, schema) {
  const events = Object.entries(schema['x-events'] ?? {})
  const listed =
    events.length === 0
      ? ''
      : table(
          'Event',
          events.map(([type, data]) => row(type, kind(data), '')),
        )
  return `### ${name} {#${name}}\n\n${schema.description ?? ''}\n\n${propertiesOf('Property', schema)}${listed}`
}
