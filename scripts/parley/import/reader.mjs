/** What the Worker reads sites with (src/sources): the import's own way from a page to documents, without files. */
import { textArticle } from '../read/article.mjs'
import { asksRobots, readPage } from '../read/html.mjs'
import { asDocuments, encodePath, pageIdOf, sectionOf, urlOf } from './documents.mjs'
import { fateOf, filesInArchive, readFile } from './files.mjs'
import { digestOf, planImport, storedIn } from './plan.mjs'
import { listedPages, robotsOf } from './robots.mjs'
import { articleFields, collectionOf, HASH, PAGE, SOURCE } from './schema.mjs'
import { AGENT, BUSY, belowOf, normal, waitOf } from './site.mjs'
import { titleDigest } from './unchanged.mjs'

export {
  AGENT,
  articleFields,
  asksRobots,
  BUSY,
  belowOf,
  collectionOf,
  digestOf,
  encodePath,
  fateOf,
  filesInArchive,
  HASH,
  listedPages,
  normal,
  PAGE,
  pageIdOf,
  planImport,
  readFile,
  readPage,
  robotsOf,
  SOURCE,
  sectionOf,
  storedIn,
  textArticle,
  titleDigest,
  urlOf,
  waitOf,
}

/**
 * The documents of one page.
 * @param {string} address that its id is made of
 * @param {import('../read/article.mjs').Article} article
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
