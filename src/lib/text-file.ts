/** Which files count as text, and how many a question takes. Pure; it imports nothing, so schemas can use it. */

/** Files of one question, at most. */
export const MOST_FILES = 10
/** Characters of base64 of the pictures of one question, at most: what a turn is begun with has to fit into a row of 2 MB. */
export const MOST_PICTURES = 1_400_000
/** Characters of a file's name that are kept. */
export const LONGEST_FILE_NAME = 200

const TEXT_TYPES = /^text\/|^application\/(json|xml|yaml|x-ndjson|jsonl|x-yaml)$|\+(json|xml|yaml)$/
const TEXT_NAMES = /\.(txt|md|markdown|csv|tsv|json|jsonl|xml|html?|ya?ml|log)$/i

/** Whether a media type says nothing about what a file holds. */
export const isVague = (type: string): boolean => type === '' || type === 'application/octet-stream'

/** Whether a file is text: by its media type, or by its name if the type is vague. */
export const isTextFile = (name: string, type: string): boolean =>
  TEXT_TYPES.test(type) || (isVague(type) && TEXT_NAMES.test(name))
