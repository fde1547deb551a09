/** From what was read to documents. The command line imports with this, and so does the console, in a browser. */
import { anchor as anchorOf } from '../../docs/anchors.mjs'
import { firstHeading, titleOfPath } from '../read/article.mjs'
import { passagesOf, withoutPlaces } from './passages.mjs'
import { marked } from './plan.mjs'
import { articleFields, documentOf, PAGE, PART, rowFields } from './schema.mjs'
import { fileMark, SHEET, sharedTitles, titleDigest } from './unchanged.mjs'

/** @typedef {import('./plan.mjs').Document} Document */
/** @typedef {import('./schema.mjs').Field} Field */

/**
 * A file that is imported.
 * @typedef {object} File
 * @property {string} id among the documents
 * @property {string} name its path in the folder
 * @property {string} source what its import goes by: the folder, or the file itself
 * @property {string} [place] of the source (folder.mjs)
 * @property {string} [digest] of its bytes and of how they are read (unchanged.mjs)
 */

/** What a document comes from. @typedef {Pick<File, 'source' | 'place'>} Origin */

/**
 * What was read: pages, or rows.
 * @typedef {object} Read
 * @property {{ id: string, from: Origin, path?: string, section: string, article: import('../read/article.mjs').Article, indexed?: false, digest?: string | undefined }[]} articles
 *   `path`: of the file within the import
 * @property {{ id: string, from: Origin, file: Pick<File, 'id' | 'name' | 'digest'>, at: string, row: Record<string, unknown> }[]} rows `at`: the
 *   file and line, to name it
 * @property {{ source: string, error: string }[]} unread
 * @property {string[]} hidden what files mark as hidden, which is left out
 * @property {{ title: string, indexed: boolean }[]} others pages of the same sources that are not read, since they did not change or
 *   were not named: the digest of each one's title
 * @property {boolean} [partial] whether these are some files of a folder that was imported whole
 * @property {boolean} complete whether all that there is was seen: what is missing is gone
 */

/** @returns {Read} */
export const newRead = () => ({ articles: [], rows: [], unread: [], hidden: [], others: [], complete: true })

/**
 * Adds what a file holds.
 * @param {Read} read
 * @param {File} file
 * @param {import('../read/article.mjs').Content} content
 * @param {string} [idField] the field of a row that is its id
 * @throws Error for a row without that field
 */
export function addContent(read, { id, name, source, place, digest }, { hidden = [], ...content }, idField) {
  read.hidden.push(...hidden.map((what) => `${what} of ${name}`))
  const from = { source, ...(place !== undefined && { place }) }
  if ('rows' in content) {
    const { rows, sheetField, lines, faults } = content
    const ids = rows.map((row, index) => (faults?.has(index) ? undefined : rowId(row, idField)))
    const sheets = rows.map((row) => (sheetField === undefined ? '' : String(row[sheetField])))
    const isShared = areShared(ids, sheets)
    /** @type {Pick<File, 'id' | 'name' | 'digest'>} */
    const file = { id, name, ...(digest !== undefined && !faults?.size && { digest }) }
    for (const [index, row] of rows.entries()) {
      const own = ids[index]
      // No sheet has a slash in its name.
      const unique = isShared && own !== undefined ? `${sheets[index]}/${own}` : own
      const line = lines?.[index]
      const at = `${name}, ${line === undefined ? `row ${index + 1}` : `line ${line}`}`
      const error = faults?.get(index)
      if (error !== undefined) read.unread.push({ source: at, error })
      else read.rows.push({ id: unique ?? `${id}/${index + 1}`, from, file, at, row })
    }
  } else if (content.article.text === '') {
    // A redirect needs no text.
    if (content.indexed !== false) read.unread.push({ source: name, error: 'holds no text' })
  } else read.articles.push({ id, from, path: name, section: sectionOf(name), digest, ...content })
}

/**
 * Leaves out the pages of a folder that ask search engines to do so: most are redirects and copies for printing. If
 * all pages ask, as those of a preview do, none is left out.
 * @param {Read} read
 * @returns {string[]} the ids of those that were left out
 */
export function leaveOutUnindexed(read) {
  const indexed = read.articles.filter((each) => each.indexed !== false)
  if (indexed.length === 0 && !read.others.some((each) => each.indexed)) return []
  const others = read.articles.filter((each) => each.indexed === false)
  read.articles = indexed
  return others.map(({ id }) => id)
}

/**
 * Moves rows whose id an earlier one has to what is not imported: the server would keep only the last of them. A row that
 * says the same once more is left out without a word.
 * @param {Read} read
 */
export function leaveOutCopies(read) {
  /** @type {Map<string, Read['rows'][number]>} */
  const byId = new Map()
  for (const entry of read.rows) {
    const first = byId.get(entry.id)
    if (first === undefined) byId.set(entry.id, entry)
    else if (JSON.stringify(first.row) !== JSON.stringify(entry.row)) {
      const error = `its id "${entry.id}" is that of ${first.at} already: each row needs an id of its own`
      read.unread.push({ source: entry.at, error })
      // What is told of the file is told again.
      delete entry.file.digest
    }
  }
  read.rows = [...byId.values()]
}

/** A table with more columns is told row by row. */
const MOST_COLUMNS = 8

/**
 * Makes pages of the tables that lie beside pages: rows and pages have no fields in common. Data of programs, such as
 * package.json, is left out.
 * @param {Read} read
 * @returns {string[]} the files that are left out
 */
export function tablesAsPages(read) {
  if (read.articles.length + read.others.length === 0 || read.rows.length === 0) return []
  const files = Map.groupBy(read.rows, ({ file }) => file.name)
  read.rows = []
  for (const [name, rows] of files) {
    const [first] = rows
    if (!first || !SHEET.test(name)) continue
    const text = textOfRows(rows.map(({ row }) => row))
    const { from, file } = first
    files.delete(name)
    read.articles.push({
      id: file.id,
      from,
      path: name,
      section: sectionOf(name),
      article: { title: titleOfPath(name), text },
      digest: file.digest,
    })
  }
  return [...files.keys()]
}

/** @param {Record<string, unknown>[]} rows @returns {string} Markdown */
function textOfRows(rows) {
  const columns = [...new Set(rows.flatMap(Object.keys))]
  const cell = (/** @type {unknown} */ value) =>
    (typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? ''))
      .replace(/\s*\n\s*/g, ' ')
      .trim()
  if (columns.length > MOST_COLUMNS) {
    const told = (/** @type {Record<string, unknown>} */ row) =>
      columns.flatMap((column) => (cell(row[column]) === '' ? [] : [`${column}: ${cell(row[column])}`]))
    return rows.map((row) => told(row).join('; ')).join('\n\n')
  }
  const line = (/** @type {string[]} */ cells) =>
    `| ${cells.map((each) => each.replaceAll('|', '\\|')).join(' | ')} |`
  return [
    line(columns),
    line(columns.map(() => '---')),
    ...rows.map((row) => line(columns.map((column) => cell(row[column])))),
  ].join('\n')
}

/** The name of the first document of a page of a site. @param {string} url */
export const pageIdOf = (url) => {
  const { host, pathname, search } = new URL(url)
  return `${host}${pathname}${search}`
}

/** @param {string} name a path @returns {string} its folder; '' for none */
export const sectionOf = (name) => {
  const path = name.replace(/\/+$/, '')
  const at = path.lastIndexOf('/')
  return at < 0 ? '' : path.slice(0, at) || '/'
}

/**
 * Whether rows of different sheets have the same id: each sheet may count from 1.
 * @param {(string | undefined)[]} ids
 * @param {string[]} sheets
 */
function areShared(ids, sheets) {
  /** @type {Map<string, string | undefined>} */
  const first = new Map()
  return ids.some((id, index) => {
    if (id === undefined) return false
    if (!first.has(id)) first.set(id, sheets[index])
    return first.get(id) !== sheets[index]
  })
}

/** @param {Record<string, unknown>} row @param {string | undefined} field */
function rowId(row, field) {
  const value = row[field ?? 'id']
  if (typeof value === 'string' && value !== '') return value
  if (typeof value === 'number') return String(value)
  if (field === undefined) return undefined
  throw new Error(`a row has no "${field}" to be its id`)
}

/**
 * @typedef {object} Making
 * @property {string} embedding the model that makes the vectors
 * @property {string} [baseUrl] where the files of a folder are read on the web; without it they have no address, since
 *   that of the server which happens to take the import leads nowhere from the next one, and visitors cannot open it
 * @property {Record<string, string>} [types] of fields, by name
 * @property {Field[]} [fields] those that the collection has, or is to have
 * @property {(texts: string[]) => import('../../../src/lib/grammar.ts').Language} [languageOf] how texts of a new collection are searched. What reads
 *   sites in the Worker makes its collection before it knows any
 * @property {boolean} [whole] whether each page is one document, and not one for each passage
 */

/**
 * @param {Pick<Read, 'articles' | 'rows'> & Partial<Pick<Read, 'others'>>} read
 * @param {Making} making
 * @returns {Promise<{ fields: Field[], documents: Document[] }>}
 */
export async function asDocuments(
  { articles, rows, others = [] },
  { embedding, baseUrl, types = {}, fields: given, languageOf = () => ({}), whole = false },
) {
  if (articles.length > 0) {
    const digests = await Promise.all(articles.map(({ article }) => titleDigest(article.title)))
    const shared = sharedTitles([...digests, ...others.map(({ title }) => title)])
    const documents = articles.map(
      async ({ id, from, path = '', section, article: read, indexed, digest }, at) => {
        const own = digests[at] ?? ''
        const heading = firstHeading(read.text)
        const isShared = shared.has(own)
        const title = !isShared
          ? read.title
          : heading && !shared.has(await titleDigest(heading))
            ? heading
            : titleOfPath(path || id)
        const url = read.url ?? urlOf(path, baseUrl)
        const page = { id, ...read, title, url, ...(section !== '' && { section }) }
        const made = whole ? [{ ...page, text: withoutPlaces(page.text) }] : cut(page, MARKDOWN.test(path))
        const file =
          digest && fileMark({ digest, title: own, isShared, indexed: indexed ?? true, count: made.length })
        return made.map((document, at) => marked(withoutAbsent(document), from, at === 0 ? file : undefined))
      },
    )
    return {
      fields: given ?? articleFields(embedding, languageOf(articles.map(({ article }) => article.text))),
      documents: await Promise.all((await Promise.all(documents)).flat()),
    }
  }
  const fields =
    given ??
    rowFields(
      rows.map(({ row }) => row),
      embedding,
      types,
      languageOf,
    )
  const counts = Map.groupBy(rows, ({ file }) => file)
  const documents = rows.map(({ id, from, row, file }) => {
    const its = counts.get(file)
    counts.delete(file)
    const mark = its && file.digest && fileMark({ digest: file.digest, count: its.length })
    return marked({ ...documentOf(row, fields), id }, from, mark)
  })
  return { fields, documents: await Promise.all(documents) }
}

/**
 * The passages of a page as documents. The first one has the page's id, and each of the others one that stays the same as long
 * as its heading does.
 * @param {Document & { title: string, text: string, url: string | undefined }} page
 * @param {boolean} slugs whether a heading without a name has the anchor that GitHub and site generators make of its words
 * @returns {Document[]}
 */
function cut(page, slugs) {
  const { id, title, text, url, ...rest } = page
  const name = names()
  return passagesOf(text, { slugs }).map(({ path, text, anchor }, at) => {
    const own = name(anchor ?? anchorOf(path.at(-1) ?? ''))
    return {
      id: at === 0 ? id : `${id}~${own}`,
      title,
      heading: [title, ...path.filter((heading, at) => at > 0 || heading !== title)]
        .map(withoutPage)
        .join(' > '),
      text,
      url:
        url === undefined || at === 0 || anchor === undefined
          ? url
          : `${url.replace(/#.*$/, '')}#${encodeURI(anchor)}`,
      ...rest,
      [PAGE]: id,
      [PART]: at + 1,
    }
  })
}

/** The page of a PDF is said once, behind the last heading. @param {string} heading @param {number} at @param {string[]} path */
const withoutPage = (heading, at, path) =>
  at === path.length - 1 ? heading : heading.replace(/ \(page \S+\)$/, '')

/** Makes names that none before has. */
function names() {
  /** @type {Map<string, number>} */
  const seen = new Map()
  return (/** @type {string} */ name) => {
    const times = (seen.get(name) ?? 0) + 1
    seen.set(name, times)
    return times === 1 && name !== '' ? name : `${name}~${times}`
  }
}

/** @param {Document} document @returns {Document} */
const withoutAbsent = (document) =>
  /** @type {Document} */ (
    Object.fromEntries(Object.entries(document).filter(([, value]) => value !== undefined))
  )

/** Files whose headings name their places only where they differ from their words. */
const MARKDOWN = /\.(?:mdx?|markdown)$/i

/** Files that sites serve as pages, without their ending. */
const PAGE_FILE = /\.(?:mdx?|markdown|html?|rst|adoc|asciidoc|ipynb)$/i

/**
 * The address of a file on the web: a page's without its ending, and a folder's for its index.
 * @param {string} path
 * @param {string | undefined} base
 */
export function urlOf(path, base) {
  if (base === undefined) return undefined
  const page = path.replace(PAGE_FILE, '').replace(/(^|\/)(index|readme)$/i, '$1')
  return `${base.replace(/\/+$/, '')}/${encodePath(page)}`
}

/** A path as a part of an address, in which `?` and `#` mean other things. @param {string} path */
export const encodePath = (path) => encodeURI(path).replace(/[?#]/g, encodeURIComponent)
