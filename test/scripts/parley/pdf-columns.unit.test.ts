/** Columns of text and of tables, in whatever order a PDF draws them. */
import { expect, test } from 'vitest'
import { linesOf } from '../../../scripts/parley/read/pdf.mjs'

const styles = { f: { fontFamily: 'serif' } }
const item = (str: string, left: number, base: number, hasEOL = true) => ({
  str,
  transform: [10, 0, 0, 10, left, base],
  width: str.length * 5,
  fontName: 'f',
  hasEOL,
})
const texts = (items: ReturnType<typeof item>[]) => linesOf({ items, styles }).map(({ text }) => text)
/** Columns side by side, drawn one after the other. */
const drawn = (columns: string[][]) =>
  columns.flatMap((column, at) => column.map((text, row) => item(text, 50 + 180 * at, 700 - 12 * row)))

const COLUMNS = [
  [
    'Herons are large birds that',
    'hunt fish in shallow water',
    'near the coast. They',
    'nest in large colonies.',
  ],
  [
    'In winter herons move south',
    'if the lakes freeze, which',
    'happens late. A bird from',
    'the north was 35 years old.',
  ],
  [
    'Cranes dance in large groups',
    'on fields and bogs, and',
    'can be heard from far',
    'away before they are seen.',
  ],
]

test('three columns of text are read one after the other, drawn by rows or by columns', () => {
  const rows = [0, 1, 2, 3].flatMap((row) =>
    COLUMNS.map((column, at) => item(column[row] ?? '', 50 + 180 * at, 700 - 12 * row, at === 2)),
  )
  expect(texts(rows)).toEqual(COLUMNS.flat())
  expect(texts(drawn(COLUMNS))).toEqual(COLUMNS.flat())
})

test('a table that is drawn by columns has rows, and the page goes on behind it', () => {
  const table = [
    ['Plan', 'Small', 'Large'],
    ['Month', '5 euros', '9 euros'],
    ['Year', '50 euros', '90 euros'],
  ]
  const page = [
    item('Prices are as follows.', 50, 730),
    ...drawn(table),
    item('All that is said of them.', 50, 600),
  ]
  expect(texts(page)).toEqual([
    'Prices are as follows.',
    'Plan Month Year',
    'Small 5 euros 50 euros',
    'Large 9 euros 90 euros',
    'All that is said of them.',
  ])
})

test('columns of an index are none of a table', () => {
  const index = [
    ['ants 12', 'bees 9', 'cats 7', 'dogs 8'],
    ['eels 1', 'foxes 3', 'gnus 2', 'hares 5'],
  ]
  expect(texts(drawn(index))).toEqual(index.flat())
})
