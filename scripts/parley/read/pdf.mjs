/** Reads a PDF: its lines and bookmarks with pdf.js, its paragraphs and headings by `pdf-lines.mjs`. */
import { titleOfPath } from './article.mjs'
import { markdownOf, printedTitle, WIDE } from './pdf-lines.mjs'

/** @typedef {import('./article.mjs').Article} Article */
/** @typedef {import('./pdf-lines.mjs').Line} Line */
/** @typedef {import('./pdf-lines.mjs').Page} Page */
/** @typedef {Awaited<ReturnType<typeof import('unpdf').getDocumentProxy>>} Pdf */
/** @typedef {Awaited<ReturnType<Pdf['getOutline']>>} Outline */
/** @typedef {{ str: string, left: number, right: number, base: number, size: number, isMonospaced: boolean }} Part of a line */

/** Points; letters whose sizes differ by less are of one size. */
const SIZES = 0.5

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
      lines: linesOf(await page.getTextContent()),
      outline: outline.flatMap(({ page, ...entry }) => (page === at ? [entry] : [])),
    })
    page.cleanup()
  }
  const { info } = await pdf.getMetadata()
  await pdf.loadingTask.destroy()
  const text = markdownOf(pages)
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
  const name = title.replace(/^Microsoft (?:Word|PowerPoint|Excel) - /, '')
  const isOfFile = /\.(?:docx?|pptx?|xlsx?|odt|rtf|tex|dvi|indd|pdf|html?|qxd|pages)$/i.test(name)
  return name === '' || isOfFile || /^(?:untitled|document\d*|title)$/i.test(name) ? undefined : name
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

/**
 * @param {Awaited<ReturnType<Awaited<ReturnType<Pdf['getPage']>>['getTextContent']>>} content
 * @returns {Line[]}
 */
function linesOf({ items, styles }) {
  /** @type {Line[]} */
  const lines = []
  /** @type {Part[]} */
  let parts = []
  const end = () => {
    const text = parts
      .map((part, at) => (isFootnoteMark(part, parts[at - 1]) ? '' : part.str))
      .join('')
      .replace(/\s+/g, ' ')
      .trim()
    const letters = parts.filter(({ str }) => str.trim() !== '')
    const largest = letters.toSorted((a, b) => b.str.length - a.str.length)[0]
    if (text !== '' && largest) {
      lines.push({
        text,
        left: Math.min(...letters.map(({ left }) => left)),
        right: Math.max(...letters.map(({ right }) => right)),
        columns: letters
          .slice(1)
          .map(({ left, size }, at) => ({ left, gap: (left - (letters[at]?.right ?? left)) / size })),
        base: largest.base,
        size: Math.round(largest.size / SIZES) * SIZES,
        // Letters of East Asia are as wide as each other in every font.
        isMonospaced: letters.every(({ isMonospaced }) => isMonospaced) && !WIDE.test(text),
      })
    }
    parts = []
  }
  for (const item of items) {
    if (!('str' in item)) continue
    const [, , shear = 0, height = 0, left = 0, base = 0] = item.transform
    const size = Math.hypot(shear, height)
    // Exponents stand a little higher, and titles far from what is below them.
    const last = parts.at(-1)
    if (last && Math.abs(last.base - base) > Math.max(last.size, size) * 0.7) end()
    parts.push({
      str: item.str,
      left,
      right: left + item.width,
      base,
      size,
      isMonospaced: styles[item.fontName]?.fontFamily === 'monospace',
    })
    if (item.hasEOL) end()
  }
  end()
  return lines
}

/**
 * Whether a small raised number points to a footnote: it stands behind a word, and an exponent behind a number or a letter.
 * @param {Part} part
 * @param {Part | undefined} before
 */
const isFootnoteMark = (part, before) =>
  before !== undefined &&
  /^\d{1,3}\s*$/.test(part.str) &&
  part.size < before.size * 0.8 &&
  part.base > before.base + before.size * 0.2 &&
  /(?:\p{L}{3}|[.,;:!?)”"])\s*$/u.test(before.str)
