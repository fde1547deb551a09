/** `$operations` of a document: `{"increment": {"likes": 1}}` adds to the stored value. */
import { ApiError } from '../../errors'
import { integer, isInt64 } from '../../lib/exact-json'
import type { Plan } from '../schema/plan'
import { isObject, leaves, partsOf, place } from '../schema/values'
import type { Draft } from './document'

const KEY = '$operations'

export const hasOperations = (draft: Draft): boolean => Object.hasOwn(draft, KEY)

function refuse(message: string): never {
  throw new ApiError(400, message)
}

/**
 * Replaces `$operations` by the resulting values. A field without a value counts as 0.
 * @param old the stored document
 * @throws ApiError 400 for another operation, for a value that is not a whole number, and for a field that cannot be
 *   incremented
 */
export function applyOperations(draft: Draft, plan: Plan, old: Draft | undefined): void {
  const operations = draft[KEY]
  delete draft[KEY]
  if (!isObject(operations)) refuse(`\`${KEY}\` should be an object.`)
  for (const [operation, fields] of Object.entries(operations)) {
    if (operation !== 'increment') {
      refuse(`\`${KEY}\` has the operation \`${operation}\`. The only one that there is is \`increment\`.`)
    }
    if (!isObject(fields)) refuse(`\`increment\` should be an object of field names and whole numbers.`)
    for (const [name, by] of Object.entries(fields)) increment(draft, plan, old, name, by)
  }
}

function increment(draft: Draft, plan: Plan, old: Draft | undefined, name: string, by: unknown): void {
  const field = plan.fields.find((other) => other.name === name)
  if (field === undefined || field.array || (field.kind !== 'int32' && field.kind !== 'int64')) {
    refuse(`Field \`${name}\` cannot be incremented: it is not an int32 or int64 field of the schema.`)
  }
  if (!isInt64(by)) refuse(`Field \`${name}\` must be incremented by a whole number.`)
  if (leaves(draft, name, field.path).length > 0) {
    refuse(`Field \`${name}\` has a value and an increment. Send one of them.`)
  }
  const value = old === undefined ? undefined : leaves(old, name, field.path)[0]?.value
  const sum = integer(String(BigInt(isInt64(value) ? value : 0) + BigInt(by)))
  // A partial update merges objects deeply, so new objects on the path are enough.
  let parent: Record<string, unknown> = draft
  for (const part of partsOf(name)?.slice(0, -1) ?? []) {
    if (field.path === undefined) break
    if (!isObject(parent[part])) parent[part] = {}
    parent = parent[part] as Record<string, unknown>
  }
  place(draft, name, field.path, sum)
}
