/** How the command line is typed where it was started (bin.mjs): `parley` is on nobody's path, unless it was linked. */
export const COMMAND = process.env.PARLEY_COMMAND ?? 'parley'

/**
 * An argument as somebody types it into a shell.
 * @param {string} argument
 * @returns {string} in quotes where it needs them
 */
export const quoted = (argument) =>
  /^[\w./:@%+=,-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`
