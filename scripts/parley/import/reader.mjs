/** What the Worker reads sites with (src/sources): the import's own way from a page to documents, without files. */
import { asDocuments, pageIdOf } from './documents.mjs'

export { textArticle } from '../read/article.mjs'
export { asksRobots, readPage } from '../read/html.mjs'
export { encodePath, pageIdOf, sectionOf, urlOf } from './documents.mjs'
export { fateOf, filesInArchive, readFile } from './files.mjs'
export { digestOf, planImport, storedIn } from './plan.mjs'
export { listedPages, robotsOf } from './robots.mjs'
export { articleFields, collectionOf, HASH, PAGE, SOURCE } from './schema.mjs'
export { AGENT, BUSY, belowOf, normal, waitOf } from './site.mjs'
export { titleDigest } from './unchanged.mjs'

/** @typedef {import('../read/article.mjs').Article} Article */
/** @typedef {import('./robots.mjs').Rules} Rules */

/**
 * The documents of one page.
 * @param {string} address that its id is made of
 * @param {Article} article
 * @param {object} where
 * @param {string} where.source
 * @param {string} where.section
 * @param {string} [where.path] of a file
 * @param {string[]} titles digests of the other pages' titles: one that most share is no title
 * @returns {Promise<import('./plan.mjs').Document[]>}
 */
export async function documentsOfPage(address, article, { source, ...where }, titles) {
  const others = titles.map((title) => ({ title, indexed: true }))
  const page = { id: pageIdOf(address), from: { source }, article, ...where }
  const { documents } = await asDocuments({ articles: [page], rows: [], others }, { embedding: '' })
  return documents
}
