/** reStructuredText and AsciiDoc, as HTML first. */
import { firstHeading, textArticle, titleOfPath } from './article.mjs'
import { bodyToMarkdown } from './html.mjs'

/** Directives that the compiler knows. Of all others, most of them Sphinx's, what they hold is read. */
const KNOWN =
  /^(?:attention|caution|danger|error|hint|important|note|tip|warning|admonition|seealso|image|figure|code|code-block|sourcecode|parsed-literal|list-table|csv-table|table|math|rubric|container|centered|class|replace|tabs|tab)$/
/** Those that hold nothing to read, or what is read elsewhere. */
const GONE =
  /^(?:toctree|contents|raw|include|literalinclude|highlight|index|meta|default-role|role|currentmodule|sectionauthor|moduleauthor|tabularcolumns|only-latex)$/
/** Their argument is an option of theirs and no words. */
const UNSAID =
  /^(?:only|ifconfig|auto.*|grid.*|glossary|productionlist|hlist|tab-set|container|centered|rst-class|cssclass)$/
const VERSION = /^(?:versionadded|versionchanged|deprecated|versionremoved)$/
const DIRECTIVE = /^([ \t]*)\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([\w][\w:+.-]*)::(?:[ \t]+(.*))?$/
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
  for (const line of text.split('\n')) {
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
    if (inner && !isBlank) inner.base ??= indent - (open[0]?.indent ?? 0)
    const strip = Math.min(indent, inner?.base ?? 0)
    const [, , name = '', said = ''] = code < 0 ? (DIRECTIVE.exec(line) ?? []) : []
    if (name === '' || KNOWN.test(name)) {
      lines.push(code >= 0 ? line.slice(strip) : plainRoles(line.slice(strip)))
      if (code < 0 && (/::[ \t]*$/.test(line) ? name === '' : /^(?:code|sourcecode|parsed|math)/.test(name)))
        code = indent
    } else if (GONE.test(name)) skipped = indent
    else {
      const margin = ' '.repeat(indent - strip)
      const words = VERSION.test(name)
        ? `${name.replace(/^version/, '')} ${said}`
        : UNSAID.test(name)
          ? ''
          : said
      const title =
        name.includes(':') || /^(?:function|class|method|option|envvar|setting)$/.test(name)
          ? `\`\`${words}\`\``
          : plainRoles(words)
      lines.push('', words.trim() === '' ? '' : margin + title, '')
      open.push({ indent })
      isHead = true
    }
  }
  const plain = lines.join('\n')
  return (
    plain
      // Marks of notes, which would pass for citations, and names that nothing stands for.
      .replace(/(?<=\S)[ \t]*\[(?:#?[\w-]*|\*)\]_(?!\w)/g, '')
      .replace(/(?<![\w|`])\|([\w][\w .-]*)\|_{0,2}(?![\w|])/g, (whole, name) =>
        plain.includes(`.. |${name}|`) ? whole : name,
      )
  )
}

/** @param {string} line */
const plainRoles = (line) =>
  line.replace(ROLE, (whole, role, content) => {
    if (KEPT_ROLE.test(role)) return whole
    const [, words = '', target = ''] = /^([\s\S]*?)\s*<([^<>]*)>$/.exec(content) ?? ['', content]
    const said = (words || target).replace(/^[!]/, '').replace(/^~(?:.*\.)?/, '')
    return CODE_ROLE.test(role) ? `\`\`${said}\`\`` : said
  })

/**
 * @param {string} text
 * @param {string} path
 * @returns {Promise<import('./article.mjs').Content>}
 */
export async function readRst(text, path) {
  const { RstToHtmlCompiler } = await import('rst-compiler')
  const plain = plainRst(text.replaceAll('\t', '        '))
  let markdown = ''
  try {
    const { body } = new RstToHtmlCompiler().compile(plain)
    markdown = bodyToMarkdown(body.replace(/<span class="literal">(.*?)<\/span>/gs, '<code>$1</code>'))
  } catch {
    // What it refuses is read as text, below, which loses nothing but form.
  }
  markdown ||= plain.replace(/^(\S.*)\n([=\-~^"'#*+])\2{2,}[ \t]*$/gm, '## $1').trim()
  return { article: textArticle(markdown, path) }
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
    attributes: { showtitle: true, 'icons!': '' },
  })
  const title = document.getDocumentTitle()
  const markdown = bodyToMarkdown(String(document.convert()))
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
