/** What readers make of files and pages. */

/**
 * A page to read.
 * @typedef {object} Article
 * @property {string} title
 * @property {string} text Markdown. A heading may end with the name of its place, `{#install}`, and so may a paragraph be one
 * @property {string} [url] where people read it
 * @property {string[]} [tags]
 */

/**
 * A row of a table, or a JSON object.
 * @typedef {Record<string, unknown>} Row
 */

/**
 * Rows of a file. `sheetField` is the field of rows of several sheets that says which sheet a row is of. `lines` are those of
 * the file at which the rows begin, counted from 1. `faults` says of rows, by their index, why they cannot be imported.
 * @typedef {{ rows: Row[], sheetField?: string, lines?: number[], faults?: Map<number, string> }} Table
 */

/**
 * What a file holds. `indexed` is false for a page that asks search engines to leave it out. `hidden` names what the file marks
 * as hidden, which is not read.
 * @typedef {({ article: Article, indexed?: false } | Table) & { hidden?: string[] }} Content
 */

/**
 * Goes through a Markdown text, and leaves code as it is.
 * @template Kept
 * @param {string[]} lines
 * @param {(line: string) => Kept | undefined} visit lines outside of code
 * @returns {(Kept | string)[]} what it made of them, but undefined, and all lines of code
 */
export function outsideCode(lines, visit) {
  let fence = ''
  /** @type {(Kept | string)[]} */
  const all = []
  for (const line of lines) {
    const mark = /^[ \t>]*(`{3,}|~{3,})/.exec(line)?.[1]
    if (fence !== '' || mark) {
      if (fence === '') fence = mark ?? ''
      else if (mark?.startsWith(fence)) fence = ''
      all.push(line)
      continue
    }
    const made = visit(line)
    if (made !== undefined) all.push(made)
  }
  return all
}

/** The lines of a Markdown text that are no code. @param {string} markdown */
export function linesOutsideCode(markdown) {
  /** @type {string[]} */
  const lines = []
  outsideCode(markdown.split('\n'), (line) => lines.push(line))
  return lines
}

/**
 * Text as Markdown in which nothing is emphasis or an element of HTML, but in blocks of code: `<style>` in a manual would hide all behind it
 * where it is shown.
 * @param {string} text
 */
export const withoutElements = (text) =>
  outsideCode(text.split('\n'), (line) => line.replace(ELEMENT, '\\<').replace(STAR, '\\*')).join('\n')

/** A star between words or signs, as in `a*b*c`, which would be read as emphasis. */
const STAR = /(?<=[^\s*\\])\*(?=[^\s*])/g

/** What would begin an element, a comment or an instruction. */
export const ELEMENT = /<(?=[a-z/!?])/gi

/**
 * The title of a Markdown text: its first heading, outside of code.
 * @param {string} markdown
 * @returns {string | undefined}
 */
export function firstHeading(markdown) {
  for (const line of linesOutsideCode(markdown)) {
    const heading = /^ {0,3}#{1,6}\s+(.+?)\s*#*\s*$/.exec(line)?.[1]
    if (heading) return plain(heading)
  }
  return undefined
}

/** A text, or Markdown, as a page. @param {string} text @param {string} path its name is the title of a text without headings */
export const textArticle = (text, path) => ({ title: firstHeading(text) ?? titleOfPath(path), text })

/** A file of plain text. @param {string} text @param {string} path @returns {Content} */
export const readText = (text, path) => ({ article: textArticle(text.trim(), path) })

/** The ending of a file's name in small letters, without its dot; '' where it has none. @param {string} path */
export const endingOf = (path) => /[^/]\.([^./]+)$/.exec(path)?.[1]?.toLowerCase() ?? ''

/** What programs call a document that nobody has named, in a few languages, and the names of files. */
const PLACEHOLDER =
  /^[(<[]?(?:anonymous|unnamed|unknown|untitled|no title|none|null|title|titel|titre|document|dokument|presentation|präsentation|présentation|slides?|folie|diapositive|layout|template|print|output|scan(?:ned document)?|blank|unbenannt|ohne titel|sans titre|sin título|senza titolo|naamloos|about:blank)(?: ?(?:document|presentation))?[)>\]]?[\s\d_-]*$|^(?:microsoft )?powerpoint|powerpoint$|\.(?:docx?|pptx?|xlsx?|odt|rtf|tex|dvi|indd|pdf|html?|qxd|pages|md|ps|ai)$|^(?:https?|file):/i

/** A title that says what a document is about. @param {string | undefined} title @returns {string | undefined} */
export const ownTitle = (title) =>
  title === undefined || title === '' || PLACEHOLDER.test(title) ? undefined : title

/**
 * A name for what has no title of its own: the last part of a path, in words.
 * @param {string} path
 */
export const titleOfPath = (path) => {
  const parts = path.split('/').filter(Boolean)
  const last = parts.at(-1)?.replace(/\.[a-z0-9]+$/i, '') ?? ''
  const name = /^(index|readme)$/i.test(last) ? (parts.at(-2) ?? last) : last
  const words = decodeSafely(name).replace(/[-_]+/g, ' ').trim()
  return words === '' ? path : words.charAt(0).toUpperCase() + words.slice(1)
}

/** What an address says, unless it is no encoding of anything. @param {string} text */
export const decodeSafely = (text) => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Markdown's marks taken off a line. @param {string} line */
const plain = (line) =>
  line
    .replace(/\{#[^}]*\}\s*$/, '')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[`*]/g, '')
    .replace(/<[^>]+>/g, '')
    .trim()
