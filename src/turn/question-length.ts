/**
 * Characters (UTF-16 code units) of a question, on every protocol. It stands apart since schemas of requests, which
 * import nothing of the Worker, say it too.
 */
export const LONGEST_QUESTION = 100_000

export const QUESTION_TOO_LONG = `The question is longer than ${LONGEST_QUESTION} characters.`
