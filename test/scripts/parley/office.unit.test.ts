/** Spreadsheets, slides, books and notebooks. */
import { expect, test } from 'vitest'
import { openArchive } from '../../../scripts/parley/read/archive.mjs'
import { readContent } from '../../../scripts/parley/read/index.mjs'
import { book, changed, slides, workbook } from './files'

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

test('the parts of an archive that are unpacked count together', async () => {
  const parts = ['OEBPS/two.xhtml', 'OEBPS/text/one more.xhtml'] as const
  const whole = await openArchive(await book(), 1_000)
  const sizes = [(await whole.text(parts[0])).length, (await whole.text(parts[1])).length] as const
  const enough = await openArchive(await book(), sizes[0] + sizes[1])
  for (const part of parts) expect(await enough.text(part)).toContain('</html>')
  const short = await openArchive(await book(), sizes[0] + sizes[1] - 1)
  await short.text(parts[0])
  await expect(short.text(parts[1])).rejects.toThrow('larger than 0 MB together')
})

test('a line break on a slide parts words, and what stands for older programs is left out', async () => {
  const drawing = (line: string) =>
    `<p:sp><p:txBody><a:p><a:r><a:t>${line}</a:t></a:r></a:p></p:txBody></p:sp>`
  const bytes = await changed(slides(), {
    'ppt/slides/slide2.xml': (slide) =>
      slide
        .replace('<a:t>Your first </a:t></a:r>', '<a:t>Your first</a:t></a:r><a:br/>')
        .replace(
          '</p:spTree>',
          `<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"><mc:Choice Requires="p14">${drawing('New map')}</mc:Choice><mc:Fallback>${drawing('Old map')}</mc:Fallback></mc:AlternateContent></p:spTree>`,
        ),
  })
  expect(await readContent(bytes, 'start.pptx')).toMatchObject({
    article: {
      title: 'Your first day',
      text: expect.stringMatching(
        /^## Your first day\n\n- Pick up your badge\.\n- Meet your buddy at ten\.\n\n- New map\n\n## Who/,
      ),
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

test('a book whose elements have prefixes, and whose chapters have another encoding, is read', async () => {
  const prefixed = (prefix: string) => (part: string) =>
    part.replace(/<(\/?)([a-z]+)(?=[\s/>])/g, `<$1${prefix}:$2`).replace('xmlns=', `xmlns:${prefix}=`)
  const bytes = await changed(book(), {
    'META-INF/container.xml': prefixed('c'),
    'OEBPS/book.opf': prefixed('opf'),
    'OEBPS/two.xhtml': (chapter) =>
      Buffer.from(
        `<?xml version="1.0" encoding="ISO-8859-2"?>${chapter.replace('swarm', 'b\u00b1k')}`,
        'latin1',
      ),
  })
  expect(await readContent(bytes, 'bees.epub')).toEqual({
    article: {
      title: 'Bees & hives',
      text: '# Swarms\n\nA bąk leaves in May.\n\n# Honey\n\nA hive gives 30 kg a year.',
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

test('a comment in code is no title of a notebook, and a fence in code does not end it', async () => {
  const notebook = {
    cells: [
      { cell_type: 'code', source: '# install\n!pip x' },
      { cell_type: 'markdown', source: 'First `pip`.\n\n```sh\n# not this\n```\n\n# Reading *text*' },
      { cell_type: 'code', source: 'text = """\n```\n# in\n```\n"""' },
    ],
    nbformat: 4,
  }
  expect(await readContent(new TextEncoder().encode(JSON.stringify(notebook)), 'load.ipynb')).toEqual({
    article: {
      title: 'Reading text',
      text:
        '```\n# install\n!pip x\n```\n\nFirst `pip`.\n\n```sh\n# not this\n```\n\n# Reading *text*\n\n' +
        '````\ntext = """\n```\n# in\n```\n"""\n````',
    },
  })
})

test.each(['x.xlsx', 'x.pptx', 'x.epub', 'x.ipynb'])('what is no %s is refused', async (path) => {
  await expect(readContent(new TextEncoder().encode('words'), path)).rejects.toThrow(Error)
  const other = await (path.endsWith('xlsx') ? book() : workbook({ A: [['a']] }))
  await expect(readContent(other, path)).rejects.toThrow(Error)
})
