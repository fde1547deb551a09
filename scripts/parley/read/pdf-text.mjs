/** Letters of a page, as pdf.js finds them, put together to lines. */
import { WIDE } from './pdf-words.mjs'

/** @typedef {import('./pdf-lines.mjs').Line} Line */
/** @typedef {{ str: string, transform: number[], width: number, fontName: string, hasEOL: boolean }} Item */
/** @typedef {{ str: string, left: number, right: number, base: number, size: number, isMonospaced: boolean }} Part of a line */

/** Points; letters whose sizes differ by less are of one size. */
const SIZES = 0.5
/** Functions whose raised number is an exponent. */
const FUNCTION =
  /(?:^|[^\p{L}])(?:a(?:rc)?)?(?:sin|cos|tan|cot|sec|csc|sinh|cosh|tanh|log|ln|lg|exp|det|max|min)\s*$/iu

/**
 * @param {{ items: (Item | { type: string })[], styles: Record<string, { fontFamily: string }> }} content of a page
 * @returns {Line[]} in the order in which they are read
 */
export function linesOf({ items, styles }) {
  const rows = rowsOf(items, styles)
  const notes = footnotesOf(rows)
  return rows.flatMap((parts) => {
    const text = parts
      .map((part, at) => withRaised(part, parts[at - 1], notes))
      .join('')
      .replace(/\s+/g, ' ')
      .trim()
    const letters = parts.filter(({ str }) => str.trim() !== '')
    const largest = letters.toSorted((a, b) => b.str.length - a.str.length)[0]
    if (text === '' || !largest) return []
    const line = {
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
    }
    return [line]
  })
}

/**
 * @param {(Item | { type: string })[]} items
 * @param {Record<string, { fontFamily: string }>} styles
 * @returns {Part[][]} the parts of each line
 */
function rowsOf(items, styles) {
  /** @type {Part[][]} */
  const rows = []
  /** @type {Part[]} */
  let parts = []
  const end = () => {
    if (parts.length > 0) rows.push(parts)
    parts = []
  }
  for (const item of items) {
    if (!('str' in item)) continue
    const [, , shear = 0, height = 0, left = 0, base = 0] = item.transform
    const size = Math.hypot(shear, height)
    // Exponents stand a little higher, and titles far from what is below them.
    const last = parts.at(-1)
    if (last && Math.abs(last.base - base) > Math.max(last.size, size) * 0.7) end()
    const isMonospaced = styles[item.fontName]?.fontFamily === 'monospace'
    parts.push({ str: item.str, left, right: left + item.width, base, size, isMonospaced })
    if (item.hasEOL) end()
  }
  end()
  return rows
}

/**
 * The notes at the foot of a page: their numbers, with the size of their letters.
 * @param {Part[][]} rows
 * @returns {Map<string, number>}
 */
function footnotesOf(rows) {
  /** @type {Map<string, number>} */
  const notes = new Map()
  for (const parts of rows) {
    const [, number, text] = /^\s*(\d{1,3})[.)]?\s*(\D.*)$/s.exec(parts.map(({ str }) => str).join('')) ?? []
    const size = Math.max(...parts.map((part) => part.size))
    if (number !== undefined && /\p{L}{2}/u.test(text ?? ''))
      notes.set(number, Math.min(size, notes.get(number) ?? size))
  }
  return notes
}

/**
 * A small raised number: the mark of a footnote on this page is left out, since it would be read as a part of its word, and so
 * would an exponent, which gets a sign.
 * @param {Part} part
 * @param {Part | undefined} before
 * @param {Map<string, number>} notes
 */
function withRaised(part, before, notes) {
  const number = part.str.trim()
  const isRaised =
    before !== undefined &&
    /^\d{1,3}$/.test(number) &&
    part.size < before.size * 0.8 &&
    part.base > before.base + before.size * 0.2
  if (!isRaised || !/[\p{L}\p{N}\p{P}]\s*$/u.test(before.str)) return part.str
  return isFootnoteMark(number, before, notes) ? '' : `^${part.str}`
}

/**
 * Whether a raised number points to a footnote: it stands behind a word, and small text on its page begins with it.
 * @param {string} number
 * @param {Part} before
 * @param {Map<string, number>} notes
 */
function isFootnoteMark(number, { str, size }, notes) {
  const isBehindWord = /(?:\p{L}{3}|[.,;:!?)”"])\s*$/u.test(str)
  const isBehindFormula = FUNCTION.test(str) || /[+*/=^−][^()]*\)\s*$/u.test(str)
  return isBehindWord && !isBehindFormula && (notes.get(number) ?? size) < size * 0.95
}
