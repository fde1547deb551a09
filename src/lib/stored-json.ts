/** JSON that Parley has stored itself, read by a schema. */
import * as v from 'valibot'
import { parseExact } from './json'
import { once } from './once'

/**
 * Reads stored JSON.
 * @param parse `parseExact` for numbers that a double cannot hold (json.ts)
 * @returns the value itself, since valibot's copy would drop properties that the shape does not name
 * @throws ValiError for a value that no version has written
 */
export function readStored<Value>(
  shape: v.GenericSchema<Value>,
  text: string,
  parse: (text: string) => unknown = JSON.parse,
): Value {
  const value = parse(text)
  v.assert(shape, value)
  return value
}

type AnyObject = Record<string, unknown>

// A schema of one check: documents pass here in thousands, and valibot's `record` would visit each property.
const anyObject = once(() =>
  v.custom<AnyObject>((value) => typeof value === 'object' && value !== null && !Array.isArray(value)),
)

/** Reads a stored object whose properties are checked where they are used. @throws ValiError for anything else */
export const readStoredObject = (text: string): AnyObject => readStored(anyObject(), text)

/** As `readStoredObject`, with whole numbers that a double cannot hold as BigInt. */
export const readExactObject = (text: string): AnyObject => readStored(anyObject(), text, parseExact)

const list = once(() => v.custom<unknown[]>(Array.isArray))

/** Reads a stored list. @throws ValiError for anything else */
export const readExactList = (text: string): unknown[] => readStored(list(), text, parseExact)

/**
 * Reads a list that a statement has just made with `json_group_array`. Its elements are what the statement's columns
 * hold, so only the list is checked: it can be 150,000 numbers long.
 */
export function readColumn<Value extends SqlStorageValue>(text: string): Value[] {
  return readStored(list(), text) as Value[]
}
