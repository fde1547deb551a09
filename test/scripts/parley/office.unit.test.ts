/** Slides, books, notebooks, and what is refused of all files of many parts. */
import { expect, test } from 'vitest'
import { openArchive } from '../../../scripts/parley/read/archive.mjs'
import { ownTitle } from '../../../scripts/parley/read/article.mjs'
import { readContent } from '../../../scripts/parley/read/index.mjs'
import { book, changed, slides, stating, workbook } from './files'

test('what would fill the memory is refused before it is unpacked', async () => {
  const sheet = 'xl/worksheets/sheet0.xml'
  const prices = workbook({ Prices: [['Price'], [7]] })
  await expect(readContent(await stating(prices, sheet, 300_000_000), 'prices.xlsx')).rejects.toThrow(
    'it is larger than 200 MB when it is unpacked: split it, or save its sheets as CSV',
  )
  await expect(readContent(await stating(prices, sheet, 20), 'prices.xlsx')).rejects.toThrow(
    `its part ${sheet} is larger than it says`,
  )
  const chapter = 'OEBPS/two.xhtml'
  await expect(readContent(await stating(book(), chapter, 17_000_000), 'x.epub')).rejects.toThrow(
    `its part ${chapter} is larger than 16 MB: split the file`,
  )
  await expect(readContent(await stating(book(), chapter, 20), 'x.epub')).rejects.toThrow(
    `its part ${chapter} is larger than it says`,
  )
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

test('notes beside the way through a book are read behind it, and their numbers lead nowhere', async () => {
  const bytes = await changed(book(), {
    'OEBPS/book.opf': (opf) => opf.replace('idref="b"', 'idref="b" linear="no"'),
    'OEBPS/text/one more.xhtml': (chapter) =>
      chapter.replace('a year.', 'a year<sup><a href="../two.xhtml#n1">1</a></sup>.'),
  })
  expect(await readContent(bytes, 'bees.epub')).toMatchObject({
    article: { text: '# Honey\n\nA hive gives 30 kg a year.\n\n# Swarms\n\nA swarm leaves in May.' },
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

test('what code of a notebook gave stands below it: text, tables, and no pictures or errors', async () => {
  const outputs = [
    { output_type: 'stream', name: 'stdout', text: ['\u001b[31mA\u001b[0m\n', '10%\r100%\n'] },
    { output_type: 'stream', name: 'stderr', text: 'Warning' },
    {
      output_type: 'execute_result',
      data: { 'text/plain': ['a'], 'text/html': '<table><tr><th>a</th></tr><tr><td>1</td></tr></table>' },
    },
    { output_type: 'display_data', data: { 'text/plain': '<Figure size 1>', 'image/png': 'iVBO' } },
    { output_type: 'execute_result', data: { 'text/plain': '42' } },
    { output_type: 'error', traceback: ['Bad'] },
  ]
  const notebook = JSON.stringify({ nbformat: 4, cells: [{ cell_type: 'code', source: 'f()', outputs }] })
  expect(await readContent(new TextEncoder().encode(notebook), 'x.ipynb')).toMatchObject({
    article: { text: '```\nf()\n```\n\n```\nA\n100%\n```\n\n| a |\n| --- |\n| 1 |\n\n```\n42\n```' },
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

test('a title that a program made up is none', () => {
  for (const title of [
    '(anonymous)',
    'Untitled-1',
    'PowerPoint Presentation',
    'Présentation PowerPoint',
    'Microsoft Word - a.doc',
    'Scanned Document',
    'Slide 1',
    'https://x.example/a',
    'Document2',
  ])
    expect(ownTitle(title), title).toBeUndefined()
  for (const title of ['Heron guide', 'Slides of the talk', 'Presentation skills', 'Title insurance'])
    expect(ownTitle(title)).toBe(title)
})

test('Markdown of a notebook is read as in a file', async () => {
  const cells = [
    { cell_type: 'raw', source: '---\ntitle: Loads\n---' },
    { cell_type: 'markdown', source: ['# Notes\n', '\n', '<div class="alert">Mind the gap</div>'] },
    { cell_type: 'code', source: '# <b>' },
  ]
  const text = '# Notes\n\nMind the gap\n\n```\n# <b>\n```'
  const old = {
    worksheets: [
      {
        cells: [
          { cell_type: 'heading', level: 1, source: 'Notes' },
          { cell_type: 'code', input: ['a'] },
        ],
      },
    ],
  }
  const read = (notebook: object) =>
    readContent(new TextEncoder().encode(JSON.stringify(notebook)), 'load.ipynb')
  expect(await read({ cells })).toEqual({ article: { title: 'Loads', text } })
  expect(await read(old)).toEqual({ article: { title: 'Notes', text: '# Notes\n\n```\na\n```' } })
})

test.each(['x.xlsx', 'x.pptx', 'x.epub', 'x.ipynb'])('what is no %s is refused', async (path) => {
  await expect(readContent(new TextEncoder().encode('words'), path)).rejects.toThrow(Error)
  const other = await (path.endsWith('xlsx') ? book() : workbook({ A: [['a']] }))
  await expect(readContent(other, path)).rejects.toThrow(Error)
})
