/**
 * What the braces of MDX hold: text, numbers, lists and objects as they stand there, and as Markdown. Reference pages keep their
 * tables in attributes of components: `<Properties content={[{ name: 'model', description: 'The model to use.' }]} />`.
 *
 * acorn reads all of JavaScript, and is 33 KB of gzip, which the Worker's reader has no room for. json5 refuses a whole table for one
 * icon or constant in it. Here such a value is left out, and the rest is read.
 */
import { writtenTable } from './html-tables.mjs'

/** Blanks and comments; a string; a sign; a number; a word, which code that was set aside is, too; anything else. */
const TOKEN =
  /\s+|\/\/[^\n]*|\/\*[\s\S]*?\*\/|(?<text>"(?:\\[\s\S]|[^"\\])*"|'(?:\\[\s\S]|[^'\\])*'|`(?:\\[\s\S]|[^`\\])*`)|(?<sign>[[\]{},:+])|(?<number>-?\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?)(?![\w$])|(?<word>[\w$]+|\uE000\d+\uE001)|(?<other>[\s\S])/giy

/** Markup in the place of a value: what stands in it. */
const MARKUP = /<>([\s\S]*?)<\/>|<([A-Za-z][\w.]*)\b[^<>]*?(?:\/>|>([\s\S]*?)<\/\2\s*>)/y

/** Deeper lists are not read. */
const DEEPEST = 32

const CONSTANTS = new Map(
  /** @type {[string, unknown][]} */ ([
    ['true', true],
    ['false', false],
    ['null', null],
    ['undefined', undefined],
  ]),
)

/** Values by the names that the page gave them. @typedef {Map<string, unknown>} Values */

/**
 * @param {string} expression of JavaScript
 * @param {Values} [values]
 * @returns {unknown} its value; undefined for what is computed, also within lists and objects
 */
export function literalOf(expression, values) {
  const reader = new Reader(expression, values)
  const value = reader.value(0)
  return reader.isAtEnd() ? value : undefined
}

class Reader {
  #at = 0
  /** @type {{ kind: string, text: string, from: number }} the next token; `end` behind the last one */
  #next = { kind: 'end', text: '', from: 0 }

  /** @param {string} source @param {Values} [values] */
  constructor(source, values = new Map()) {
    this.source = source
    this.values = values
    this.#step()
  }

  isAtEnd() {
    return this.#next.kind === 'end'
  }

  #step() {
    for (;;) {
      TOKEN.lastIndex = this.#at
      const found = TOKEN.exec(this.source)
      if (!found) {
        this.#next = { kind: 'end', text: '', from: this.source.length }
        return
      }
      this.#at = TOKEN.lastIndex
      const named = Object.entries(found.groups ?? {}).find(([, text]) => text !== undefined)
      if (!named) continue
      this.#next = { kind: named[0], text: named[1], from: found.index }
      return
    }
  }

  /** @param {string} sign */
  #take(sign) {
    if (this.#next.kind !== 'sign' || this.#next.text !== sign) return false
    this.#step()
    return true
  }

  /** @param {number} depth @returns {unknown} */
  value(depth) {
    if (depth > DEEPEST) return this.#skip()
    if (this.#take('[')) return this.#list(depth)
    if (this.#take('{')) return this.#object(depth)
    const { kind, text, from } = this.#next
    if (text === '<') return this.#markup(from)
    if (kind === 'text') return this.#text()
    if (kind === 'word' && this.values.has(text)) return this.#named(this.values.get(text))
    if (kind !== 'number' && kind !== 'word') return this.#skip()
    const isPlain = kind === 'number' || CONSTANTS.has(text) || text.startsWith('\uE000')
    const value = kind === 'number' ? Number(text.replaceAll('_', '')) : (CONSTANTS.get(text) ?? text)
    this.#step()
    if (isPlain && this.#ends()) return text === 'null' || text === 'undefined' ? undefined : value
    return this.#skip()
  }

  /**
   * What a name stands for, with the way into it: `plans[0].name`. Of a list that a method picks from, all is taken.
   * @param {unknown} value
   */
  #named(value) {
    let found = value
    this.#step()
    while (!this.#ends()) {
      if (this.#take('[')) {
        const key = this.value(DEEPEST)
        this.#take(']')
        found = within(found, String(key))
        continue
      }
      while (/^[?!.]$/.test(this.#next.text)) this.#step()
      const { kind, text } = this.#next
      if (kind !== 'word') return this.#skip()
      this.#step()
      if (this.#next.text === '(') {
        this.#skip()
        return Array.isArray(found) && PICKS.test(text) ? found : undefined
      }
      found = within(found, text)
    }
    return found
  }

  /** Whether a value ends here. */
  #ends() {
    const { kind, text } = this.#next
    return kind === 'end' || (kind === 'sign' && /[,\]}]/.test(text))
  }

  /** @param {number} depth @returns {unknown[]} */
  #list(depth) {
    const list = []
    while (!this.isAtEnd() && !this.#take(']')) {
      list.push(this.value(depth + 1))
      if (!this.#take(',') && this.#next.text !== ']') this.#step()
    }
    return list
  }

  /** @param {number} depth @returns {Record<string, unknown>} */
  #object(depth) {
    /** @type {[string, unknown][]} */
    const entries = []
    while (!this.isAtEnd() && !this.#take('}')) {
      const { kind, text } = this.#next
      const key = kind === 'text' ? unquoted(text) : text
      this.#step()
      if (this.#take(':')) entries.push([key, this.value(depth + 1)])
      else if (kind !== 'sign') this.#skip()
    }
    return Object.fromEntries(entries)
  }

  /** A string, or several that are added up. @returns {string | undefined} */
  #text() {
    let text = ''
    do {
      // A template with a value in it is computed.
      if (this.#next.kind !== 'text' || /^`(?:[^\\]|\\[\s\S])*?\$\{/.test(this.#next.text))
        return this.#skip()
      text += unquoted(this.#next.text)
      this.#step()
    } while (this.#take('+'))
    return this.#ends() ? text : this.#skip()
  }

  /** @param {number} from */
  #markup(from) {
    MARKUP.lastIndex = from
    const found = MARKUP.exec(this.source)
    if (!found) return this.#skip()
    this.#at = MARKUP.lastIndex
    this.#step()
    const words = (found[1] ?? found[3] ?? '').replace(/<[^<>]*>/g, '').replace(/\s+/g, ' ')
    return words.trim() || undefined
  }

  /** Leaves out what is computed, up to the end of the value. @returns {undefined} */
  #skip() {
    let depth = 0
    while (!this.isAtEnd()) {
      const { kind, text } = this.#next
      if (depth === 0 && this.#ends()) return
      if (kind === 'sign' || kind === 'other') {
        if (/[[{(]/.test(text)) depth += 1
        if (/[\]})]/.test(text)) depth -= 1
      }
      this.#step()
    }
  }
}

/** Methods of lists after which the list still says what the page does. */
const PICKS = /^(?:map|filter|slice|sort|toSorted|reverse|toReversed|concat|flat|flatMap|values)$/

/** @param {unknown} value @param {string} key @returns {unknown} */
const within = (value, key) =>
  typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? Object(value)[key] : undefined

/** @param {string} literal with its quotes */
const unquoted = (literal) =>
  literal
    .slice(1, -1)
    .replace(/\\(?:u([\da-f]{4})|([\s\S]))/gi, (_, code, sign) =>
      code ? String.fromCharCode(Number.parseInt(code, 16)) : sign === 'n' ? '\n' : sign === '\n' ? '' : sign,
    )

/** Names of what an entry is called by, the best first. */
const LABELS = [
  'name title label heading header question term prop property param parameter option field command key',
  'type value id',
]
  .join(' ')
  .split(' ')
const WORDS =
  /^(?:description|desc|text|body|content|answer|details?|summary|subtitle|caption|explanation|notes?|help)$/i
const LINK = /^(?:href|url|link|to)$/i
/** How an entry looks. */
const LOOKS =
  /icon|image|img|logo|avatar|class|style|colou?r|variant|width|height|^(?:src|size|target|rel|align|slug|id|key)$/i

/**
 * A list of objects as a list of Markdown: each by its name, what is said of it, and the rest in brackets. A list of lists is a table.
 * @param {unknown} value
 * @param {string[]} [head] of a table; its first row without it
 * @returns {string} empty where it says nothing that people read: a list of numbers, a style
 */
export function markdownList(value, head) {
  const list = Array.isArray(value) ? value : [value]
  if (list.length > 0 && list.every(isRow))
    return writtenTable([...(head ? [head] : []), ...list].map((row) => row.map(asCell)))
  const isTable = Array.isArray(value) && list.every((each) => isObject(each) && saysMore(each))
  return isTable || list.some(isEntry) ? list.flatMap((each) => linesOf(each, '')).join('\n') : ''
}

/** @param {unknown} value @returns {string | undefined} what is no text and no number says nothing */
export const asText = (value) =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : undefined

/** @param {unknown} value @returns {value is string[]} */
export const isTexts = (value) =>
  Array.isArray(value) && value.length > 0 && value.every((each) => typeof each === 'string')

/** A row of a table has words in it. @param {unknown} value */
const isRow = (value) =>
  Array.isArray(value) &&
  value.some((each) => typeof each === 'string') &&
  value.every((each) => typeof each !== 'object')

/** @param {unknown} value */
const asCell = (value) =>
  typeof value === 'boolean'
    ? value
      ? 'yes'
      : 'no'
    : oneLine(asText(value) ?? '').replace(/(?<!\\)\|/g, '\\|')

/** @param {unknown} value @returns {value is Record<string, unknown>} */
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Whether an object holds words, and something beside them. @param {Record<string, unknown>} value */
function saysMore(value) {
  const said = Object.entries(value).filter(([key, each]) => !LOOKS.test(key) && asText(each) !== undefined)
  return said.length > 1 && said.some(([, each]) => typeof each === 'string')
}

/** Whether an object has a name or words. @param {unknown} value */
const isEntry = (value) =>
  isObject(value) &&
  Object.entries(value).some(
    ([key, each]) =>
      typeof each === 'string' && (WORDS.test(key) || LABELS.slice(0, -2).includes(key.toLowerCase())),
  )

/** @param {unknown} value @param {string} margin @returns {string[]} */
function linesOf(value, margin) {
  if (Array.isArray(value)) return value.flatMap((each) => linesOf(each, margin))
  if (typeof value === 'string' || typeof value === 'number') return [`${margin}- ${oneLine(value)}`]
  if (!isObject(value)) return []
  const entries = Object.entries(value)
  const isScalar = (/** @type {unknown} */ each) => typeof each === 'string' || typeof each === 'number'
  const called = LABELS.find((name) =>
    entries.some(([key, each]) => key.toLowerCase() === name && isScalar(each)),
  )
  /** @type {{ words: string[], more: string[], inner: string[] }} what is said of it, of what kind it is, and its own lists */
  const { words, more, inner } = { words: [], more: [], inner: [] }
  let label = ''
  let link = ''
  for (const [key, each] of entries) {
    if (key.toLowerCase() === called) label = oneLine(/** @type {string} */ (each))
    else if (LINK.test(key) && typeof each === 'string') link = each
    else if (WORDS.test(key) && isScalar(each)) words.push(oneLine(/** @type {string} */ (each)))
    else if (LOOKS.test(key)) continue
    else if (each === true) more.push(spoken(key).replace(/^(?:is|has) /, ''))
    else if (isScalar(each)) more.push(`${spoken(key)}: ${oneLine(/** @type {string} */ (each))}`)
    else inner.push(...linesOf(each, `${margin}  `))
  }
  const name = label && link ? `[${label}](${link})` : label && `**${label}**`
  const rest = more.join(', ')
  const head = [name, name && rest ? `(${rest})` : rest].filter(Boolean).join(' ')
  const line = [head, words.join(' ')].filter(Boolean).join(name ? ': ' : ', ')
  return line === '' ? inner.map((each) => each.slice(2)) : [`${margin}- ${line}`, ...inner]
}

/** A text of one line, whose signs are no tags of HTML. @param {string | number} value */
const oneLine = (value) =>
  String(value)
    .trim()
    .replace(/\s+/g, ' ')
    .replace(/(`+)[^`]+\1|<(?=[a-z/!?])/gi, (found) => (found === '<' ? '\\<' : found))

/** The words of a name: `isOptional` is "is optional". @param {string} key */
const spoken = (key) =>
  key
    .replace(/([\p{Ll}\d])(\p{Lu})/gu, '$1 $2')
    .replaceAll('_', ' ')
    .toLowerCase()

/*
 * What the code of an MDX page says: tables and texts that it declares, `export const rows = [...]`, and what its braces make of them,
 * `{rows.map((row) => <li>{row.name}</li>)}`.
 */

const IMPORT = /^import\s+(?:(?:type\s+)?[\w*{},\s$]*\{?$|(?:[\w*{},\s$]+\s+from\s+)?['"])/
const EXPORT = /^export\s+(?:default|const|let|var|function|async|class|type|interface|\{|\*)/
/** Without `export` it is code where it holds a list or an object, or stands below other code. */
const DECLARED = /^(?:const|let|var)\s+[\w$]+[^=\n]*=\s*(?:[[{]|$)/
const BELOW = /^(?:const|let|var|function|class|async\s+function|type|interface)\s/
/** A line after which a statement goes on. */
const GOES_ON = /(?:[=,?:+|&]|=>)\s*$/
const NAMED = /^(?:export\s+)?(?:const|let|var)\s+([\w$]+)\s*(?::[^=]*)?=(?!>)\s*/
/** What TypeScript says behind a value. */
const TYPED = /\s(?:as|satisfies)\s+[\w$.,<>[\] ]{1,200}$/

/** What tells where a statement ends. */
const CODE = /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|\/\/[^\n]*|\/\*|`|[([{]|[)\]}]|\n/g

/**
 * A page without its imports and exports, and the values that they declare.
 * @param {string} text
 * @param {Record<string, unknown>} data front matter
 * @returns {{ rest: string, values: Values }}
 */
export function withoutModules(text, data) {
  /** @type {Values} */
  const values = new Map([
    ['frontMatter', data],
    ['frontmatter', data],
  ])
  /** @type {string[]} */
  const lines = []
  let isBelow = false
  let isBroken = false
  for (let at = 0; at <= text.length; ) {
    const end = endOfLine(text, at)
    const line = text.slice(at, end)
    isBelow = IMPORT.test(line) || EXPORT.test(line) || DECLARED.test(line) || (isBelow && BELOW.test(line))
    if (isBelow) {
      // Where one statement never ends, others are told by their line: to look for all ends would take the square of the page.
      /** @type {number | undefined} */
      const closed = isBroken ? undefined : endOfStatement(text, at)
      isBroken ||= closed === undefined
      const last = closed ?? end
      declare(text.slice(at, last), values)
      at = last + 1
    } else {
      lines.push(line)
      at = end + 1
    }
  }
  return { rest: lines.join('\n'), values }
}

/** @param {string} text @param {number} at */
function endOfLine(text, at) {
  const end = text.indexOf('\n', at)
  return end < 0 ? text.length : end
}

/**
 * The end of the line on which the brackets of a statement are closed.
 * @param {string} text
 * @param {number} from
 * @returns {number | undefined} nothing where they never are
 */
function endOfStatement(text, from) {
  let depth = 0
  CODE.lastIndex = from
  for (let found = CODE.exec(text); found; found = CODE.exec(text)) {
    const [sign] = found
    if (sign === '`' || sign === '/*') {
      const end = text.indexOf(sign === '`' ? '`' : '*/', CODE.lastIndex)
      if (end < 0) return undefined
      CODE.lastIndex = end + sign.length
    } else if (/^[([{]$/.test(sign)) depth += 1
    else if (/^[)\]}]$/.test(sign)) depth -= 1
    else if (sign === '\n' && depth <= 0) {
      const line = text.slice(text.lastIndexOf('\n', found.index - 1) + 1, found.index)
      if (!GOES_ON.test(line)) return found.index
    }
  }
  return depth > 0 ? undefined : text.length
}

/** @param {string} statement @param {Values} values gain what it declares */
function declare(statement, values) {
  const [whole, name] = NAMED.exec(statement) ?? []
  if (whole === undefined || name === undefined) return
  const value = literalOf(
    statement.slice(whole.length).trimEnd().replace(/;$/, '').replace(TYPED, ''),
    values,
  )
  if (value !== undefined) values.set(name, value)
}

/** What a function makes of each entry, or what stands behind a condition. */
const MADE = /\.(?:map|flatMap)\s*\(\s*(?:\(([^()]{0,500})\)|([\w$]+))\s*=>|&&|\?/
const OBJECT = /^\s*Object\s*\.\s*(entries|keys|values)\s*\(([\s\S]*)\)\s*$/
/** UTF-16 units that a page's functions make of its lists, at most. */
const MOST_MADE = 1_048_576

/** Tags become text. @typedef {(text: string, isMdx: boolean, expressions: Expressions) => string} Render */

/** What the braces of a page say. */
export class Expressions {
  /** Lists that were told: each is, once. @type {Set<unknown>} */
  #told = new Set()
  #made = 0

  /** @param {Values} values */
  constructor(values) {
    this.values = values
  }

  /** @param {string} expression */
  valueOf = (expression) => literalOf(expression, this.values)

  /** Whether an expression is about something that the page declares. @param {string} expression */
  isNamed = (expression) => this.values.has(/^\s*([\w$]+)/.exec(expression)?.[1] ?? '')

  /** A list or an object the first time, and nothing then. @template Value @param {Value} value @returns {Value | undefined} */
  once(value) {
    if (this.#told.has(value)) return undefined
    this.#told.add(value)
    return value
  }

  /**
   * @param {string} expression in the text
   * @param {boolean} isBlock whether it begins its line
   * @param {Render} render
   */
  said(expression, isBlock, render) {
    const value = this.valueOf(expression)
    const text = asText(value)
    if (text !== undefined) return text
    const made = this.#rendered(expression, isBlock ? '\n' : ' ', render)
    if (made !== undefined) return made
    const list = this.once(value)
    const points = isTexts(list) ? list.map((each) => `- ${each}`).join('\n') : markdownList(list)
    return points === '' ? '' : `\n${points}\n`
  }

  /**
   * Markup that an expression makes, of each entry of a list or under a condition.
   * @param {string} expression
   * @param {string} between
   * @param {Render} render
   * @returns {string | undefined}
   */
  #rendered(expression, between, render) {
    const found = MADE.exec(expression)
    if (!found) return undefined
    const rest = expression.slice(found.index + found[0].length)
    const start = rest.search(/<(?:>|[A-Za-z])/)
    const end = rest.lastIndexOf('>')
    if (start < 0 || end < start) return undefined
    const markup = rest.slice(start, end + 1).replace(/^<>|<\/>$/g, '')
    const parameters = found[1] ?? found[2]
    if (parameters === undefined) return render(markup, true, this)
    const list = this.#listOf(expression.slice(0, found.index))
    if (list === undefined) return undefined
    this.once(list)
    const outer = this.values
    const made = []
    for (const [at, each] of list.entries()) {
      if (this.#made > MOST_MADE) break
      this.values = new Map([...outer, ...bound(parameters, each, at)])
      const text = render(markup, true, this)
      this.#made += markup.length + text.length
      made.push(text)
    }
    this.values = outer
    return made.join(between)
  }

  /** @param {string} expression @returns {unknown[] | undefined} */
  #listOf(expression) {
    const [, what, inner = ''] = OBJECT.exec(expression) ?? []
    const value = this.valueOf(what === undefined ? expression : inner)
    if (what === undefined) return Array.isArray(value) ? value : undefined
    if (typeof value !== 'object' || value === null) return undefined
    return what === 'entries'
      ? Object.entries(value)
      : what === 'keys'
        ? Object.keys(value)
        : Object.values(value)
  }
}

/**
 * The names that a function gives an entry, and what they stand for there.
 * @param {string} parameters `row, at`, `{ name, price: cost }` or `[key, value]`
 * @param {unknown} entry
 * @param {number} at
 * @returns {[string, unknown][]}
 */
function bound(parameters, entry, at) {
  const [, object, list] = /^\s*(?:\{([^{}]*)\}|\[([^[\]]*)\])/.exec(parameters) ?? []
  const names = (object ?? list ?? parameters).split(',').map((name) => name.replace(/=.*/s, '').trim())
  const [, second] = /[}\]]\s*,\s*([\w$]+)/.exec(parameters) ?? []
  const own = Object(entry)
  if (object !== undefined)
    return [
      ...names.map((each) => {
        const [key = '', name = key] = each.split(/\s*:\s*/)
        return /** @type {[string, unknown]} */ ([name, Object.hasOwn(own, key) ? own[key] : undefined])
      }),
      [second ?? '', at],
    ]
  if (list !== undefined)
    return [
      ...names.map((name, index) => /** @type {[string, unknown]} */ ([name, own[index]])),
      [second ?? '', at],
    ]
  return [
    [(names[0] ?? '').replace(/:.*/s, ''), entry],
    [names[1] ?? '', at],
  ]
}
