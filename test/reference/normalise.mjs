/** Makes two replies comparable, and finds what differs. */

/** Where an error was in a text is not told here. */
const DROPPED = new Set(['took', 'index_uuid', 'uuid', 'creation_date', 'provided_name', 'line', 'col'])

/** Values that differ from server to server and from run to run: only their types are compared. */
const LOOSE = new Set([
  ...[
    '_score',
    'max_score',
    '_seq_no',
    '_primary_term',
    '_version',
    'create_time',
    'updated_time',
    'created_time',
  ],
  ...['last_updated_time', 'last_registered_time', 'last_deployed_time', 'last_update_time', 'worker_node'],
])
const SHARDS = new Set(['total', 'successful', 'skipped'])

/** An id that a server made up: never words alone. */
const ID = /(?<![\w-])(?=[\w-]*[A-Z0-9])[\w-]{20,64}(?![\w-])/g
/** Parley numbers messages within their memory. */
const MADE = /<\w+>(?:_\d+)+/g
const MILLIS = 1e12

/**
 * @param {any} value
 * @param {{ keep?: string[], loose?: string[] }} options
 * @param {Record<string, string>} saved values by the names that are written in their place
 * @returns {any}
 */
export function normalise(value, options, saved, key = '', parent = '') {
  const { keep = [], loose = [] } = options
  const isLoose =
    (LOOSE.has(key) || loose.includes(key) || (parent === '_shards' && SHARDS.has(key))) &&
    !keep.includes(key)
  if (typeof value === 'string') {
    let text = value
    const longestFirst = Object.entries(saved).sort(([, a], [, b]) => `${b}`.length - `${a}`.length)
    for (const [name, id] of longestFirst) if (id) text = text.replaceAll(id, `<${name}>`)
    return isLoose
      ? '<string>'
      : text
          .replaceAll(ID, '<id>')
          .replaceAll(MADE, '<id>')
          .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
  }
  if (typeof value === 'number') return isLoose || value > MILLIS ? '<number>' : value
  if (Array.isArray(value)) {
    return isLoose ? '<list>' : value.map((each) => normalise(each, options, saved, key, key))
  }
  if (value === null || typeof value !== 'object') return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => keep.includes(name) || !DROPPED.has(name))
      .map(([name, each]) => [name.replaceAll(ID, '<id>'), normalise(each, options, saved, name, key)]),
  )
}

/**
 * @param {any} theirs the reference's reply
 * @param {any} ours Parley's
 * @returns {{ found: string[], words: string[] }} a line for each; `words` are those where only a message differs
 */
export function differences(theirs, ours) {
  /** @type {string[]} */
  const found = []
  /** @type {string[]} */
  const words = []
  walk(theirs, ours, '', (path, a, b) => {
    const line = `${path.slice(1)}: ${show(a)} there, ${show(b)} here`
    const isText = typeof a === 'string' && typeof b === 'string'
    if (isText && /\.(reason|error|resource\.type)$/.test(path)) words.push(line)
    else if (!path.endsWith('.caused_by')) found.push(line)
  })
  return { found, words }
}

const show = (/** @type {any} */ value) =>
  value === undefined ? 'nothing' : JSON.stringify(value).slice(0, 200)

/** @param {any} a @param {any} b @param {string} path @param {(path: string, a: any, b: any) => void} differs */
function walk(a, b, path, differs) {
  if (a === b) return
  const both = [a, b].every((each) => each !== null && typeof each === 'object')
  if (!both || Array.isArray(a) !== Array.isArray(b)) return differs(path, a, b)
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)]))
    walk(a[key], b[key], `${path}.${key}`, differs)
}
