/** The pages of the API reference: Parley's own routes and schemas from openapi.json, those of other protocols from wires/. */
import { readFileSync } from 'node:fs'
import { anchors } from './anchors.mjs'
import { ownExamples, wireOf } from './wires/wire.mjs'

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
function objectSection(name, schema) {
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

/** @typedef {import('./wires/wire.mjs').Wire} Wire */

/** The wires that are not Parley's own. */
export const wires = ['typesense', 'opensearch', 'chat'].map((name) =>
  wireOf(readFileSync(new URL(`wires/${name}.yaml`, import.meta.url), 'utf8')),
)

const ORIGIN = 'http://localhost:8108'

/** Hono's syntax of a path as readers know it: `{id}`. @param {string} path */
export const readable = (path) => path.replace(/:(\w+)(\{[^}]*\})?/g, '{$1}')

/** @typedef {{ method: string, send: string, body?: unknown, header: Wire['header'], stream?: boolean }} Example */

/** @param {unknown} body */
const textOf = (body) => (typeof body === 'string' ? body : JSON.stringify(body, undefined, 2))

/** @param {Example} example @returns {string} a command for a shell */
export function curl({ method, send, body, header, stream }) {
  const key = header === 'Authorization' ? 'Authorization: Bearer xyz' : 'X-TYPESENSE-API-KEY: xyz'
  const verb = method === (body === undefined ? 'GET' : 'POST') ? '' : ` -X ${method}`
  const lines = [`curl${stream ? ' -N' : ''}${verb} '${ORIGIN}${send}'`, `-H '${key}'`]
  if (stream && method === 'GET') lines.push("-H 'Accept: text/event-stream'")
  if (body !== undefined) {
    const type = typeof body === 'string' ? 'application/x-ndjson' : 'application/json'
    lines.push(`-H 'Content-Type: ${type}'`)
    lines.push(
      `${typeof body === 'string' ? '--data-binary' : '-d'} '${textOf(body).replaceAll("'", "'\\''")}'`,
    )
  }
  return lines.join(' \\\n  ')
}

/** As an attribute of HTML on one line. @param {string} text */
export const quoted = (text) => text.replace(/[&<>"\n]/g, (character) => `&#${character.charCodeAt(0)};`)

/** @param {Example} example */
const shown = (example) => `\`\`\`sh
${curl(example)}
\`\`\`
`

/** @param {Wire} wire */
function wirePage({ name, title, about, header, groups }) {
  const anchorOf = anchors()
  const sections = groups.map((group) => {
    const id = anchorOf(group.title)
    const routes = group.routes.map(({ method, path, what, send = path, body, gives }) => {
      const place = readable(path)
      const [first = 'GET'] = method.split(', ')
      return `### ${method} \`${place}\` {#${anchorOf(`${method} ${place}`)}}

${what}

${shown({ method: first, send, body, header, stream: gives === 'stream' })}`
    })
    return `## ${group.title} {#${id}}\n\n${group.about ?? ''}\n\n${routes.join('\n')}`
  })
  const summary = `Every route of the ${title.replace(/ API$/, '')} wire that Parley answers, with a command for each.`
  return { name, summary, markdown: `# ${title}\n\n${about}\n\n${sections.join('\n')}` }
}

/** Parley's own routes. */
function ownPage() {
  const { info, paths, components } = JSON.parse(
    readFileSync(new URL('../../ui/openapi.json', import.meta.url), 'utf8'),
  )
  /** @type {Record<string, Schema>} */
  const schemas = components.schemas
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(/** @type {Record<string, any>} */ (methods)).map(([verb, operation]) => {
      const { operationId: id, summary, description = '', requestBody, responses } = operation
      const [body] = /** @type {{ schema: Schema }[]} */ (Object.values(requestBody?.content ?? {}))
      /** @type {Example} */
      const example = {
        method: verb.toUpperCase(),
        send: path.replace(/\{id\}/g, 'CONVERSATION').replace(/\{name\}/g, 'default'),
        header: 'X-TYPESENSE-API-KEY',
        ...ownExamples[id],
      }
      const actions = operation['x-key-actions'].map((/** @type {string} */ each) => `\`${each}\``)
      return `## ${summary} {#${id}}

**${example.method} \`${path}\`**

${description}

The key needs ${actions.join(' or ')}.

${parameters(operation.parameters)}${propertiesOf('Body', body?.schema, schemas)}${answers(responses)}
${shown(example)}`
    }),
  )
  const objects = Object.entries(schemas).map(([name, schema]) => objectSection(name, schema))
  const others = wires.map(({ name, title }) => `[${title}](/docs/${name})`)
  return {
    name: 'api',
    summary:
      'Every route of conversations, assistants and usage: parameters, replies, a command for each, to try here.',
    markdown: `# Parley's own API {#api}

${info.description}

Other protocols have pages of their own: ${others.join(', ')}. Tools read <a href="/openapi.json">openapi.json</a>.

${operations.join('\n')}
## Objects {#objects}

${objects.join('\n')}`,
  }
}

export const referencePages = () => [ownPage(), ...wires.map(wirePage)]
