/**
 * What the code of an MDX page says: tables and texts that it declares, `export const rows = [...]`, and what its braces make of them,
 * `{rows.map((row) => <li>{row.name}</li>)}`.
 */

import { asText, isTexts, literalOf, markdownList } from './mdx-values.mjs'

/** @typedef {import('./mdx-values.mjs').Values} Values */

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
