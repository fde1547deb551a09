/**
 * Writes ui/openapi.json from the table that Parley's own routes are served by (src/api/parley/operations.ts).
 * With `--check` it writes nothing and fails when the file says something else. Wants a Node that reads
 * TypeScript as it is; npm scripts have it.
 */
import './installed.mjs'
import { readFileSync, writeFileSync } from 'node:fs'
import { toJsonSchema, toJsonSchemaDefs } from '@valibot/to-json-schema'

// Not with the imports: a Node that is too old reads no TypeScript, and a program has yet to say so.
const { documentation } = await import('../src/api/parley/documentation.ts')
const { operations } = await import('../src/api/parley/operations.ts')
const replies = await import('../src/api/parley/response-schemas.ts')
const schemas = await import('../src/api/parley/schemas.ts')

/** @typedef {import('../src/api/parley/documentation.ts').Documentation} Documentation */
/** @typedef {import('../src/api/parley/operations.ts').Operation} Operation */
/** @typedef {import('../src/api/parley/operations.ts').Schema} Schema */

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

/** Schemas with a name of their own; what is made of them refers to them. @type {Record<string, any>} */
const named = {
  Ask: schemas.Ask(),
  AskAssistant: schemas.AskAssistant(),
  Answer: replies.Answer,
  ConversationPage: replies.ConversationPage,
  ConversationSummary: replies.ConversationSummary,
  Conversation: replies.Conversation,
  Turn: replies.Turn,
  Citation: replies.Citation,
  Usage: replies.Usage,
  Timings: replies.Timings,
  SearchReply: replies.SearchReply,
  TurnTrace: replies.TurnTrace,
  Trace: replies.Trace,
  Assistant: replies.Assistant,
  AssistantBody: schemas.AssistantBody(),
  Failure: replies.Failure,
}

/** `check` is a function, which a schema cannot say; its sentence is in the description. */
const IGNORED = ['check', 'transform']

/** @type {import('@valibot/to-json-schema').ConversionConfig} */
const config = {
  target: 'draft-2020-12',
  definitions: named,
  ignoreActions: IGNORED,
  overrideRef: ({ referenceId }) => `#/components/schemas/${referenceId}`,
}

/** @param {any} schema */
function inPlace(schema) {
  const { $schema: _, $defs: __, ...rest } = toJsonSchema(schema, config)
  return rest
}

/**
 * @param {'path' | 'query' | 'header'} place
 * @param {any} schema an object's
 */
function parameters(place, schema) {
  if (!schema) return []
  const { properties, required = [] } = /** @type {any} */ (inPlace(schema))
  return Object.entries(properties).map(([name, { description, ...value }]) => ({
    name,
    in: place,
    required: required.includes(name),
    ...(description === undefined ? {} : { description }),
    schema: value,
  }))
}

const failure = (/** @type {string} */ description) => ({
  description,
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Failure' } } },
})

/** @param {Documentation} documented */
function responses({ success: { description, schema, events, alternative }, failures = {} }) {
  const content = {
    ...(schema && { 'application/json': { schema: inPlace(schema) } }),
    ...(events && { 'text/event-stream': { schema: { $ref: '#/components/schemas/Events' } } }),
  }
  /** @type {Record<string, unknown>} */
  const all = { 200: { description, content } }
  if (alternative) all[alternative[0]] = { description: alternative[1] }
  all[400] = failure('The request is wrong; the message says how')
  all[401] = failure('The key is missing, wrong, expired, or may not do this')
  all[429] = failure('The key asks too often; `Retry-After` says when to ask again')
  for (const [status, text] of Object.entries(failures)) all[status] = failure(text)
  return all
}

/** A stream has no schema of its own in OpenAPI: its events are told in words, their data in schemas. */
const events = () => ({
  type: 'string',
  title: 'Server-sent events',
  description:
    'Each has the lines `id: <turn>.<seq>`, `event: <type>` and `data: <JSON>`. A stream begins with ' +
    '`retry: 1000`; comments keep it alive. A turn ends with `done` or `error`. The data of each type is the ' +
    'schema of its name in `x-events`.',
  'x-events': Object.fromEntries(Object.keys(replies.eventData).map((type) => [type, eventRef(type)])),
})

const eventName = (/** @type {string} */ type) => `Event${type[0]?.toUpperCase()}${type.slice(1)}`
const eventRef = (/** @type {string} */ type) => ({ $ref: `#/components/schemas/${eventName(type)}` })

export function document() {
  /** @type {Record<string, Record<string, unknown>>} */
  const paths = {}
  for (const [id, given] of Object.entries(operations)) {
    const operation = /** @type {Operation} */ (given)
    const documented = documentation[/** @type {keyof typeof operations} */ (id)]
    const { method, path, actions } = operation
    const [params, query, headers, body] = [
      operation.params?.(),
      operation.query?.(),
      operation.headers?.(),
      operation.body?.(),
    ]
    const { summary, description } = documented
    paths[path] ??= {}
    paths[path][method.toLowerCase()] = {
      operationId: id,
      summary,
      ...(description === undefined ? {} : { description }),
      'x-key-actions': actions,
      parameters: [
        ...parameters('path', params),
        ...parameters('query', query),
        ...parameters('header', headers),
      ],
      ...(body && {
        requestBody: { required: true, content: { 'application/json': { schema: inPlace(body) } } },
      }),
      responses: responses(documented),
    }
  }
  const eventSchemas = Object.entries(replies.eventData).map(([type, schema]) => [
    eventName(type),
    inPlace(schema),
  ])
  return {
    openapi: '3.1.0',
    info: {
      title: 'Parley: conversations',
      version,
      license: { name: 'MIT', identifier: 'MIT' },
      description:
        'Conversations on their own routes, whatever protocol began them. Collections, documents, searches, keys ' +
        "and models are on Typesense's routes, as its own documentation describes them.",
    },
    servers: [{ url: '/' }],
    security: [{ key: [] }],
    paths,
    components: {
      securitySchemes: {
        key: { type: 'apiKey', in: 'header', name: 'X-TYPESENSE-API-KEY' },
      },
      schemas: {
        ...toJsonSchemaDefs(named, config),
        Events: events(),
        ...Object.fromEntries(eventSchemas),
      },
    },
  }
}

const file = new URL('../ui/openapi.json', import.meta.url)
const text = `${JSON.stringify(document(), undefined, 2)}\n`

if (!process.argv.includes('--check')) writeFileSync(file, text)
else if (readFileSync(file, 'utf8') !== text) {
  console.error('ui/openapi.json is not what the routes are: run npm run openapi.')
  process.exitCode = 1
}
