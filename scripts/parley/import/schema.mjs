/** The schema of a collection that an import makes: a fixed one for pages, a guessed one for tables. */

/** What tells an import's documents apart from others of the collection, and a changed one from one that is not. */
export const SOURCE = 'parley_source'
export const HASH = 'parley_hash'

/**
 * @typedef {{ name: string, type: string, facet?: boolean, optional?: boolean, index?: boolean, embed?: object }} Field
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
 * @returns {Field[]}
 */
export const articleFields = (model) => [
  { name: 'title', type: 'string' },
  { name: 'text', type: 'string' },
  { name: 'url', type: 'string', index: false, optional: true },
  { name: 'section', type: 'string', facet: true, optional: true },
  { name: 'tags', type: 'string[]', facet: true, optional: true },
  ...bookkeeping(),
  embedding(['title', 'text'], model),
]

/** Rows that types are guessed from. */
const SAMPLE = 10_000
/** A string with fewer different values than this, and seen this often on average, is worth counting. */
const MOST_VALUES = 100
const REPEATS = 3
const LONGEST_LABEL = 60
const MAX_INT64 = 2n ** 63n - 1n

/**
 * Fields for rows, by what most of them hold. A column whose values do not agree is text.
 * @param {Record<string, unknown>[]} rows
 * @param {string} model that makes the vectors
 * @param {Record<string, string>} [wanted] types that the user named, by field
 * @returns {Field[]}
 */
export function rowFields(rows, model, wanted = {}) {
  /** @type {Map<string, unknown[]>} */
  const columns = new Map()
  const sample = rows.slice(0, SAMPLE)
  for (const row of sample) {
    for (const [name, value] of Object.entries(row)) {
      if (name === 'id' || isEmpty(value)) continue
      const values = columns.get(name)
      if (values) values.push(value)
      else columns.set(name, [value])
    }
  }
  const fields = [...columns].map(([name, values]) => {
    const type = wanted[name] ?? typeOf(values)
    /** @type {Field} */
    const field = { name, type, optional: true }
    return isLabel(type, values) ? { ...field, facet: true } : field
  })
  for (const [name, type] of Object.entries(wanted)) {
    if (!columns.has(name)) fields.push({ name, type, optional: true })
  }
  const texts = fields.filter(
    ({ type, name }) => type === 'string' && !/(^|_)(url|link|image|href)$/i.test(name),
  )
  return [
    ...fields,
    ...bookkeeping(),
    ...(texts.length > 0
      ? [
          embedding(
            texts.map(({ name }) => name),
            model,
          ),
        ]
      : []),
  ]
}

/** @param {unknown} value */
export const isEmpty = (value) => value === null || value === undefined || value === ''

/** @param {unknown[]} values none of them empty @returns {string} */
function typeOf(values) {
  if (values.every(Array.isArray)) {
    const items = values.flat().filter((item) => !isEmpty(item))
    return items.length === 0 ? 'string[]' : `${typeOf(items)}[]`
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
  const texts = values.flat().map(String)
  const different = new Set(texts).size
  return (
    different <= MOST_VALUES &&
    texts.length >= different * REPEATS &&
    texts.every((text) => text.length <= LONGEST_LABEL)
  )
}

/**
 * A row as its fields want it: text of a table becomes numbers, empty cells go.
 * @param {Record<string, unknown>} row
 * @param {Field[]} fields
 * @returns {Record<string, unknown>}
 */
export function documentOf(row, fields) {
  const types = new Map(fields.map(({ name, type }) => [name, type]))
  return Object.fromEntries(
    Object.entries(row)
      .filter(([, value]) => !isEmpty(value))
      .map(([name, value]) => [name, typeof value === 'string' ? cell(value, types.get(name)) : value]),
  )
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
