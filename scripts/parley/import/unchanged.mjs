/**
 * Files that are as an earlier import left them, which are not read again. The first document of a file tells, in its mark, what the
 * file was. The command line imports with this, and so does the console, in a browser.
 */
import { digestOf, markOf } from './plan.mjs'
import { HASH, PAGE, SOURCE } from './schema.mjs'

/** @typedef {import('./plan.mjs').Document} Document */
/** @typedef {import('./plan.mjs').Stored} Stored */

/**
 * What the first document of a file says of it.
 * @typedef {object} FileMark
 * @property {string} digest of its bytes and of how they are read
 * @property {number} count of its documents
 * @property {string} [title] of a page: the digest of its own title
 * @property {boolean} [isShared] whether so many pages have that title that this one is called otherwise
 * @property {boolean} [indexed] false for a page that asks not to be
 */

/** @param {FileMark} mark */
export const fileMark = ({ digest, count, title = '', isShared, indexed = true }) =>
  `${digest}.${count}.${title}${isShared ? 's' : ''}${indexed ? '' : 'n'}`

/** @param {string} mark @returns {FileMark} */
function fileMarked(mark) {
  const [, digest = '', count, title, isShared, unindexed] =
    /^(\w+)\.(\d+)\.([0-9a-f]*)(s?)(n?)$/.exec(mark) ?? []
  return {
    digest,
    count: Number(count),
    ...(title && { title }),
    isShared: isShared !== '',
    indexed: unindexed === '',
  }
}

/** @param {string} title */
export const titleDigest = (title) => digestOf(title, 8)

/** Pages that are called the same, in most of an import, are so many. */
const FEWEST_SHARED = 3

/** The titles that most pages have, such as that of their site: they tell none of them from the others. @param {string[]} titles */
export function sharedTitles(titles) {
  /** @type {Map<string, number>} */
  const counts = new Map()
  for (const title of titles) counts.set(title, (counts.get(title) ?? 0) + 1)
  const isShared = (/** @type {[string, number]} */ [, count]) =>
    count >= FEWEST_SHARED && count * 2 > titles.length
  return new Set([...counts].filter(isShared).map(([title]) => title))
}

/** Files of tables that people read, and not only programs. */
export const SHEET = /\.(?:csv|tsv|xlsx)$/i

/**
 * The files that earlier imports left whole: all documents that they wrote of them are there.
 * @param {Map<string, Stored>} stored
 * @returns {Map<string, FileMark & { source: string, ids: string[] }>} by their digests; `ids` of rows are not known
 */
export function wholeFiles(stored) {
  const byPage = Map.groupBy(stored.keys(), (id) => stored.get(id)?.page ?? id)
  const whole = new Map()
  for (const [id, { source, page, file }] of stored) {
    if (file === undefined) continue
    const mark = fileMarked(file)
    const ids = mark.title === undefined ? [] : (byPage.get(page ?? id) ?? [])
    if (mark.title === undefined || ids.length === mark.count)
      whole.set(mark.digest, { ...mark, source, ids })
  }
  return whole
}

/**
 * Decides which of the files that seem unchanged are so beside the others: a page's title depends on those of all pages, and rows are
 * pages where there are pages.
 * @template {import('./documents.mjs').File & { digest: string }} File
 * @param {File[]} files those that seem so
 * @param {import('./documents.mjs').Read} read what the others hold
 * @param {Map<string, Stored>} stored
 * @returns {Promise<{ again: File[], others: import('./documents.mjs').Read['others'], documents: Document[] }>} `again`: to be read;
 *   `documents` of those that need not, as they are stored
 */
export async function keepUnchanged(files, read, stored) {
  const whole = wholeFiles(stored)
  const marks = new Map(files.map((file) => [file, whole.get(file.digest)]))
  const named = new Set([...files, ...read.articles].map(({ id }) => id))
  // A file that is imported by itself leaves the others of its folder as they are.
  const left = read.partial
    ? [...whole.values()].filter(({ ids: [id], title }) => title !== undefined && !named.has(id ?? ''))
    : []
  const pages = [...[...marks.values()].filter((mark) => mark?.title !== undefined), ...left]
  const own = await Promise.all(read.articles.map(({ article }) => titleDigest(article.title)))
  const shared = sharedTitles([...own, ...pages.map((mark) => mark?.title ?? '')])
  const isIndexed =
    pages.some((mark) => mark?.indexed) || read.articles.some(({ indexed }) => indexed !== false)
  const hasPages =
    read.articles.length + left.length > 0 ||
    files.some((file) => marks.get(file)?.title !== undefined && !SHEET.test(file.name))
  const rows = [...stored].filter(([, { page, file }]) => page === undefined && !fileMarked(file ?? '').title)
  const counted = [...marks.values()].reduce((sum, mark) => sum + (mark?.title ? 0 : (mark?.count ?? 0)), 0)
  const areRowsWhole = !hasPages && read.rows.length === 0 && counted === rows.length
  const isKept = (/** @type {File} */ file) => {
    const mark = marks.get(file)
    if (!mark) return false
    if (mark.title === undefined) return areRowsWhole
    return hasPages && mark.isShared === shared.has(mark.title) && (mark.indexed || !isIndexed)
  }
  const kept = files.filter(isKept)
  const place = kept[0]?.place
  const ids = kept.flatMap((file) => marks.get(file)?.ids ?? [])
  const all = [...ids, ...(areRowsWhole ? rows.map(([id]) => id) : [])]
  return {
    again: files.filter((file) => !isKept(file)),
    others: [...kept.map((file) => marks.get(file)), ...left].flatMap((mark) =>
      mark?.title === undefined ? [] : [{ title: mark.title, indexed: mark.indexed !== false }],
    ),
    documents: all.flatMap((id) => {
      const { source, hash, page, file } = stored.get(id) ?? {}
      if (hash === undefined) return []
      const mark = markOf({ hash, place, file })
      return [{ id, [SOURCE]: source, [HASH]: mark, ...(page !== undefined && { [PAGE]: page }) }]
    }),
  }
}
