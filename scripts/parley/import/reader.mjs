/** What the Worker reads sites with (src/sources): the import's own way from a page to documents, without files. */
import { textArticle } from '../read/article.mjs'
import { asksRobots, readPage } from '../read/html.mjs'
import { asDocuments, pageIdOf, sectionOf } from './documents.mjs'
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
  HASH,
  listedPages,
  normal,
  PAGE,
  pageIdOf,
  planImport,
  readPage,
  robotsOf,
  SOURCE,
  storedIn,
  textArticle,
  titleDigest,
  waitOf,
}

/**
 * The documents of one page of a site.
 * @param {string} url
 * @param {import('../read/article.mjs').Article} article
 * @param {string} source
 * @param {string[]} titles digests of the other pages' titles: one that most share is no title
 * @returns {Promise<import('./plan.mjs').Document[]>}
 */
export async function documentsOfPage(url, article, source, titles) {
  const section = sectionOf(new URL(url).pathname.replace(/^\//, ''))
  const others = titles.map((title) => ({ title, indexed: true }))
  const read = { articles: [{ id: pageIdOf(url), from: { source }, section, article }], rows: [], others }
  const { documents } = await asDocuments(read, { embedding: '' })
  return documents
}
