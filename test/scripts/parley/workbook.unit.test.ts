/** Workbooks: tables of sheets, their times, and what is hidden in them. */
import { expect, test } from 'vitest'
import { addContent, asDocuments, newRead } from '../../../scripts/parley/import/documents.mjs'
import { readContent } from '../../../scripts/parley/read/index.mjs'
import { changed, slides, workbook, workbookOf } from './files'

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
      { Article: 'Rope', 'In stock': false, Since: '2025-03-01 12:00' },
    ],
  })
})

test('times are times, merged cells say the same in each row, and what is hidden is named and left out', async () => {
  const bytes = workbook({
    Hours: [
      ['Plan', 'Price', null, 'Opens', 'Secret'],
      [null, 'Month', 'Year', null, null],
      ['Pro', 9, 90, new Date('1899-12-30T09:30:00Z'), 'x'],
      [null, 8, 80, new Date('1899-12-31T02:15:07Z'), 'x'],
      ['Gone', 1, 1, null, 'x'],
    ],
    Salaries: [['Name'], ['Ann']],
  })
  const marked = changed(bytes, {
    'xl/workbook.xml': (xml) => xml.replace('name="Salaries"', '$& state="veryHidden"'),
    'xl/worksheets/sheet0.xml': (xml) =>
      xml
        .replace('<sheetData>', '<cols><col min="5" max="5" hidden="1"/></cols><sheetData>')
        .replace('<row r="5"', '$& hidden="1"')
        .replace(
          '</sheetData>',
          '$&<mergeCells><mergeCell ref="A1:A2"/><mergeCell ref="B1:C1"/><mergeCell ref="A3:A4"/></mergeCells>',
        ),
  })
  const content = await readContent(await marked, 'hours.xlsx')
  expect(content).toEqual({
    rows: [
      { Plan: 'Pro', 'Price Month': 9, 'Price Year': 90, Opens: '09:30' },
      { Plan: 'Pro', 'Price Month': 8, 'Price Year': 80, Opens: '26:15:07' },
    ],
    hidden: ['rows or columns of the sheet "Hours"', 'the sheet "Salaries"'],
  })
  const read = newRead()
  addContent(read, { id: 'a.xlsx', name: 'a.xlsx', source: 'a.xlsx' }, content)
  expect(read.hidden[1]).toBe('the sheet "Salaries" of a.xlsx')
  const shown = changed(slides(), {
    'ppt/slides/slide1.xml': (xml) => xml.replace('<p:sld ', '<p:sld show="0" '),
  })
  const talk = await readContent(await shown, 'talk.pptx')
  expect(talk).toMatchObject({
    hidden: ['slide 2'],
    article: { text: expect.not.stringContaining('Who to call') },
  })
})

/** The times of a column whose cells have this format, in days. */
async function timesOf(format: string, days: number[], workbookPr = ''): Promise<unknown[]> {
  const bytes = workbook({ Hours: [['What', 'Passed'], ...days.map((day) => ['Run', day])] })
  const content = await readContent(
    await changed(bytes, {
      'xl/workbook.xml': (xml) => xml.replace('<sheets>', `${workbookPr}<sheets>`),
      'xl/styles.xml': () =>
        `<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><numFmts count="1"><numFmt numFmtId="164" formatCode="${format}"/></numFmts><cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="${format === '' ? 46 : 164}" applyNumberFormat="1"/></cellXfs></styleSheet>`,
      'xl/worksheets/sheet0.xml': (xml) => xml.replace(/<c r="B(?!1")/g, '<c s="2" r="B'),
    }),
    'hours.xlsx',
  )
  return 'rows' in content ? content.rows.map(({ Passed }) => Passed) : []
}

test.each([
  ['hours', '[h]:mm', [0.5, 1.25, 65.5, 1500], ['12:00', '30:00', '1572:00', '36000:00']],
  ['hours, as a program has them built in', '', [0.001, 100.25], ['00:01:26', '2406:00']],
  ['minutes', '[mm]:ss', [70], ['1680:00']],
  ['hours in colours', '[$-F400][Red][hh]:mm:ss;@', [61.000_011_574], ['1464:00:01']],
])('time that has passed is that however long it is: %s', async (_, format, days, times) => {
  expect(await timesOf(format, days)).toEqual(times)
  expect(await timesOf(format, days, '<workbookPr date1904="1"/>')).toEqual(times)
})

test('days stay days, with and without a time', async () => {
  const days = [45_717, 45_717.5]
  expect(await timesOf('yyyy-mm-dd hh:mm', days)).toEqual(['2025-03-01', '2025-03-01 12:00'])
  expect(await timesOf('[$-409]d mmm yyyy', days)).toEqual(['2025-03-01', '2025-03-01 12:00'])
})

test('rows of several sheets name theirs', async () => {
  const bytes = await workbook({ Tents: [['Name'], ['Aurora']], Shops: [['City'], ['Bern']] })
  expect(await readContent(bytes, 'all.xlsx')).toEqual({
    rows: [
      { Name: 'Aurora', sheet: 'Tents' },
      { City: 'Bern', sheet: 'Shops' },
    ],
    sheetField: 'sheet',
  })
})

test('a column that is called sheet keeps what it says', async () => {
  const bytes = await workbook({ Tents: [['Name'], ['Aurora']], Beds: [['sheet'], ['linen']] })
  expect(await readContent(bytes, 'all.xlsx')).toEqual({
    rows: [
      { Name: 'Aurora', sheet_2: 'Tents' },
      { sheet: 'linen', sheet_2: 'Beds' },
    ],
    sheetField: 'sheet_2',
  })
})

/** The documents that are made of a workbook. */
async function documentsOf(sheets: Parameters<typeof workbook>[0], idField?: string) {
  const read = newRead()
  addContent(
    read,
    { id: 'all.xlsx', name: 'all.xlsx', source: 'all.xlsx' },
    await readContent(await workbook(sheets), 'all.xlsx'),
    idField,
  )
  const { documents } = await asDocuments(read, { embedding: 'm' })
  return documents
}

test('rows of several sheets that each count from 1 are documents of their own', async () => {
  const sheets = {
    Tents: [
      ['id', 'Price'],
      [1, 249],
    ],
    Beds: [
      ['id', 'Price'],
      [1, 99],
      [null, 89],
    ],
  }
  expect(await documentsOf(sheets)).toMatchObject([
    { id: 'Tents/1', Price: 249 },
    { id: 'Beds/1', Price: 99 },
    { id: 'all.xlsx/3', Price: 89 },
  ])
  expect((await documentsOf(sheets, 'Price')).map(({ id }) => id)).toEqual(['249', '99', '89'])
  expect(
    (
      await documentsOf({
        Tents: [
          ['id', 'Price'],
          [1, 249],
        ],
      })
    ).map(({ id }) => id),
  ).toEqual(['1'])
})

test('columns of the same name have numbers, which no other column has', async () => {
  const bytes = await workbook({
    Plans: [
      ['Name', 'Amount', 'Amount', 'Amount_2', null, 'Amount', 'column_5'],
      ['Aurora', 1, 2, 3, 4, 5, 6],
    ],
  })
  expect(await readContent(bytes, 'plans.xlsx')).toEqual({
    rows: [{ Name: 'Aurora', Amount: 1, Amount_3: 2, Amount_2: 3, column_5_2: 4, Amount_4: 5, column_5: 6 }],
  })
})

test('a long sheet is read', async () => {
  const rows = Array.from(
    { length: 130_000 },
    (_, at) => `<row r="${at + 1}"><c r="A${at + 1}"><v>${at}</v></c></row>`,
  )
  expect(await readContent(await workbookOf({ Long: rows.join('') }), 'long.xlsx')).toMatchObject({
    rows: { length: 129_999 },
  })
})

test('a filled cell far from a table is named, and one that has a format alone does not count', async () => {
  const table =
    '<row r="1"><c r="A1" t="inlineStr"><is><t>Price</t></is></c></row><row r="2"><c r="A2"><v>7</v></c></row>'
  const far = async (cell: string) =>
    readContent(await workbookOf({ Prices: `${table}${cell}` }), 'prices.xlsx')
  await expect(far('<row r="50000"><c r="XFD50000"><v>1</v></c></row>')).rejects.toThrow(
    'its sheet "Prices" reaches to the cell XFD50000, and more than 5,000,000 cells are too many: delete the columns and rows beyond the table',
  )
  await expect(
    far('<row r="3"><c r="XFD3"><v>1</v></c></row><row r="900000"><c r="A900000"><v>1</v></c></row>'),
  ).rejects.toThrow('the cell XFD900000,')
  await expect(far('<row r="2000000000" ht="20"/>')).rejects.toThrow('the cell A2000000000,')
  expect(await far('<row r="50000"><c r="XFC50000" s="1"/><c r="XFD50000" s="1"></c></row>')).toEqual({
    rows: [{ Price: 7 }],
  })
})
