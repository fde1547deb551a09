/**
 * The longest question, in characters (UTF-16 code units), on every protocol. It has its own file because
 * request schemas state it too, and they import nothing of the Worker.
 */
export const LONGEST_QUESTION = 100_000

export const QUESTION_EMPTY = 'The question is empty. Write one.'

export const QUESTION_TOO_LONG = `The question is longer than ${LONGEST_QUESTION} characters.`
