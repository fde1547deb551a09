/**
 * What a reply of the API may look like. A fake server's replies are held against it, so that no test of the console passes by a
 * reply that Parley does not give: by openapi.json where it describes the route, otherwise by `shapes.ts`, which a test of the
 * Worker holds against the Worker itself.
 */
import { type Schema, Validator } from '@cfworker/json-schema'
import openapi from '../../ui/openapi.json'
import { SHAPES } from './shapes'

interface Described {
  body?: Schema
  /** names of query parameters; absent where they are not described */
  query?: string[]
  /** by status; without a schema where a body is no JSON */
  replies: Record<string, Schema | undefined>
}

interface Content {
  content?: Record<string, { schema: Schema }>
}

interface Operation {
  parameters?: { name: string; in: string }[]
  requestBody?: Content
  responses: Record<string, Content>
}

const { paths, components } = openapi as unknown as {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema> }
}

const json = (content?: Content): Schema | undefined => content?.content?.['application/json']?.schema

const described = ({ parameters = [], requestBody, responses }: Operation): Described => ({
  query: parameters.filter((each) => each.in === 'query').map(({ name }) => name),
  ...(json(requestBody) && { body: json(requestBody)! }),
  replies: Object.fromEntries(Object.entries(responses).map(([status, reply]) => [status, json(reply)])),
})

/** All routes that a console may call, as `GET /conversations/{id}`. */
const ROUTES = new Map<string, Described>([
  ...Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .filter(([method]) => /^(get|put|post|patch|delete)$/.test(method))
      .map(([method, operation]) => [`${method.toUpperCase()} ${path}`, described(operation)] as const),
  ),
  ...Object.entries(SHAPES).map(
    ([route, { status = 200, reply }]) => [route, { replies: { [status]: reply } }] as const,
  ),
])

/** @returns whether a route, whose parts in braces stand for any words, has this path */
export function isAt(route: string, method: string, path: string): boolean {
  const [of, template = ''] = route.split(' ')
  const parts = template.split('/')
  const given = path.split('/')
  return (
    of === method &&
    parts.length === given.length &&
    parts.every((part, at) => part === given[at] || (part.startsWith('{') && given[at] !== ''))
  )
}

/** Where several routes have a path, the one with the most words of its own. */
const routeOf = (method: string, path: string): [string, Described] | undefined =>
  [...ROUTES]
    .filter(([route]) => isAt(route, method, path))
    .sort(([a], [b]) => a.split('{').length - b.split('{').length)[0]

/** An object takes no properties but those that are described: one that the API gave up must not live on in a fake. */
function closed(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closed)
  if (typeof schema !== 'object' || schema === null) return schema
  const entries = Object.entries(schema).map(([name, part]) => [name, closed(part)] as const)
  const { properties, additionalProperties } = schema as Schema
  const isOpen = additionalProperties !== undefined || Object.keys(properties ?? {}).length === 0
  return Object.fromEntries(isOpen ? entries : [...entries, ['additionalProperties', false]])
}

const CLOSED = closed(components) as Schema
const validators = new Map<Schema, Validator>()

/** @returns what of a value does not fit a schema; '' for nothing */
function misfit(schema: Schema, value: unknown): string {
  const known = validators.get(schema)
  const validator =
    known ?? new Validator({ ...(closed(schema) as Schema), components: CLOSED } as Schema, '2020-12')
  validators.set(schema, validator)
  const { errors } = validator.validate(value)
  // The last one says most: those before it are about what it is part of.
  const last = errors.at(-1)
  return last ? `${last.instanceLocation}: ${last.error}` : ''
}

const FAILURE: Schema = { $ref: '#/components/schemas/Failure' }

/** @returns what the API would not have answered to a request; '' where it may */
export function replyFault(method: string, path: string, status: number, value: unknown): string {
  const route = routeOf(method, path)
  if (!route) return `${method} ${path}: the API has no such route`
  // Any route may be refused or fail, whether that is described or not.
  const schema = status < 400 ? route[1].replies[status] : FAILURE
  if (status < 400 && !(status in route[1].replies)) return `${route[0]}: it does not answer with ${status}`
  const fault = schema === undefined ? '' : misfit(schema, value)
  return fault === '' ? '' : `the reply of ${route[0]}: ${fault}`
}

/** @returns what the API would not take of a request's body; '' where it may, and where no body is described */
export function bodyFault(method: string, path: string, body: unknown): string {
  const route = routeOf(method, path)
  if (route?.[1].body === undefined) return ''
  const fault = misfit(route[1].body, body)
  return fault === '' ? '' : `the body of ${route[0]}: ${fault}`
}

/** @returns what the API would refuse of a query; '' where it may stand, and where no parameters are described */
export function queryFault(method: string, path: string, query: URLSearchParams): string {
  const route = routeOf(method, path)
  const unknown = [...query.keys()].filter((name) => route?.[1].query?.includes(name) === false)
  return unknown.length === 0 ? '' : `${route?.[0]} has no parameter ${unknown.join(', ')}`
}

const EVENTS = (components.schemas.Events as Schema & { 'x-events': Record<string, Schema> })['x-events']

/** @returns what the API would not send as an event of a turn */
export function eventFault(type: string, data: unknown): string {
  const schema = EVENTS[type]
  if (!schema) return `there is no event ${type}`
  const fault = misfit(schema, data)
  return fault === '' ? '' : `the event ${type}: ${fault}`
}

/** @returns what does not fit the shape of a route that openapi.json leaves out */
export const shapeFault = (route: string, value: unknown): string => {
  const shape = SHAPES[route]
  return shape?.reply === undefined ? `there is no shape of ${route}` : misfit(shape.reply, value)
}
