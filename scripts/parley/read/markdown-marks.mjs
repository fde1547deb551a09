/**
 * What site generators add to Markdown, as Markdown: components and code of MDX, notes and tabs, templates of Hugo and Jekyll. Their
 * marks go, the words in them stay, and code stays as it is. Nothing is refused: what is none of them is text.
 */
import { withoutHidden } from './markdown-html.mjs'
import { asText, Expressions, isTexts, markdownList, withoutModules } from './mdx-values.mjs'

/** Attributes of components whose words people read. */
export const WORDS =
  /^(?:title|label|heading|header|headline|summary|caption|question|description|text|alt|tooltip|packages?|commands?|code)$/i

/** @param {string} words */
export const strong = (words) => (words === '' ? '' : `**${words}**`)

/** Code between two templates: Jekyll's and Hugo's `highlight`, Hexo's `codeblock`, the `code-toggle` of Hugo's documentation. */
const CODE_TEMPLATE =
  /\{(?:\{<|\{%|%)-?\s*(highlight|codeblock|code-toggle|code)\b([^\n]{0,300}?)(?<!\/)-?(?:>\}|%\}|%)\}[ \t]*\n?([\s\S]{0,16384}?)\n?\{(?:\{<|\{%|%)-?\s*(?:end|\/\s*)\1\s*-?(?:>\}|%\}|%)\}/g

/**
 * @param {string} whole @param {string} name @param {string} options @param {string} code
 * @returns {string} the code between fences
 */
function codeOf(whole, name, options, code) {
  // GitBook's `code` stands around fences, which are set aside.
  if (code.trim().startsWith(OPEN)) return whole
  const language =
    /\blang(?:uage)?\s*[:=]\s*["']?([\w+#.-]+)/.exec(options)?.[1] ??
    (name === 'highlight' ? /^\s*["']?([\w+#.-]+)/.exec(options)?.[1] : '')
  return `\`\`\`${language ?? ''}\n${code}\n\`\`\``
}

/** Templates that Hugo and Jekyll (Liquid) fill in. @param {string} text */
function withoutTemplates(text) {
  if (!/\{[{%:]|\[toc\]|^<<</im.test(text)) return text
  // Where a page is a template, so are its braces.
  const isLiquid = /\{%-?\s*(?:assign|for|if|unless|capture|include)\s/.test(text)
  return text
    .replace(/^[ \t]*(?:[-*+]|1\.)[ \t][^\n]*\n[ \t]*\{:[ \t]*toc[^}\n]*\}[ \t]*$/gim, '')
    .replace(/^<<<[ \t]*[@./~][^\n]*$/gm, '')
    .replace(/\{%-?\s*capture\b[^%]{0,200}%\}[\s\S]{0,16384}?\{%-?\s*endcapture\s*-?%\}/g, '')
    .replace(
      /\{%-?\s*comment\s*-?%\}[\s\S]{0,16384}?\{%-?\s*endcomment\s*-?%\}|\{\{\s*\/\*[\s\S]{0,16384}?\*\/\s*\}\}/g,
      '',
    )
    .replace(CODE_TEMPLATE, codeOf)
    .replace(
      /\{\{[<%]\s*(\/?)\s*([\w-]+)([^\n]{0,500}?)\s*\/?[>%]\}\}|\{%-?\s*()([\w-]+)([^\n]{0,500}?)-?%\}/g,
      (_, end, hugo, its, __, liquid, more) => {
        const [name, attributes = ''] = [hugo ?? liquid, its ?? more]
        if (end) return ''
        const said = [...attributes.matchAll(/(?:([\w-]+)\s*=\s*)?"([^"]*)"|(?:([\w-]+)\s*=\s*)?'([^']*)'/g)]
        const first = said[0]?.[2] ?? said[0]?.[4] ?? ''
        if (/^(?:ref|relref)$/.test(name)) return first
        if (/^(?:link|post_url)$/.test(name)) return attributes.trim()
        const isNamed =
          /tab|detail|expand|collapse|callout|note|alert|hint|accordion|spoiler|panel|card|button|step/i.test(
            name,
          )
        return said
          .filter(
            ([, key, , other]) =>
              WORDS.test(key ?? other ?? '') ||
              (name === 'include' && /^(?:content|message|body)$/.test(key ?? other ?? '')) ||
              (key ?? other) === (isNamed ? 'name' : '') ||
              ((key ?? other) === undefined && isNamed),
          )
          .map(([, , words, others]) => `${strong(words ?? others ?? '')} `)
          .join('')
      },
    )
    .replace(
      isLiquid ? /\{\{-?\s*[a-z][^{}\n]*\}\}/gi : /\{\{-?\s*(?:site|page|include|layout)\.[^{}\n]*\}\}/g,
      '',
    )
    .replace(/^[ \t]*\{:[^}\n]*\}[ \t]*\n?|\{:\s*[.#][^}\n]*\}/gm, '')
    .replace(/^\[\[?_?toc_?\]\]?[ \t]*$/gim, '')
}

/** Code is set aside as a sign of the private use area, its number, and another one. */
const [OPEN, CLOSE] = ['\uE000', '\uE001']
const ASIDE = new RegExp(`${OPEN}(\\d+)${CLOSE}`, 'g')
const SET_ASIDE = new RegExp(`^([^\\n]*?)${OPEN}(\\d+)${CLOSE}`, 'gm')
const FENCE =
  /^([ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?)(`{3,}|~{3,})([^\n]*)\n(?:((?:[^\n]*\n)*?)[ \t>]*\2[`~]*[ \t]*$|([\s\S]*))/gm
const INLINE_CODE = /(?<![`\\])(`+)(?!`)(?:[^\n]*?[^`\n])??\1(?!`)/g

/** A template with escaped marks in it, as a value. */
const ESCAPED = /([:,([][ \t]*)`((?:[^`\\$\n]|\\[^`$\n]|\$(?!\{))*\\[`$](?:[^`\\$\n]|\\.|\$(?!\{))*)`/g

/** Notes by the names that generators have for them. */
const NOTE =
  /^(?:note|tip|info|warning|danger|caution|important|hint|attention|error|success|question|faq|example|abstract|seealso|admonition|todo|bug|failure|quote|details|dropdown|deprecated|versionadded|versionchanged)$/i
/** Components that are notes, and the attributes that say of which kind. */
const NOTE_TAG =
  /^(?:note|tip|info|warning|danger|caution|important|callout|admonition|alert|aside|banner|notice|message)$/i
const KINDS = ['type', 'kind', 'variant', 'severity', 'level', 'intent']
/** Attributes that name the tabs of a component, or the points of one without content. */
const LABELS = /^(?:items|labels|values|tabs|names|features|points|steps|options|list)$/i
/** Attributes that name the columns of a table. */
const HEADS = /^(?:heads?|headers?|headings?|columns?|cols|titles)$/i
/** Components that describe a parameter name it in an attribute of its place. */
const FIELD = /(?:Field|Param|Prop|Property)$/

/**
 * @param {string} source
 * @param {string} path
 * @param {Record<string, unknown>} [data] front matter, which MDX can say in braces
 * @returns {string}
 */
export function withoutMarks(source, path, data = {}) {
  /** @type {{ code: string, indent: number }[]} */
  const aside = []
  const keep = (/** @type {string} */ code, indent = 0) =>
    `${OPEN}${aside.push({ code, indent }) - 1}${CLOSE}`
  const withFences = source.replace(FENCE, (whole, before, marks, info, code, rest) => {
    const [, name = '', words = ''] = /^\{([\w:-]+)\}[ \t]*(.*)$/.exec(info) ?? []
    if (name === '') {
      // Tabs of code have their names there, and files theirs.
      const [said, tab, file] =
        /[ \t]+(?:\[([^\]\n]{1,80})\]|(?:title|filename|file)="([^"\n]{1,200})")/.exec(info) ?? []
      const label = before.trim() === '' ? (tab ?? file) : undefined
      const block = whole.slice(before.length)
      return label === undefined
        ? before + keep(block, before.length)
        : `${before}${strong(label)}\n\n${before}${keep(block.replace(said ?? '', ''), before.length)}`
    }
    // MyST (Sphinx): what a directive holds.
    const content = (code ?? rest ?? '').replace(/^(?:[ \t]*:[\w-]+:[^\n]*\n)+/, '')
    if (/^code/.test(name)) return before + keep(`${marks}${words}\n${content}${marks}`, before.length)
    if (/toctree|contents|eval-rst|include/.test(name)) return ''
    return `${titled(NOTE.test(name) ? words || called(name) : words)}${withoutMarks(content, path, data)}`
  })
  const raws = withFences.replace(/\{%-?\s*raw\s*-?%\}([\s\S]{0,16384}?)\{%-?\s*endraw\s*-?%\}/g, (_, raw) =>
    raw.replace(/\{[{%]/g, (/** @type {string} */ mark) => keep(mark)),
  )
  const isMdx =
    /\.mdx$/i.test(path) ||
    (/^import\s[^\n]*['"][^'"\n]+['"];?[ \t]*$/m.test(withFences) && /<[A-Z]/.test(withFences))
  // A text in braces: one of an attribute keeps its quotes, and is no code. Nor is one with escaped marks in it.
  const literals = isMdx
    ? raws
        .replace(ESCAPED, (_, before, words) => before + JSON.stringify(words.replace(/\\(.)/g, '$1')))
        .replace(/(=\s*)?\{\s*`((?:[^`\\$]|\\.|\$(?!\{))*)`\s*\}/g, (_, equals, words) =>
          equals ? `${equals}{${JSON.stringify(words.replace(/\\(.)/g, '$1'))}}` : words,
        )
    : raws
  const masked = literals.replace(INLINE_CODE, (code) => keep(code))
  const placed = masked
    // The names of places to link to. Attributes of other kinds go.
    .replace(
      /^([ \t>]*#{1,6}[ \t][^\n]{0,300}?)[ \t]*(?:\{:?[ \t]*([#.][^}\n]{0,100})\}|\{\/\*[ \t]*(#[\w-]{1,100})[ \t]*\*\/\})[ \t]*$/gm,
      (_, heading, attributes, comment) => {
        const name = /#([^\s#]+)/.exec(attributes ?? comment)?.[1]
        return name === undefined ? heading : heading + keep(` {#${name}}`)
      },
    )
  const text = withoutTemplates(withoutHidden(placed))
    .replace(/^ {0,3}<(script|style)\b[^>]*>[\s\S]{0,32768}?<\/\1\s*>[ \t]*$/gim, '')
    .replace(
      /^([ \t]*>[ \t]*)\[!([\w-]+)\][-+]?[ \t]*(.*)$/gm,
      (_, quote, name, title) => quote + strong(title || called(name)),
    )
  const { rest, values } = isMdx ? withoutModules(text, data) : { rest: text, values: new Map() }
  const made = withoutTags(withoutIndents(rest), isMdx, new Expressions(values))
  const plain = made === masked ? made : made.replace(/\n(?:[ \t]*\n){2,}/g, '\n\n')
  const code = (/** @type {string} */ number) => aside[Number(number)]?.code ?? ''
  return plain
    .replace(SET_ASIDE, (_, before, number) => {
      const { code, indent } = aside[Number(number)] ?? { code: '', indent: 0 }
      // Where the block lost its indent, so do the lines of code.
      const less = indent - before.length
      return before + (less > 0 ? code.replace(new RegExp(`\\n[ \\t]{1,${less}}`, 'g'), '\n') : code)
    })
    .replace(ASIDE, (_, number) => code(number).replace(ASIDE, (_mark, inner) => code(inner)))
}

/** What a kind of note is called. @param {string} kind */
const called = (kind) => kind.charAt(0).toUpperCase() + kind.slice(1).toLowerCase()

/** A paragraph of its own that says what the next ones are. @param {string} words */
const titled = (words) => (words.trim() === '' ? '' : `${strong(words.trim())}\n\n`)

const NOTE_LINE = /^([ \t]*)(?:!!!|\?\?\?\+?)[ \t]+([\w-]+)(?:[ \t]+[\w-]+)*(?:[ \t]+"([^"]*)")?[ \t]*$/
const TAB_LINE = /^([ \t]*)===[+!]?[ \t]+"([^"]+)"[ \t]*$/
const COLONS =
  /^([ \t]*):{3,}[ \t]*(?:\{\.?([\w-]+)[^}\n]*\}(?:[ \t]+([^{\n]+?))?|([\w-]+)?(?:\[([^\]\n]*)\]|[ \t]+([^{\n]+?))?[ \t]*(?:\{([^}\n]*)\})?)[ \t]*$/
const BLOCK_TAG = /^[ \t]*<(\/?)([A-Z][\w.]*)/

/**
 * Blocks that other lines mark, and the indent of what stands in them, which would make code of it: components, notes and tabs.
 * @param {string} text
 */
function withoutIndents(text) {
  if (!/^[ \t]*(?:<[A-Z]|!!!|\?\?\?|===[+!]? "|:::)/m.test(text)) return text
  /** @type {{ name: string, indent: number, base?: number }[]} */
  const open = []
  /** @type {string[]} */
  const lines = []
  const closed = closedIn(text)
  let colons = 0
  for (const line of text.split('\n')) {
    const indent = /^[ \t]*/.exec(line)?.[0].replaceAll('\t', '    ').length ?? 0
    const isBlank = line.trim() === ''
    // A note ends where its indent does.
    while (!isBlank && open.at(-1)?.name === '' && indent <= (open.at(-1)?.indent ?? 0)) open.pop()
    const [, end, name = ''] = BLOCK_TAG.exec(line) ?? []
    if (end === '/') {
      const at = open.findLastIndex((each) => each.name === name)
      if (at >= 0) open.splice(at)
    }
    const inner = open.at(-1)
    if (inner && !isBlank) inner.base ??= Math.max(0, indent - (open[0]?.indent ?? 0))
    const strip = Math.min(indent, inner?.base ?? 0)
    const rest = line.replaceAll(/^[ \t]+/g, (space) => space.replaceAll('\t', '    ').slice(strip))
    const note = NOTE_LINE.exec(line)
    const tab = TAB_LINE.exec(line)
    const fence = COLONS.exec(line)
    const margin = rest.slice(0, rest.length - rest.trimStart().length)
    if (note || tab) {
      const words = tab ? tab[2] : (note?.[3] ?? called(note?.[2] ?? ''))
      lines.push('', margin + strong(words ?? ''), '')
      open.push({ name: '', indent })
    } else if (fence && (fence[2] ?? fence[4]) !== undefined) {
      const kind = fence[2] ?? fence[4] ?? ''
      const title = fence[3] ?? fence[5] ?? fence[6] ?? /title="([^"]*)"/.exec(fence[7] ?? '')?.[1]
      lines.push('', margin + strong(title ?? (NOTE.test(kind) ? called(kind) : '')), '')
      colons += 1
    } else if (fence && colons > 0) {
      lines.push('')
      colons -= 1
    } else {
      lines.push(rest)
      if (
        end === '' &&
        name !== '' &&
        !line.includes(`</${name}>`) &&
        !/\/>\s*$/.test(line) &&
        closed.has(name)
      )
        open.push({ name, indent })
    }
  }
  return lines.join('\n').replace(/\n{3,}/g, '\n\n')
}

/** So far before a tag a line is looked at. */
const LONGEST_LEAD = 500

/** What stands before a place in its line, without tags. @param {string} text @param {number} at */
const lineBefore = (text, at) =>
  text
    .slice(Math.max(text.lastIndexOf('\n', at - 1) + 1, at - LONGEST_LEAD), at)
    .replace(/<[^<>]*>/g, '')
    .trim()

/** The components that end somewhere. @param {string} text */
const closedIn = (text) => new Set([...text.matchAll(/<\/([A-Z][\w.]*)/g)].map(([, name]) => name))

const TAG = /\\[{<]|\{|<(\/?)(?:([A-Za-z][\w.-]*)(?=[\s/>])|(?=>))/g
const ATTRIBUTE = /\s*(?:(\/?>)|(\{)|([\w:@.-]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|(\{)))?)/y
/** So long may be what stands in braces, in UTF-16 units. */
const LONGEST_EXPRESSION = 131_072
/** Tabs and the like, which may have their name from the component around them. */
const PART = /Tab|Item|Panel|Content|Step/

/**
 * Tags of components, and in MDX what stands in braces. A tag that nothing closes, such as `<Name>` in a sentence, is text.
 * @param {string} text
 * @param {boolean} isMdx
 * @param {Expressions} expressions
 * @returns {string}
 */
function withoutTags(text, isMdx, expressions) {
  if (!(isMdx ? /[{<]/ : /<\/?[A-Z]/).test(text)) return text
  const closed = closedIn(text)
  const braces = bracesIn(text)
  /** Components around that name their parts. @type {{ name: string, labels: Label[] }[]} */
  const around = []
  let out = ''
  let at = 0
  TAG.lastIndex = 0
  for (let found = TAG.exec(text); found; found = TAG.exec(text)) {
    const [mark, end, name = ''] = found
    const put = (/** @type {string} */ words, /** @type {number} */ to) => {
      out += text.slice(at, found.index) + words
      at = to
      TAG.lastIndex = to
    }
    if (mark === '{' && isMdx) {
      const close = closeOf(braces, found.index)
      if (close > 0) {
        const isBlock = lineBefore(text, found.index) === ''
        put(expressions.said(text.slice(found.index + 1, close), isBlock, withoutTags), close + 1)
      }
    } else if (mark.startsWith('<')) {
      const tag = tagAt(text, TAG.lastIndex, braces, expressions)
      const isComponent = /^[A-Z]/.test(name) || (name === '' && isMdx)
      if (!tag) continue
      if (isComponent && (isMdx || tag.isEmpty || closed.has(name))) {
        const line = lineBefore(text, found.index)
        const isBlock = line === ''
        let words = end ? '' : wordsOf(name, tag.attributes)
        if (end && around.at(-1)?.name === name) around.pop()
        if (!end && !tag.isEmpty && tag.labels.length > 0) around.push({ name, labels: tag.labels })
        else if (!end && words === '' && PART.test(name))
          words = labelOf(around.at(-1)?.labels ?? [], name, tag.attributes.get('value'))
        // A sign in a table says yes or no.
        if (words === '' && !end && !tag.isEmpty && isBlock) words = noteOf(name, tag.attributes)
        if (words === '' && tag.isEmpty && tag.attributes.size === 0 && /^[>\s]*\|/.test(line)) words = name
        const points = tag.isEmpty ? tag.labels.map(({ label }) => `- ${label}`).join('\n') : ''
        const lists = [points, ...tag.lists]
          .filter((list) => list !== '')
          .map((list) => `\n${list}\n`)
          .join('')
        const inText = tag.isEmpty ? words : ` ${strong(words)} `
        put((words === '' ? '' : isBlock ? `${strong(words)}\n` : inText) + lists, tag.to)
      } else if (isMdx && tag.hasBraces)
        put(
          `<${name}${[...tag.attributes].map(([key, value]) => ` ${key}="${value.replaceAll('"', '&quot;')}"`).join('')}>`,
          tag.to,
        )
    }
  }
  return out + text.slice(at)
}

/** The name of a tab, and the value that it goes by. @typedef {{ label: string, of?: string }} Label */

/** @param {unknown} value @returns {value is { label: string, value: string }[]} */
const isOptions = (value) =>
  Array.isArray(value) &&
  value.length > 0 &&
  value.every((each) => typeof each?.label === 'string' && typeof each?.value === 'string')

/** What a part is called that does not say so itself. @param {Label[]} labels @param {string} name @param {string | undefined} value */
function labelOf(labels, name, value) {
  const at = labels.findIndex(({ of }) => of !== undefined && of === value)
  const [found] =
    at >= 0 ? labels.splice(at, 1) : labels.some(({ of }) => of !== undefined) ? [] : labels.splice(0, 1)
  return found?.label ?? (/Tab/.test(name) ? (value ?? '') : '')
}

/**
 * The rest of a tag.
 * @param {string} text
 * @param {number} from behind its name
 * @param {Map<number, number>} braces of the text
 * @param {Expressions} values
 * @returns what its attributes say: words, the names of its parts, and lists of objects as Markdown; undefined for what is no tag
 */
function tagAt(text, from, braces, values) {
  /** @type {Map<string, string>} */
  const attributes = new Map()
  /** @type {[name: string, expression: string][]} */
  const expressions = []
  ATTRIBUTE.lastIndex = from
  for (let found = ATTRIBUTE.exec(text); found; found = ATTRIBUTE.exec(text)) {
    const [, end, spread, name = '', double, single, brace] = found
    // Values are read when it is known that this is a tag: those of one within another would be read as often as they are deep.
    if (end) {
      const more = valuesOf(expressions, attributes, values)
      const hasBraces = expressions.length > 0
      return { attributes, ...more, hasBraces, isEmpty: end === '/>', to: ATTRIBUTE.lastIndex }
    }
    const value = double ?? single
    if (spread ?? brace) {
      const start = ATTRIBUTE.lastIndex - 1
      const close = closeOf(braces, start)
      if (close < 0) return undefined
      expressions.push([name, text.slice(start + 1, close)])
      ATTRIBUTE.lastIndex = close + 1
    }
    if (value !== undefined) attributes.set(name, value)
  }
  return undefined
}

/**
 * @param {[name: string, expression: string][]} expressions
 * @param {Map<string, string>} attributes gain those that are texts
 * @param {Expressions} values
 * @returns {{ labels: Label[], lists: string[] }}
 */
function valuesOf(expressions, attributes, values) {
  /** @type {string[]} */
  const lists = []
  /** @type {Label[]} */
  let labels = []
  /** @type {string[] | undefined} */
  let head
  for (const [name, expression] of expressions) {
    const value = values.valueOf(expression)
    const text = asText(value)
    const isWords = isTexts(value)
    if (text !== undefined) attributes.set(name, text)
    else if (HEADS.test(name) && isWords) head = value
    else if (LABELS.test(name) && isOptions(value))
      labels = value.map(({ label, value: of }) => ({ label, of }))
    else if (isWords && (LABELS.test(name) || values.isNamed(expression)))
      labels = (values.once(value) ?? []).map((label) => ({ label }))
    else lists.push(markdownList(values.once(value), head))
  }
  return { labels, lists }
}

/** A sentence, whatever the attribute is called. It begins with a capital or ends with a mark, and has three words. */
const SENTENCE = /^(?=\p{Lu}|.*[.?!]$)[^\s{}]+(?:\s+[^\s{}]+){2,}$/su

/** @param {string} name @param {Map<string, string>} attributes */
const wordsOf = (name, attributes) =>
  [...attributes]
    .filter(
      ([key, value]) =>
        value.trim() !== '' && (WORDS.test(key) || FIELD.test(name) || SENTENCE.test(value.trim())),
    )
    .map(([, value]) => value.trim())
    .join(', ')

/** What a note without a title is called: by its attribute, else by its name. @param {string} name @param {Map<string, string>} attributes */
function noteOf(name, attributes) {
  if (!NOTE_TAG.test(name)) return ''
  const kind = KINDS.map((each) => attributes.get(each) ?? '').find((each) => NOTE.test(each)) ?? name
  return NOTE.test(kind) ? called(kind) : ''
}

/** A string of one line, a brace, or anything else. */
const BRACE = /(["'])(?:\\.|(?!\1)[^\\\n])*\1|[{}]/g

/** Where each brace that opens is closed. Quotes outside of all braces are apostrophes. @param {string} text */
function bracesIn(text) {
  /** @type {Map<number, number>} */
  const closes = new Map()
  /** @type {number[]} */
  const open = []
  BRACE.lastIndex = 0
  for (let found = BRACE.exec(text); found; found = BRACE.exec(text)) {
    if (found[0] === '{') open.push(found.index)
    else if (found[0] === '}') {
      const from = open.pop()
      if (from !== undefined) closes.set(from, found.index)
    } else if (open.length === 0) BRACE.lastIndex = found.index + 1
  }
  return closes
}

/** Where the brace that opens somewhere is closed; -1 if it is not, or too far away. @param {Map<number, number>} braces @param {number} from */
function closeOf(braces, from) {
  const close = braces.get(from) ?? -1
  return close - from <= LONGEST_EXPRESSION ? close : -1
}
