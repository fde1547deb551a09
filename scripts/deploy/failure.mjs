/** How the scripts of a deployment begin with their options, and end when something fails. */
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

/**
 * The options of the command line, or the end of the program: with what is wrong with them, or with the help.
 * @template {{ help?: boolean }} Options
 * @param {(args: string[]) => Options} read
 * @param {string} usage
 * @returns {Options}
 */
export function optionsOf(read, usage) {
  try {
    const options = read(process.argv.slice(2))
    if (!options.help) return options
  } catch (error) {
    fail(error, usage)
  }
  console.log(usage)
  process.exit(0)
}
