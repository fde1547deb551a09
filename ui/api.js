/** The page on /api: /openapi.json for human eyes. Whatever the document holds only ever becomes text. */
import { decoded } from './address.js'
import { element, inline } from './render.js'

/**
 * The parts of JSON Schema and OpenAPI that the document uses.
 * @typedef {{ $ref?: string, type?: string, title?: string, description?: string, properties?: Record<string, Schema>,
 *   required?: string[], items?: Schema, anyOf?: Schema[], minimum?: number, maximum?: number, minLength?: number,
 *   maxLength?: number, minItems?: number, maxItems?: number, pattern?: string, default?: unknown,
 *   'x-events'?: Record<string, Schema> }} Schema
 * @typedef {{ name: string, in: string, required: boolean, description?: string, schema: Schema }} Parameter
 * @typedef {{ description: string, content?: Record<string, { schema: Schema }> }} Answer
 * @typedef {{ operationId: string, summary: string, description?: string, parameters: Parameter[],
 *   'x-key-actions': string[], requestBody?: { content: Record<string, { schema: Schema }> },
 *   responses: Record<string, Answer> }} Operation
 */

/** @param {string} id @returns {HTMLElement} */
const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id))

/** @param {string} ref */
const nameOf = (ref) => ref.split('/').at(-1) ?? ref

/** @param {string | undefined} text */
const words = (text) => (text === undefined ? [] : inline(text))

/**
 * What kind of value a schema asks for, in a few words, with links to objects that have names.
 * @param {Schema} schema
 * @returns {(Node | string)[]}
 */
function kind(schema) {
  if (schema.$ref !== undefined) {
    const name = nameOf(schema.$ref)
    return [element('a', { href: `#${name}` }, name)]
  }
  if (schema.anyOf) return schema.anyOf.flatMap((one, index) => [index === 0 ? '' : ' or ', ...kind(one)])
  if (schema.type === 'array') return ['list of ', ...kind(schema.items ?? {})]
  return [schema.title ?? schema.type ?? 'anything']
}

/** What a value has to keep to. @param {Schema} schema */
function bounds(schema) {
  const { minimum, maximum, maxLength, maxItems, pattern } = schema
  const parts = []
  if (minimum !== undefined && maximum !== undefined) parts.push(`${minimum} to ${maximum}`)
  if (maxLength !== undefined) parts.push(`at most ${maxLength} characters`)
  if (maxItems !== undefined) parts.push(`at most ${maxItems}`)
  if (pattern !== undefined) parts.push(`matches ${pattern}`)
  if (schema.default !== undefined) parts.push(`default ${schema.default}`)
  return parts.join(', ')
}

/** @param {{ name: string, place?: string, required: boolean, schema: Schema, description?: string | undefined }} row */
function row({ name, place, required, schema, description }) {
  const limits = bounds(schema)
  const said = description ?? schema.description
  return element(
    'tr',
    {},
    element('th', { scope: 'row' }, element('code', {}, name)),
    element('td', {}, ...kind(schema), ...(place === undefined ? [] : [`, ${place}`])),
    element(
      'td',
      {},
      ...(required ? [element('strong', {}, 'required'), ' '] : []),
      ...words(said),
      ...(limits === '' ? [] : [said ? ` (${limits})` : limits]),
    ),
  )
}

/** @param {string} caption @param {HTMLElement[]} rows */
const table = (caption, rows) =>
  element(
    'div',
    { class: 'scroll' },
    element('table', {}, element('caption', {}, caption), element('tbody', {}, ...rows)),
  )

/** @param {string} caption @param {Schema} schema */
function properties(caption, schema) {
  const entries = Object.entries(schema.properties ?? {})
  return table(
    caption,
    entries.map(([name, value]) =>
      row({ name, required: schema.required?.includes(name) ?? false, schema: value }),
    ),
  )
}

/** @param {Operation['responses']} responses */
const answers = (responses) =>
  table(
    'Answers',
    Object.entries(responses).map(([status, { description, content = {} }]) =>
      element(
        'tr',
        {},
        element('th', { scope: 'row' }, element('code', {}, status)),
        element('td', {}, ...words(description)),
        element(
          'td',
          {},
          ...Object.values(content).flatMap(({ schema }, index) => [
            index === 0 ? '' : ' or ',
            ...kind(schema),
          ]),
        ),
      ),
    ),
  )

/** @param {string} path @param {string} method @param {Operation} operation @param {Record<string, Schema>} schemas */
function section(path, method, operation, schemas) {
  const { operationId, summary, description, parameters, requestBody, responses } = operation
  const [body] = Object.values(requestBody?.content ?? {})
  const shape = body?.schema.$ref === undefined ? body?.schema : schemas[nameOf(body.schema.$ref)]
  return element(
    'section',
    { id: operationId, 'aria-labelledby': `${operationId}-title` },
    element('h2', { id: `${operationId}-title` }, summary),
    element('p', { class: 'path' }, element('code', {}, `${method.toUpperCase()} ${path}`)),
    element('p', {}, ...words(description)),
    element(
      'p',
      { class: 'note' },
      'The key needs ',
      ...operation['x-key-actions'].flatMap((action, index) => [
        index === 0 ? '' : ' or ',
        element('code', {}, action),
      ]),
      '.',
    ),
    ...(parameters.length > 0
      ? [
          table(
            'Parameters',
            parameters.map((parameter) => row({ ...parameter, place: `in the ${parameter.in}` })),
          ),
        ]
      : []),
    ...(shape
      ? [properties('Body', shape), element('p', { class: 'note' }, ...words(shape.description))]
      : []),
    answers(responses),
  )
}

/** @param {string} name @param {Schema} schema */
function object(name, schema) {
  const events = Object.entries(schema['x-events'] ?? {})
  return element(
    'section',
    { id: name, 'aria-labelledby': `${name}-title` },
    element('h3', { id: `${name}-title` }, name),
    element('p', {}, ...words(schema.description)),
    ...(schema.properties ? [properties('Properties', schema)] : []),
    ...(events.length > 0
      ? [
          table(
            'Events',
            events.map(([type, data]) => row({ name: type, required: false, schema: data })),
          ),
        ]
      : []),
  )
}

async function show() {
  const response = await fetch('/openapi.json')
  if (!response.ok) throw new Error(`/openapi.json answered ${response.status}.`)
  const { info, paths, components } = await response.json()
  /** @type {Record<string, Schema>} */
  const schemas = components.schemas
  byId('about').replaceChildren(...words(info.description))
  const links = []
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      byId('operations').append(section(path, method, operation, schemas))
      const place = `${method.toUpperCase()} ${path}`
      const link = element('a', { href: `#${operation.operationId}` }, element('code', {}, place))
      links.push(element('li', {}, link, ` ${operation.summary}`))
    }
  }
  byId('contents').append(element('ul', {}, ...links))
  byId('schemas').append(...Object.entries(schemas).map(([name, schema]) => object(name, schema)))
  byId('schemas').hidden = false
  // What the address points at was not there when the browser looked for it.
  document.getElementById(decoded(location.hash.slice(1)))?.scrollIntoView()
}

show().catch((error) => {
  byId('about').replaceChildren(element('span', { class: 'error', role: 'alert' }, String(error.message)))
})
