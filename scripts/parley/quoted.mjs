/**
 * An argument as somebody types it into a shell.
 * @param {string} argument
 * @returns {string} in quotes where it needs them
 */
export const quoted = (argument) =>
  /^[\w./:@%+=,-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`
