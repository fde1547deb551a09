/** Field names, dotted ones too: the fields that they name in a schema and the values in a document. */

import type { Document, Field } from '../types'
import { isDynamic } from './field'
import type { StoredSchema } from './layout'

/** The field of this name; patterns and fields whose type is not known yet have none. */
export const findField = (schema: StoredSchema, name: string): Field | undefined =>
  schema.fields.find((field) => field.name === name && !isDynamic(field))

/**
 * Every value that a dotted name reaches, through objects and through arrays of objects, without nulls:
 * one level of arrays at the end of the path is spread too.
 */
export function valuesAt(document: Document | Record<string, unknown>, path: string): unknown[] {
  const found: unknown[] = []
  collect(document, path, found)
  return found
}

function collect(value: unknown, path: string, found: unknown[]): void {
  if (Array.isArray(value)) {
    for (const element of value) collect(element, path, found)
    return
  }
  if (value === null || typeof value !== 'object') return
  const record = value as Record<string, unknown>
  // A name with dots may be a key of its own: documents of collections without nested fields have such keys.
  if (Object.hasOwn(record, path)) {
    const own = record[path]
    if (Array.isArray(own)) found.push(...own.filter((element) => element !== null))
    else if (own !== null && own !== undefined) found.push(own)
    return
  }
  for (let dot = path.indexOf('.'); dot !== -1; dot = path.indexOf('.', dot + 1)) {
    const head = path.slice(0, dot)
    if (Object.hasOwn(record, head)) collect(record[head], path.slice(dot + 1), found)
  }
}

/** The strings among {@link valuesAt}. */
export const stringsAt = (document: Record<string, unknown>, path: string): string[] =>
  valuesAt(document, path).filter((value): value is string => typeof value === 'string')
