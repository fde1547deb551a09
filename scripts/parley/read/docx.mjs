/** Word's documents (ECMA-376, WordprocessingML), as HTML first. */
import { DOMParser } from 'linkedom'
import { textArticle } from './article.mjs'
import { htmlToMarkdown } from './html.mjs'
import { texOf } from './office-math.mjs'

/** Text that is marked as hidden (part 1, 17.3.2.41). */
const HIDDEN = /<w:r[ >](?:(?!<\/w:r>)[\s\S])*?<w:vanish(?: w:val="(?:1|true|on)")?\s*\/>[\s\S]*?<\/w:r>/g
const FORMULA = /<m:oMath(?=[\s>])[\s\S]*?<\/m:oMath>/g
/** Rows of names that a table begins with, at most. */
const MOST_HEADS = 3

/**
 * A document without the text that it marks as hidden, which the library reads like any other, and with its formulas as text, which
 * the library leaves out.
 * @param {Uint8Array} bytes
 * @returns {Promise<{ bytes: Uint8Array, isHiding: boolean }>}
 */
async function prepared(bytes) {
  const { default: JSZip } = await import('jszip')
  const zip = await JSZip.loadAsync(bytes)
  const xml = (await zip.file('word/document.xml')?.async('string')) ?? ''
  const shown = xml.replace(HIDDEN, '')
  const said = shown.replace(FORMULA, (formula) => {
    const root = new DOMParser().parseFromString(`<x>${formula}</x>`, 'text/xml').documentElement
    const tex = texOf(/** @type {Element} */ (/** @type {unknown} */ (root)))
    // The mark is none of Markdown's, so that nothing in it is escaped.
    return tex === '' ? '' : `<w:r><w:t xml:space="preserve">\\(${escapedXml(tex)}\\)</w:t></w:r>`
  })
  if (said === xml) return { bytes, isHiding: false }
  zip.file('word/document.xml', said)
  return { bytes: await zip.generateAsync({ type: 'uint8array' }), isHiding: shown !== xml }
}

/** @param {string} text */
const escapedXml = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

/**
 * Word marks no row as the head of a table, and Markdown has no table without one: it is the first one, or as many as its tallest cell.
 * @param {string} table
 */
function withHead(table) {
  const [first = ''] = /<tr>[\s\S]*?<\/tr>/.exec(table) ?? []
  const spans = [...first.matchAll(/rowspan="(\d+)"/g)].map(([, rows]) => Number(rows))
  const heads = first.includes('colspan=') ? Math.min(MOST_HEADS, Math.max(1, ...spans)) : 1
  let row = 0
  return table.replace(/<tr>[\s\S]*?<\/tr>/g, (tr) => {
    row += 1
    return row <= heads ? tr.replace(/<(\/?)td\b/g, '<$1th') : tr
  })
}

/** @param {Uint8Array} bytes @param {string} path @returns {Promise<import('./article.mjs').Content>} */
export async function readDocx(bytes, path) {
  const { default: mammoth } = await import('mammoth')
  const { bytes: shown, isHiding } = await prepared(bytes)
  // In Node the library takes a Buffer, in a browser an ArrayBuffer.
  const given =
    typeof Buffer === 'function' ? { buffer: Buffer.from(shown) } : { arrayBuffer: shown.slice().buffer }
  const { value } = await mammoth.convertToHtml(given, { styleMap: [`p[style-name='Title'] => h1:fresh`] })
  const text = htmlToMarkdown(value.replace(/<table>(?:(?!<table>)[\s\S])*?<\/table>/g, withHead))
  return { article: textArticle(text, path), ...(isHiding && { hidden: ['hidden text'] }) }
}
