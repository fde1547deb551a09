/** reStructuredText and AsciiDoc, as HTML first. */
import { firstHeading, textArticle, titleOfPath } from './article.mjs'
import { bodyToMarkdown } from './html.mjs'

/** Directives that the compiler knows. Of all others, most of them Sphinx's, what they hold is read. */
const KNOWN =
  /^(?:attention|caution|danger|error|hint|important|note|tip|warning|admonition|seealso|image|figure|code|code-block|sourcecode|list-table|csv-table|table|math|container|centered|class|replace)$/
/** Those that hold nothing to read, or what is read elsewhere. */
const GONE =
  /^(?:toctree|contents|raw|include|literalinclude|highlight|index|meta|default-role|role|currentmodule|sectionauthor|moduleauthor|tabularcolumns|only-latex)$/
/** Their argument is an option of theirs and no words. */
const UNSAID =
  /^(?:only|ifconfig|auto.*|grid|grid-item|tabs|glossary|productionlist|hlist|tab-set|container|centered|rst-class|cssclass)$/
/** A condition that no website meets. */
const NOT_HTML = /^(?:latex(?:pdf)?|pdf|man|text|texinfo|gettext)$/
/** What holds code and is no directive of the compiler's. */
const LITERAL = /^(?:parsed-literal|code-tab|prompt|console|doctest|testcode|testoutput|ipython)$/
const VERSION = /^(?:versionadded|versionchanged|deprecated|versionremoved)$/
const DIRECTIVE = /^([ \t]*)\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([\w][\w:+.-]*)::(?:[ \t]+(.*))?$/
/** One that goes on in the next line. */
const LONG_ROLE = /:[\w+:.-]{1,50}:`(?:[^`\\\n]|\\.){0,300}\n[ \t]*(?=\S)(?:[^`\\\n]|\\.){0,300}`/g
/** Roles that are more than their words. */
const ROLE = /:([\w+:.-]+):`((?:[^`\\]|\\.)+)`/g
const KEPT_ROLE =
  /^(?:math|sub|sup|subscript|superscript|emphasis|strong|literal|code|title|t|kbd|abbreviation)$/
const CODE_ROLE =
  /(?:^|:)(?:class|func|meth|mod|attr|obj|data|exc|const|type|file|command|program|option|envvar|samp|member|macro|struct|var|setting|djadmin)$/

/**
 * What only Sphinx knows, as text that others know too.
 * @param {string} text
 */
function plainRst(text) {
  /** @type {string[]} */
  const lines = []
  /** Directives whose content is read as it is: their indent, and by how much it is moved. @type {{ indent: number, base?: number }[]} */
  const open = []
  let skipped = -1
  let code = -1
  let isHead = false
  let directive = -1
  for (const line of withTerms(withTables(text.split('\n')))) {
    const indent = line.length - line.trimStart().length
    const isBlank = line.trim() === ''
    if (!isBlank && indent <= skipped) skipped = -1
    if (skipped >= 0) continue
    if (!isBlank && indent <= code) code = -1
    while (!isBlank && indent <= (open.at(-1)?.indent ?? -1)) open.pop()
    const inner = open.at(-1)
    // Options stand right below their directive.
    if (isHead && /^\s+:[\w-]+:/.test(line)) continue
    isHead = false
    // What a block of code is called stands above it.
    const caption = directive >= 0 && code >= 0 ? /^\s+:caption:[ \t]+(.+)$/.exec(line)?.[1] : undefined
    if (caption !== undefined) {
      const margin = /^[ \t]*/.exec(lines[directive] ?? '')?.[0] ?? ''
      lines.splice(directive, 0, margin + plainRoles(caption), '')
      directive += 2
      continue
    }
    if (inner && !isBlank) inner.base ??= indent - (open[0]?.indent ?? 0)
    const strip = Math.min(indent, inner?.base ?? 0)
    const [, , name = '', said = ''] = code < 0 ? (DIRECTIVE.exec(line) ?? []) : []
    if (name === '' || KNOWN.test(name)) {
      if (isBlank) directive = -1
      else if (name !== '') directive = lines.length
      lines.push(code >= 0 ? line.slice(strip) : plainRoles(line.slice(strip)))
      if (code < 0 && (/::[ \t]*$/.test(line) ? name === '' : /^(?:code|sourcecode|parsed|math)/.test(name)))
        code = indent
    } else if (GONE.test(name) || (name === 'only' && NOT_HTML.test(said))) skipped = indent
    else if (LITERAL.test(name)) {
      const margin = ' '.repeat(indent - strip)
      lines.push('', ...(name === 'code-tab' ? [margin + said, ''] : []), `${margin}.. code-block:: text`)
      directive = -1
      code = indent
    } else {
      const margin = ' '.repeat(indent - strip)
      const words = VERSION.test(name)
        ? `${name.replace(/^version/, '')} ${said}`
        : UNSAID.test(name)
          ? ''
          : said
      const title =
        name.includes(':') || /^(?:function|class|method|option|envvar|setting)$/.test(name)
          ? `\`\`${words}\`\``
          : name === 'rubric'
            ? `**${words}**`
            : plainRoles(words)
      lines.push('', words.trim() === '' ? '' : margin + title, '')
      open.push({ indent })
      isHead = true
    }
  }
  const plain = lines.join('\n').replace(LONG_ROLE, (whole) => plainRoles(whole))
  return (
    plain
      // Marks of notes, which would pass for citations, and names that nothing stands for.
      .replace(/(?<=\S)[ \t]*\[(?:#?[\w-]*|\*)\]_(?!\w)/g, '')
      .replace(/(?<![\w|`])\|([\w][\w .-]*)\|_{0,2}(?![\w|])/g, (_, name) =>
        plain.includes(`.. |${name}|`) ? `|${name}|` : name,
      )
  )
}

const indentOf = (/** @type {string} */ line) => line.length - line.trimStart().length
/** What begins a line that is no term. */
const NO_TERM =
  /^[ \t]*(?:\.\.(?:[ \t]|$)|[-*+•][ \t]|(?:\w{1,4}|#)[.)][ \t]|\((?:\w{1,4}|#)\)[ \t]|:[^:\s]|[|>+=]|--?\w)|::[ \t]*$/

/**
 * Terms, whose meaning stands below them with an indent: the compiler knows it by four blanks.
 * @param {string[]} lines
 */
function withTerms(lines) {
  /** @type {{ indent: number, more: number }[]} */
  const open = []
  let code = -1
  return lines.map((line, at) => {
    if (line.trim() === '') return line
    const indent = indentOf(line)
    if (code >= 0 && indent <= code) code = -1
    while (indent <= (open.at(-1)?.indent ?? -1)) open.pop()
    const moved = Math.max(0, indent + open.reduce((sum, { more }) => sum + more, 0))
    const [before = '', after = ''] = [lines[at - 1], lines[at + 1]]
    const begins = before.trim() === '' || indentOf(before) > indent
    const inner = after.trim() === '' ? 0 : indentOf(after) - indent
    if (code < 0 && begins && inner > 0 && !NO_TERM.test(line) && !NO_TERM.test(after))
      open.push({ indent, more: 4 - inner })
    const [, , name = ''] = DIRECTIVE.exec(line) ?? []
    if (code < 0 && (/::[ \t]*$/.test(line) ? name === '' : false)) code = indent
    if (code < 0 && /^(?:code|sourcecode|parsed|math|raw|literal)/.test(name)) code = indent
    return ' '.repeat(moved) + line.slice(indent)
  })
}

/**
 * Tables that are lists, of which a cell holds more than a paragraph: the compiler knows those of one alone.
 * @param {string[]} lines
 */
function withTables(lines) {
  /** @type {string[]} */
  const made = []
  for (let at = 0; at < lines.length; at += 1) {
    const line = lines[at] ?? ''
    const [, margin = '', name, caption = ''] = DIRECTIVE.exec(line) ?? []
    made.push(line)
    if (name !== 'list-table') continue
    let end = at + 1
    while (
      end < lines.length &&
      ((lines[end] ?? '').trim() === '' || indentOf(lines[end] ?? '') > margin.length)
    )
      end += 1
    const table = tableOfList(lines.slice(at + 1, end), `${margin}   `)
    if (table) made.splice(-1, 1, `${margin}.. csv-table:: ${caption}`, ...table, '')
    else made.push(...lines.slice(at + 1, end))
    at = end - 1
  }
  return made
}

/** @param {string[]} lines of a list of lists @param {string} margin @returns {string[] | undefined} nothing where each cell is one paragraph */
function tableOfList(lines, margin) {
  const options = lines.filter((line) => /^\s+:(?:header-rows|stub-columns|widths):/.test(line))
  /** @type {string[][]} */
  const rows = []
  let isSimple = true
  let cellIndent = -1
  for (const [at, line] of lines.entries()) {
    if (options.includes(line) || /^\s+:[\w-]+:/.test(line) || line.trim() === '') continue
    const row = /^(\s*[*+-]\s+)[*+-](?:\s+(.*))?$/.exec(line)
    const cell = /^(\s*)[*+-](?:\s+(.*))?$/.exec(line)
    if (row && (cellIndent < 0 || row[1]?.length === cellIndent)) {
      cellIndent = row[1]?.length ?? 0
      rows.push([row[2] ?? ''])
    } else if (cell && cell[1]?.length === cellIndent) rows.at(-1)?.push(cell[2] ?? '')
    else {
      const cells = rows.at(-1)
      if (!cells) return undefined
      const isBlock = (lines[at - 1] ?? '').trim() === '' || /^\s*(?:[*+-]|\w{1,3}[.)])\s/.test(line)
      if (isBlock || /^[*+-]\s/.test(cells.at(-1) ?? '')) isSimple = false
      const text = line.trim().replace(/^(?:[*+-]|\.\.\s+[\w-]+::)\s*/, '')
      const last = cells.pop()?.replace(/^[*+-]\s+/, '') ?? ''
      cells.push(last === '' ? text : `${last}${/^\s*[*+-]\s/.test(line) ? '; ' : ' '}${text}`)
    }
  }
  if (isSimple || rows.length === 0) return undefined
  const written = rows.map(
    (cells) => margin + cells.map((cell) => `"${plainRoles(cell).replaceAll('"', '""')}"`).join(', '),
  )
  return [
    ...options.filter((line) => !line.includes('widths')).map((line) => margin + line.trim()),
    '',
    ...written,
  ]
}

/** @param {string} line */
const plainRoles = (line) =>
  line.replace(ROLE, (whole, role, content) => {
    if (KEPT_ROLE.test(role)) return whole
    const [, words = '', target = ''] = /^([\s\S]*?)\s*<([^<>]*)>$/.exec(content) ?? ['', content]
    const said = (words || target).replace(/^[!]/, '').replace(/^~(?:.*\.)?/, '')
    return CODE_ROLE.test(role) ? `\`\`${said}\`\`` : said
  })

/** What other parts of a page refer to: substitutions and links. */
const DEFINITION =
  /^\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+\w+::|_[^:\n]+:[ \t]+\S|__[: ])[^\n]*(?:\n[ \t]+\S[^\n]*)*/gm

/** What stands for a refused block: a sign of the private use area, its number, and another one. */
const [OPEN, CLOSE] = ['\uE000', '\uE001']

/**
 * A page of which the compiler refuses something: what is refused becomes its words, and the rest is read.
 * @param {string} text
 * @param {(rst: string) => string} compile
 */
function withoutRefused(text, compile) {
  const definitions = (text.match(DEFINITION) ?? []).join('\n')
  const compiled = (/** @type {string[]} */ blocks) => compile([...blocks, definitions, ''].join('\n\n'))
  /** @type {string[]} */
  const refused = []
  /** @param {string[]} blocks @returns {string[]} those that the compiler takes, and a sign for each other one */
  const taken = (blocks) => {
    try {
      compiled(blocks)
      return blocks
    } catch {
      if (blocks.length === 1) return [`${OPEN}${refused.push(wordsOf(blocks.join(''))) - 1}${CLOSE}`]
      const half = Math.ceil(blocks.length / 2)
      return [...taken(blocks.slice(0, half)), ...taken(blocks.slice(half))]
    }
  }
  const blocks = taken(text.replace(DEFINITION, '').split(/\n(?:[ \t]*\n)+(?=\S)/))
  let markdown = ''
  try {
    markdown = compiled(blocks)
  } catch {
    // What each of them says, and all together may not.
    markdown = blocks.map((block) => compiled([block])).join('\n\n')
  }
  return markdown.replace(/\uE000(\d+)\uE001/g, (_, number) => refused[number] ?? '')
}

/** Inline marks that Markdown writes otherwise. @param {string} line */
const plainWords = (line) =>
  line
    .replace(/``([^`\n]+)``/g, '`$1`')
    .replace(/:[\w+:.-]+:`([^`\n]+)`/g, '$1')
    .replace(/(?<!`)`([^`<\n]+?)\s*(?:<[^<>\n]*>)?`_{0,2}(?![`\w])/g, '$1')

/** What a block says, without marks of directives, their options and comments. @param {string} block */
const wordsOf = (block) =>
  block
    .replace(/^[ \t]*\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?[\w:+.-]+::/gm, '')
    .replace(/^[ \t]*\.\.(?:[ \t]+_[^:\n]*:)?[ \t]*$/gm, '')
    .replace(/^[ \t]+:[\w-]+:[^\n]*\n?/gm, '')
    .split('\n')
    .map((line) => plainWords(line.trim()))
    .join('\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim()

/**
 * @param {string} text
 * @param {string} path
 * @returns {Promise<import('./article.mjs').Content>}
 */
export async function readRst(text, path) {
  const { RstToHtmlCompiler } = await import('rst-compiler')
  const plain = plainRst(text.replaceAll('\t', '        '))
  const compile = (/** @type {string} */ rst) =>
    bodyToMarkdown(
      new RstToHtmlCompiler()
        .compile(rst)
        .body.replace(/<span class="literal">(.*?)<\/span>/gs, '<code>$1</code>')
        .replace(/<ol([^>]*)>(\s*)<li value="(\d+)">/g, '<ol$1 start="$3">$2<li>')
        .replace(
          /<div class="admonition (?!admonition)([a-z]+)">/g,
          (div, kind) =>
            `${div}<p><strong>${kind === 'seealso' ? 'See also' : kind.charAt(0).toUpperCase() + kind.slice(1)}</strong></p>`,
        ),
    )
  try {
    return { article: textArticle(compile(plain), path) }
  } catch {
    return { article: textArticle(withoutRefused(plain, compile), path) }
  }
}

/**
 * @param {string} text
 * @param {string} path
 * @returns {Promise<import('./article.mjs').Content>}
 */
export async function readAdoc(text, path) {
  const { default: asciidoctor } = await import('@asciidoctor/core')
  const document = asciidoctor().load(text, {
    safe: 'secure',
    attributes: { showtitle: true, 'icons!': '', 'toc!': '', experimental: '' },
  })
  const title = document.getDocumentTitle()
  const html = String(document.convert())
    // Files that it includes are read themselves.
    .replace(/<a href="[^"]*" class="bare include">[^<]*<\/a>/g, '')
    .replace(/<a href="#_footnoteref_\d+">(\d+)<\/a>/g, '$1')
    .replace(/\\\$([^$]{1,2000})\\\$/g, '\\($1\\)')
  const markdown = bodyToMarkdown(html)
  return {
    article: {
      title:
        (typeof title === 'string' && title.replace(/<[^>]*>/g, '')) ||
        firstHeading(markdown) ||
        titleOfPath(path),
      text: markdown,
    },
  }
}
