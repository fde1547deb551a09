/**
 * Refuses names in a request that its schema does not know, before any other check: otherwise a mistyped name would
 * be reported as a missing one.
 */
import { ApiError } from '../../errors'
import { meant, nearest } from '../../lib/nearest'
import { isObject } from '../../search/schema/values'
import { COMMON_PARAMETERS } from '../http/body'
import type { Operation, Schema } from './operations'

/** What valibot's schemas of objects, lists and optional values have in common. */
interface Node {
  type: string
  entries?: Record<string, Node>
  /** of a list */
  item?: Node
  /** of an optional value */
  wrapped?: Node
}

/**
 * Checks the properties of a body and of objects inside it. If a schema allows further properties, they are search
 * parameters: then only a name that is similar to a known one is refused.
 *
 * @throws ApiError 400 for a value that is not an object, or for the first unknown name, with the name that may be
 *   meant
 */
export function requireKnown(schema: Schema, given: unknown): void {
  if ('entries' in schema && !isObject(given)) throw new ApiError(400, 'Expected a JSON object.')
  look(schema, given, '')
}

function look(schema: Partial<Node>, given: unknown, place: string): void {
  const { type, entries, item, wrapped } = schema
  if (wrapped) look(wrapped, given, place)
  if (item && Array.isArray(given)) {
    for (const [index, each] of given.entries()) look(item, each, `${place}${index}.`)
  }
  if (!entries || !isObject(given)) return
  for (const [name, value] of Object.entries(given)) {
    const entry = Object.hasOwn(entries, name) ? entries[name] : undefined
    if (entry) look(entry, value, `${place}${name}.`)
    else if (type === 'strict_object') refuse('property', place, name, Object.keys(entries))
    else if (type === 'object_with_rest' && !COMMON_PARAMETERS.includes(name)) {
      const known = [...Object.keys(entries), ...COMMON_PARAMETERS]
      if (nearest(name, known) !== undefined) refuse('property', place, name, known)
    }
  }
}

/** Parameters that every route takes. */
const EVERYWHERE = ['x-typesense-api-key', 'x-typesense-user-id', 'x-parley-visitor']

/** @throws ApiError 400 for the first parameter of a query string that the route does not take */
export function requireKnownParameters(schemaOf: Operation['query'], query: Record<string, unknown>): void {
  const { entries = {} }: Partial<Node> = schemaOf?.() ?? {}
  for (const name of Object.keys(query)) {
    if (Object.hasOwn(entries, name) || EVERYWHERE.includes(name)) continue
    refuse('parameter', '', name, [...Object.keys(entries), ...EVERYWHERE])
  }
}

function refuse(kind: 'property' | 'parameter', place: string, name: string, known: string[]): never {
  throw new ApiError(400, `Unknown ${kind} \`${place}${name}\`; ${meant(name, known)}`)
}
