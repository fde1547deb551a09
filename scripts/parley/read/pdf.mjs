/** Reads a PDF: its lines and bookmarks with pdf.js, its paragraphs and headings by `pdf-lines.mjs`. */
import { ownTitle, titleOfPath, withoutElements } from './article.mjs'
import { markdownOf, printedTitle } from './pdf-lines.mjs'
import { linesOf } from './pdf-text.mjs'

/** @typedef {import('./article.mjs').Article} Article */
/** @typedef {import('./pdf-lines.mjs').Page} Page */
/** @typedef {Awaited<ReturnType<typeof import('unpdf').getDocumentProxy>>} Pdf */
/** @typedef {Awaited<ReturnType<Pdf['getOutline']>>} Outline */

/**
 * @param {Uint8Array} bytes
 * @param {string} path its name is the title of a PDF that has none
 * @returns {Promise<{ article: Article }>}
 * @throws Error if it is protected by a password, or holds pictures of pages only
 */
export async function readPdf(bytes, path) {
  const pdf = await opened(bytes)
  const labels = await pdf.getPageLabels()
  const outline = await outlineOf(pdf)
  /** @type {Page[]} */
  const pages = []
  for (let at = 1; at <= pdf.numPages; at++) {
    const page = await pdf.getPage(at)
    const label = labels?.[at - 1] || String(at)
    pages.push({
      label,
      number: at,
      lines: linesOf(await page.getTextContent()),
      outline: outline.flatMap(({ page, ...entry }) => (page === at ? [entry] : [])),
    })
    page.cleanup()
  }
  const { info } = await pdf.getMetadata()
  await pdf.loadingTask.destroy()
  const text = withoutElements(markdownOf(pages))
  if (text === '') {
    throw new Error('it holds no text, only pictures of pages: have a text recognition (OCR) read it first')
  }
  return { article: { title: givenTitle(info) ?? printedTitle(pages) ?? titleOfPath(path), text } }
}

/** @param {Uint8Array} bytes @returns {Promise<Pdf>} */
async function opened(bytes) {
  const { getDocumentProxy } = await import('unpdf')
  try {
    // pdf.js takes the bytes over, and refuses a Buffer, whose slice is a Buffer too.
    return await getDocumentProxy(new Uint8Array(bytes), { verbosity: 0 })
  } catch (error) {
    if (error instanceof Error && error.name === 'PasswordException') {
      throw new Error('it is protected by a password: save it without one')
    }
    throw error
  }
}

/**
 * What its author or their program called it. Programs also write the name of the file they made it from.
 * @param {object} info
 * @returns {string | undefined}
 */
function givenTitle(info) {
  const title = 'Title' in info && typeof info.Title === 'string' ? info.Title.trim() : ''
  return ownTitle(title.replace(/^Microsoft (?:Word|PowerPoint|Excel) - /, ''))
}

/**
 * Bookmarks with the page that each leads to, from 1.
 * @param {Pdf} pdf
 * @returns {Promise<{ title: string, level: number, page: number }[]>}
 */
async function outlineOf(pdf) {
  /** @type {{ title: string, level: number, page: number }[]} */
  const found = []
  /** @param {Outline} entries @param {number} level */
  const add = async (entries, level) => {
    for (const { title, dest, items } of entries ?? []) {
      const page = await pageOf(pdf, dest)
      if (page !== undefined) found.push({ title, level, page })
      await add(items, level + 1)
    }
  }
  await add(await pdf.getOutline(), 1)
  return found
}

/**
 * @param {Pdf} pdf
 * @param {Outline[number]['dest']} dest
 * @returns {Promise<number | undefined>} nothing if it leads nowhere, as broken bookmarks do
 */
async function pageOf(pdf, dest) {
  try {
    const [target] = (typeof dest === 'string' ? await pdf.getDestination(dest) : dest) ?? []
    if (typeof target === 'number') return target + 1
    return target ? (await pdf.getPageIndex(target)) + 1 : undefined
  } catch {
    return undefined
  }
}
