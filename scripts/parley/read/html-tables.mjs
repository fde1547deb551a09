/**
 * Tables as Markdown has them (GFM, "Tables"): one head, as many cells in each row, and one line a cell. What spans several cells is
 * said in each of them, so that a row can be read alone.
 */

/** A longer text is said once, in the first of the cells that it spans. */
const LONGEST_REPEATED = 200
/** Columns that a table can have. */
const MOST_COLUMNS = 200
/** Cells that say again what another one says: more of them are left empty. */
const MOST_REPEATED = 20_000
const BLOCKS = 'table, pre, h1, h2, h3, h4, h5, h6, blockquote, dl'

/**
 * A table of Markdown.
 * @param {string[][]} rows of texts; the first one is the head
 */
export function writtenTable([head = [], ...rows]) {
  const width = Math.max(head.length, ...rows.map(({ length }) => length))
  const line = (/** @type {string[]} */ cells) =>
    `|${Array.from({ length: width }, (_, at) => ` ${inLine(cells[at] ?? '')} |`.replace(/^ {2}/, ' ')).join('')}`
  return [line(head), `|${' --- |'.repeat(width)}`, ...rows.map(line)].join('\n')
}

/** A text in one line, whose bars end no cell. The items of a list are told apart. @param {string} markdown */
const inLine = (markdown) =>
  markdown
    .trim()
    .replace(/^(?:[-*+]|\d+[.)])\s+/, '')
    .replace(/\s*\n\s*(?:[-*+]|\d+[.)])\s+/g, '; ')
    .replace(/\s*\n\s*/g, ' ')
    .replace(/(?<!\\)\|/g, '\\|')

/** @param {import('turndown')} turndown */
export function tableRules(turndown) {
  /** What the cells of tables say. @type {WeakMap<object, string>} */
  const said = new WeakMap()
  turndown.addRule('cells', {
    filter: ['td', 'th', 'caption'],
    replacement: (content, node) => {
      said.set(node, content.trim())
      return ''
    },
  })
  turndown.addRule('parts of tables', {
    filter: ['tr', 'thead', 'tbody', 'tfoot', 'colgroup', 'col'],
    replacement: (content) => content,
  })
  turndown.addRule('tables', {
    filter: 'table',
    replacement: (content, node) => {
      const table = /** @type {Element} */ (/** @type {unknown} */ (node))
      const own = (/** @type {string} */ names) => ownParts(table, new Set(names.toUpperCase().split(', ')))
      const caption = own('caption').map((each) => said.get(each) ?? '')
      const { cells, heads } = gridOf(inOrder(own('tr')), (cell) => said.get(cell) ?? '')
      const parts = isLayout(table, cells)
        ? own('td, th').map((cell) => said.get(cell) ?? '')
        : own(BLOCKS).length > 0 || table.querySelector('table')
          ? recordsOf(cells, heads)
          : [writtenTable(withHead(cells, heads))]
      return `\n\n${[content.trim(), ...caption, ...parts].filter((part) => part !== '').join('\n\n')}\n\n`
    },
  })
}

/** The rows as they are shown: the foot is last wherever it is written. @param {Element[]} rows */
const inOrder = (rows) =>
  rows.toSorted(
    (a, b) =>
      Number(isOf(a, 'TFOOT')) - Number(isOf(b, 'TFOOT')) ||
      Number(isOf(b, 'THEAD')) - Number(isOf(a, 'THEAD')),
  )

/** @param {Element} row @param {string} part */
const isOf = (row, part) => row.parentNode?.nodeName === part

/**
 * The parts of a table, and not of those in it.
 * @param {Element} table
 * @param {Set<string>} names
 * @returns {Element[]}
 */
function ownParts(table, names) {
  const found = []
  for (let part = table.firstElementChild; part; part = part.nextElementSibling) {
    if (part.nodeName === 'TABLE') continue
    if (names.has(part.nodeName)) found.push(part)
    found.push(...ownParts(part, names))
  }
  return found
}

/**
 * The cells of a table, a text for each place, and how many rows are its head.
 * @param {Element[]} rows
 * @param {(cell: Element) => string} textOf
 */
function gridOf(rows, textOf) {
  /** @type {string[][]} */
  const cells = rows.map(() => [])
  let heads = 0
  let repeated = 0
  for (const [at, row] of rows.entries()) {
    const own = Array.from(row.children).filter(({ nodeName }) => /^T[DH]$/.test(nodeName))
    const line = cells[at] ?? []
    const isSection = own.length === 1
    let column = 0
    for (const cell of own) {
      while (line[column] !== undefined) column += 1
      const text = textOf(cell)
      const [wide, high] = ['colspan', 'rowspan'].map((name) =>
        Number.parseInt(cell.getAttribute(name) ?? '', 10),
      )
      const right = Math.min(column + Math.max(1, wide || 1), MOST_COLUMNS)
      const bottom = high === 0 ? rows.length : Math.min(at + Math.max(1, high || 1), rows.length)
      for (let y = at; y < bottom; y += 1) {
        // A row does not go on in another part of its table.
        if (rows[y]?.parentNode !== row.parentNode) break
        for (let x = column; x < right; x += 1) {
          const filled = cells[y] ?? []
          const isFirst = y === at && x === column
          const isSaid = isFirst || !((x > column && isSection) || text.length > LONGEST_REPEATED)
          if (filled[x] !== undefined) continue
          filled[x] = isSaid && repeated <= MOST_REPEATED ? text : ''
          if (!isFirst) repeated += 1
        }
      }
      column = right
    }
    const isHead =
      row.parentNode?.nodeName === 'THEAD' ||
      // The corner above the names of rows is often no <th>.
      (own.at(-1)?.nodeName === 'TH' &&
        own.every((cell, index) => cell.nodeName === 'TH' || (index === 0 && textOf(cell) === '')))
    if (isHead && heads === at) heads = at + 1
  }
  const width = Math.max(0, ...cells.map(({ length }) => length))
  const used = Array.from({ length: width }, (_, at) => at).filter((at) => cells.some((row) => row[at]))
  const isKept = cells.map((row) => row.some((text) => text))
  return {
    cells: cells.map((row) => used.map((at) => row[at] ?? '')).filter((_, at) => isKept[at]),
    heads: isKept.slice(0, heads).filter(Boolean).length,
  }
}

/** Whether a table only puts things beside each other. @param {Element} table @param {string[][]} cells */
const isLayout = (table, cells) =>
  /^(?:presentation|none)$/.test(table.getAttribute('role') ?? '') ||
  ((cells[0]?.length ?? 0) < 2 && !table.querySelector('th')) ||
  (cells.length < 2 && !table.querySelector('th'))

/**
 * The rows with one head. Names in several rows are put together, and where no row is marked as the head, the first one is it if it
 * looks like that: it is bold, or has names where the others have numbers.
 * @param {string[][]} cells
 * @param {number} heads
 * @returns {string[][]}
 */
function withHead(cells, heads) {
  const [first = []] = cells
  if (heads === 0 && !looksLikeHead(first, cells.slice(1))) return [first.map(() => ''), ...cells]
  const all = cells.slice(0, Math.max(1, heads))
  return [
    first.map((_, at) =>
      [...new Set(all.map((row) => row[at]?.replace(/^\*\*(.*)\*\*$/s, '$1')).filter(Boolean))].join(' '),
    ),
    ...cells.slice(all.length),
  ]
}

/** @param {string[]} first @param {string[][]} rest */
const looksLikeHead = (first, rest) =>
  first.every((text) => /^(?:\*\*|__)[^\n]*(?:\*\*|__)$/.test(text) || text === '') ||
  (first.every((text) => text !== '' && !/\d/.test(text)) &&
    (first.length > 2 || rest.every((row) => /\d/.test(row[1] ?? ''))))

/**
 * A table whose cells hold code or other blocks: each row as what its columns say.
 * @param {string[][]} cells
 * @param {number} heads
 * @returns {string[]}
 */
function recordsOf(cells, heads) {
  const [names = [], ...rows] = heads > 0 ? withHead(cells, heads) : [[], ...cells]
  return rows.flatMap((row) =>
    row.map((text, at) => {
      const name = inLine(names[at] ?? '')
      if (name === '' || text === '') return text
      return /^(?:```|[-*#|>]|\d+\.)/.test(text) ? `**${name}:**\n\n${text}` : `**${name}:** ${text}`
    }),
  )
}
