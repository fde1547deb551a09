/** How the scripts of a deployment end when something fails. */
import { advice } from './advice.mjs'

/** @param {unknown} error */
const message = (error) => (error instanceof Error ? error.message : String(error))

/**
 * Ends the program with what happened and, where it is known, what to do about it.
 * @param {unknown} error
 * @param {string[]} more
 * @returns {never}
 */
export function fail(error, ...more) {
  const what = message(error).trim()
  console.error([what, advice(what), ...more].filter(Boolean).join('\n\n'))
  process.exit(1)
}
