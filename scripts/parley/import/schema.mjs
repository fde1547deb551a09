/** The schema of a collection that an import makes: a fixed one for pages, a guessed one for tables. */

/** What tells an import's documents apart from others of the collection, and a changed one from one that is not. */
export const SOURCE = 'parley_source'
export const HASH = 'parley_hash'
/** The page that a passage is of: the id of its first one. Passages of a page have numbers from 1. */
export const PAGE = 'parley_page'
export const PART = 'parley_part'

/**
 * @typedef {object} Field
 * @property {string} name
 * @property {string} type
 * @property {boolean} [facet]
 * @property {boolean} [optional]
 * @property {boolean} [index]
 * @property {object} [embed]
 * @property {string} [locale]
 * @property {boolean} [stem]
 */

/** @param {string[]} from @param {string} model @returns {Field} */
const embedding = (from, model) => ({
  name: 'embedding',
  type: 'float[]',
  embed: { from, model_config: { model_name: model } },
})

/** @returns {Field[]} */
const bookkeeping = () => [
  { name: SOURCE, type: 'string', facet: true, optional: true },
  { name: HASH, type: 'string', index: false, optional: true },
]

/**
 * @param {string} model that makes the vectors
 * @param {import('../../../src/lib/grammar.ts').Language} [language] of the pages
 * @returns {Field[]}
 */
export const articleFields = (model, language = {}) => [
  ...[
    { name: 'title', type: 'string' },
    { name: 'heading', type: 'string', optional: true },
    { name: 'text', type: 'string' },
  ].map((field) => ({ ...field, ...language })),
  { name: 'url', type: 'string', index: false, optional: true },
  { name: 'section', type: 'string', facet: true, optional: true },
  { name: 'tags', type: 'string[]', facet: true, optional: true },
  ...bookkeeping(),
  { name: PAGE, type: 'string', facet: true, optional: true },
  { name: PART, type: 'int32', optional: true },
  embedding(['title', 'heading', 'text'], model),
]

/** A string with fewer different values than this, and seen this often on average, is worth counting. */
const MOST_VALUES = 100
const REPEATS = 3
const LONGEST_LABEL = 60
const MAX_INT64 = 2n ** 63n - 1n

/**
 * Fields for rows, by what they hold. A column whose values do not agree is text, and an object has a field for each of its own.
 * @param {Record<string, unknown>[]} rows
 * @param {string} model that makes the vectors
 * @param {Record<string, string>} [wanted] types that the user named, by field
 * @param {(texts: string[]) => import('../../../src/lib/grammar.ts').Language} [languageOf] tells how texts are searched
 * @returns {Field[]}
 */
export function rowFields(rows, model, wanted = {}, languageOf = () => ({})) {
  const fields = fieldsOf(rows, wanted)
  const named = new Set(fields.map(({ name }) => name))
  for (const [name, type] of Object.entries(wanted)) {
    if (!named.has(name)) fields.push({ name, type, optional: true })
  }
  const texts = fields.filter(
    ({ type, name }) => type === 'string' && !/(^|[_.])(url|link|image|href)$/i.test(name),
  )
  const from = texts.map(({ name }) => name)
  const sentences = texts.filter(({ facet }) => !facet).map(({ name }) => name)
  const language = languageOf(rows.map((row) => sentences.map((name) => row[name] ?? '').join(' ')))
  // A row may have no text at all.
  return [
    ...fields.map((field) => (sentences.includes(field.name) ? { ...field, ...language } : field)),
    ...bookkeeping(),
    ...(from.length > 0 ? [{ ...embedding(from, model), optional: true }] : []),
  ]
}

/**
 * Documents of a collection with vectors, at most: without Vectorize they lie in memory, 64 MiB of about 448 bytes each
 * (src/search/limits.ts), and more documents are refused.
 */
const MOST_WITH_VECTORS = 140_000

/**
 * The fields of a new collection of so many documents.
 * @param {Field[]} fields
 * @param {number} documents
 * @returns {Field[]} without vectors for which there may be no memory
 */
export const fieldsForMany = (fields, documents) =>
  documents > MOST_WITH_VECTORS ? fields.filter(({ name }) => name !== 'embedding') : fields

/**
 * @param {Record<string, unknown>[]} rows
 * @param {Record<string, string>} wanted
 * @param {string} [prefix] the path of the object that these are, with a dot behind it
 * @param {boolean} [isListed] whether they are objects of lists, whose fields are lists then
 * @returns {Field[]}
 */
function fieldsOf(rows, wanted, prefix = '', isListed = false) {
  /** @type {Map<string, unknown[]>} */
  const columns = new Map()
  for (const row of rows) {
    for (const [name, value] of Object.entries(row)) {
      if ((prefix === '' && name === 'id') || isEmpty(value)) continue
      const values = columns.get(name)
      if (values) values.push(value)
      else columns.set(name, [value])
    }
  }
  return [...columns].flatMap(([column, values]) => {
    const name = prefix + column
    const own = wanted[name] ?? typeOf(values)
    const type = isListed && !own.endsWith('[]') ? `${own}[]` : own
    /** @type {Field} */
    const field = { name, type, optional: true }
    if (/^object/.test(type)) {
      const objects = /** @type {Record<string, unknown>[]} */ (
        values.flat().filter((each) => !isEmpty(each))
      )
      return [field, ...fieldsOf(objects, wanted, `${name}.`, type === 'object[]')]
    }
    return [isLabel(type, values) ? { ...field, facet: true } : field]
  })
}

/**
 * What makes a collection of these fields.
 * @param {string} name
 * @param {Field[]} fields
 */
export const collectionOf = (name, fields) => ({
  name,
  fields,
  ...(fields.some(({ type }) => /^object/.test(type)) && { enable_nested_fields: true }),
})

/**
 * The types that a collection's fields have, so that rows for it are read as they want them, not as the rows look.
 * @param {Field[]} [fields] of the collection, if it is there
 * @returns {Record<string, string>} by name
 */
export const storedTypes = (fields = []) =>
  Object.fromEntries(
    fields
      .filter(({ name, type, embed }) => embed === undefined && !/\*/.test(name + type) && type !== 'auto')
      .map(({ name, type }) => [name, type]),
  )

/** @param {unknown} value */
const isEmpty = (value) => value === null || value === undefined || value === ''

/** @param {unknown[]} values none of them empty @returns {string} */
function typeOf(values) {
  if (values.some(Array.isArray)) {
    const items = values.flat().filter((item) => !isEmpty(item))
    // A list of lists is written as text.
    const type = items.length === 0 ? 'string' : typeOf(items)
    return type.endsWith('[]') ? 'string[]' : `${type}[]`
  }
  if (values.every((value) => typeof value === 'object')) return 'object'
  const is = (/** @type {(text: string) => boolean} */ test) =>
    values.every((value) => test(String(value).trim()))
  if (is((text) => /^(true|false)$/i.test(text))) return 'bool'
  // A number that begins with a zero is a code: a postcode, a part number.
  if (is((text) => /^-?(0|[1-9]\d{0,18})$/.test(text) && absolute(BigInt(text)) <= MAX_INT64)) return 'int64'
  if (is((text) => /^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i.test(text))) return 'float'
  return 'string'
}

/** @param {bigint} number */
const absolute = (number) => (number < 0n ? -number : number)

/** Whether a column is one that people filter and count by. @param {string} type @param {unknown[]} values */
function isLabel(type, values) {
  if (type === 'bool') return true
  if (type !== 'string' && type !== 'string[]') return false
  if (values.flat().some((value) => typeof value === 'object')) return false
  const texts = values.flat().map(String)
  const different = new Set(texts).size
  return (
    different <= MOST_VALUES &&
    texts.length >= different * REPEATS &&
    texts.every((text) => text.length <= LONGEST_LABEL)
  )
}

/**
 * A row as its fields want it: text of a table becomes numbers, what is in a column of texts becomes text, empty cells go.
 * @param {Record<string, unknown>} row
 * @param {Field[]} fields
 * @returns {Record<string, unknown>}
 */
export const documentOf = (row, fields) =>
  shapedObject(row, new Map(fields.map(({ name, type }) => [name, type])), '')

/**
 * @param {object} object
 * @param {Map<string, string>} types
 * @param {string} prefix of its fields
 * @param {boolean} [isListed] whether it is one of a list: each holds one value, and the field a list
 * @returns {Record<string, unknown>}
 */
const shapedObject = (object, types, prefix, isListed = false) =>
  Object.fromEntries(
    Object.entries(object)
      .filter(([, value]) => !isEmpty(value))
      .map(([name, value]) => {
        const type = types.get(prefix + name)
        const own = isListed && !Array.isArray(value) ? type?.replace(/\[\]$/, '') : type
        return [name, shaped(value, own, types, `${prefix}${name}.`, isListed)]
      }),
  )

/**
 * @param {unknown} value
 * @param {string | undefined} type of its field
 * @param {Map<string, string>} types
 * @param {string} prefix of the fields in it
 * @param {boolean} [isListed]
 * @returns {unknown}
 */
function shaped(value, type, types, prefix, isListed = type === 'object[]') {
  const item = type?.replace(/\[\]$/, '')
  if (Array.isArray(value) && type !== 'string')
    return value
      .filter((each) => !isEmpty(each))
      .map((each) => shaped(each, item, types, prefix, isListed || item === 'object'))
  if (typeof value === 'string') return cell(value, type)
  if (type === undefined || value === null) return value
  const made =
    item === 'string'
      ? typeof value === 'object'
        ? JSON.stringify(value)
        : String(value)
      : typeof value === 'object'
        ? shapedObject(value, types, prefix, isListed || type === 'object[]')
        : value
  return item === type ? made : [made]
}

/** @param {string} text @param {string | undefined} type */
function cell(text, type) {
  if (type === 'bool' && /^(true|false)$/i.test(text)) return text.toLowerCase() === 'true'
  if ((type === 'int32' || type === 'int64') && /^-?\d+$/.test(text)) {
    const number = Number(text)
    // The server reads a string as the number that it writes, however long.
    return Number.isSafeInteger(number) ? number : text
  }
  if (type === 'float' && text.trim() !== '' && Number.isFinite(Number(text))) return Number(text)
  return type === 'string[]' ? text.split(/\s*[;|]\s*/) : text
}
