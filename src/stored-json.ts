/** JSON that Parley has stored itself, read by a schema. */
import * as v from 'valibot'
import { once } from './once'

/**
 * Reads stored JSON.
 * @returns the value itself, since valibot's copy would drop properties that the shape does not name
 * @throws ValiError for a value that no version has written
 */
export function readStored<Value>(shape: v.GenericSchema<Value>, text: string): Value {
  const value: unknown = JSON.parse(text)
  v.assert(shape, value)
  return value
}

const AnyObject = once(() => v.record(v.string(), v.unknown()))

/** Reads a stored object whose properties are checked where they are used. @throws ValiError for anything else */
export const readStoredObject = (text: string): Record<string, unknown> => readStored(AnyObject(), text)
