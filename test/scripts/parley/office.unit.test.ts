/** Spreadsheets, slides, books and notebooks. */
import { expect, test } from 'vitest'
import { readContent } from '../../../scripts/parley/read/index.mjs'
import { book, slides, workbook } from './files'

test('a sheet is a table, below what stands above its columns', async () => {
  const bytes = await workbook({
    Prices: [
      ['Prices of 2026'],
      [],
      ['Article', 'Price', 'In stock', 'Since', null],
      ['Tent', 249.9, true, new Date('2025-03-01'), 'folds'],
      [],
      ['Rope', null, false, new Date('2025-03-01T12:00:00Z')],
    ],
    Empty: [],
  })
  expect(await readContent(bytes, 'prices.xlsx')).toEqual({
    rows: [
      { Article: 'Tent', Price: 249.9, 'In stock': true, Since: '2025-03-01', column_5: 'folds' },
      { Article: 'Rope', 'In stock': false, Since: '2025-03-01T12:00:00.000Z' },
    ],
  })
})

test('rows of several sheets name theirs', async () => {
  const bytes = await workbook({ Tents: [['Name'], ['Aurora']], Shops: [['City'], ['Bern']] })
  expect(await readContent(bytes, 'all.xlsx')).toEqual({
    rows: [
      { Name: 'Aurora', sheet: 'Tents' },
      { City: 'Bern', sheet: 'Shops' },
    ],
  })
})

test('slides are read in their order, with tables and notes, without their numbers', async () => {
  expect(await readContent(await slides(), 'start.pptx')).toEqual({
    article: {
      title: 'Your first day',
      text:
        '## Your first day\n\n- Pick up your badge.\n- Meet your buddy at ten.\n\n' +
        '## Who to call\n\n| Room | Phone |\n| --- | --- |\n| Desk | 112 |\n\nThe desk opens at 8:30.',
    },
  })
})

test('a book is read by its spine, without its contents', async () => {
  expect(await readContent(await book(), 'bees.epub')).toEqual({
    article: {
      title: 'Bees & hives',
      text: '# Swarms\n\nA swarm leaves in May.\n\n# Honey\n\nA hive gives 30 kg a year.',
    },
  })
})

test('a notebook is its text and its code', async () => {
  const notebook = {
    cells: [
      { cell_type: 'markdown', source: ['# Loading data\n', '\n', 'The file comes first.'] },
      { cell_type: 'code', source: 'read("x.csv")', outputs: [{ text: 'noise' }] },
      { cell_type: 'code', source: [] },
    ],
    metadata: { language_info: { name: 'python' } },
    nbformat: 4,
  }
  expect(await readContent(new TextEncoder().encode(JSON.stringify(notebook)), 'load.ipynb')).toEqual({
    article: {
      title: 'Loading data',
      text: '# Loading data\n\nThe file comes first.\n\n```python\nread("x.csv")\n```',
    },
  })
})

test.each(['x.xlsx', 'x.pptx', 'x.epub', 'x.ipynb'])('what is no %s is refused', async (path) => {
  await expect(readContent(new TextEncoder().encode('words'), path)).rejects.toThrow(Error)
  const other = await (path.endsWith('xlsx') ? book() : workbook({ A: [['a']] }))
  await expect(readContent(other, path)).rejects.toThrow(Error)
})
