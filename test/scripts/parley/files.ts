/** Files of word processors, as small as they can be. */
import JSZip from 'jszip'

/** The smallest PDF with a line of text (ISO 32000-1, 7.5). */
export function onePagePdf(text: string): Uint8Array {
  const content = `BT /F1 12 Tf 20 100 Td (${text}) Tj ET`
  const objects = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    `<< /Length ${content.length} >>\nstream\n${content}\nendstream`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
  ]
  let file = '%PDF-1.4\n'
  const offsets = objects.map((object, at) => {
    const offset = file.length
    file += `${at + 1} 0 obj\n${object}\nendobj\n`
    return offset
  })
  const table = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('')
  file += `xref\n0 6\n0000000000 65535 f \n${table}trailer\n<< /Size 6 /Root 1 0 R >>\nstartxref\n${file.length}\n%%EOF`
  return new TextEncoder().encode(file)
}

/** The smallest DOCX with a paragraph (ECMA-376, part 1, 11.2). */
export const oneParagraphDocx = (text: string): Promise<Uint8Array> => docx(paragraph(text))

const paragraph = (text: string, style?: string) =>
  `<w:p>${style === undefined ? '' : `<w:pPr><w:pStyle w:val="${style}"/></w:pPr>`}<w:r><w:t>${text}</w:t></w:r></w:p>`

/** A document with a title, chapters and a table, as Word writes it: styles have a name in all languages, and an id of its own. */
export function handbookDocx(): Promise<Uint8Array> {
  const row = (...cells: string[]) =>
    `<w:tr>${cells.map((cell) => `<w:tc>${paragraph(cell)}</w:tc>`).join('')}</w:tr>`
  return docx(
    [
      paragraph('Staff handbook', 'Titel'),
      paragraph('Holidays', 'berschrift1'),
      paragraph('Everyone has 28 days a year.'),
      `<w:tbl>${row('Role', 'Notice')}${row('Intern', '2 weeks')}</w:tbl>`,
    ].join(''),
    { Titel: 'Title', berschrift1: 'heading 1' },
  )
}

export async function docx(body: string, styles: Record<string, string> = {}): Promise<Uint8Array> {
  const word =
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
  const office = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'
  const relations = (type: string, target: string) =>
    `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="${office}/${type}" Target="${target}"/></Relationships>`
  const zip = new JSZip()
  zip.file(
    '[Content_Types].xml',
    '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/><Override PartName="/word/styles.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.styles+xml"/></Types>',
  )
  zip.file('_rels/.rels', relations('officeDocument', 'word/document.xml'))
  zip.file('word/_rels/document.xml.rels', relations('styles', 'styles.xml'))
  zip.file('word/document.xml', `<w:document ${word}><w:body>${body}</w:body></w:document>`)
  const named = Object.entries(styles).map(
    ([id, name]) => `<w:style w:type="paragraph" w:styleId="${id}"><w:name w:val="${name}"/></w:style>`,
  )
  zip.file('word/styles.xml', `<w:styles ${word}>${named.join('')}</w:styles>`)
  return zip.generateAsync({ type: 'uint8array' })
}

const zipped = (parts: Record<string, string>): Promise<Uint8Array> => {
  const archive = new JSZip()
  for (const [path, text] of Object.entries(parts)) archive.file(path, text)
  return archive.generateAsync({ type: 'uint8array', compression: 'DEFLATE' })
}

/** The archive with some of its parts changed. */
export async function changed(
  archive: Promise<Uint8Array>,
  edits: Record<string, (part: string) => string | Uint8Array>,
): Promise<Uint8Array> {
  const zip = await JSZip.loadAsync(await archive)
  for (const [path, edit] of Object.entries(edits)) {
    zip.file(path, edit(await zip.file(path)!.async('string')))
  }
  return zip.generateAsync({ type: 'uint8array', compression: 'DEFLATE' })
}

/** The archive, whose directory states another size of a part than it has (APPNOTE, 4.3.12). */
export async function stating(
  archive: Promise<Uint8Array>,
  path: string,
  bytes: number,
): Promise<Uint8Array> {
  const changed = Buffer.from(await archive)
  const name = changed.lastIndexOf(path)
  const entry = name - 46
  if (changed.readUInt32LE(entry) !== 0x02014b50) throw new Error(`${path} is not in the directory`)
  changed.writeUInt32LE(bytes, entry + 24)
  return new Uint8Array(changed)
}

const RELATIONS = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships'

/** What a part of an Office file refers to: by id, the last word of its kind and where it is. */
const relations = (targets: Record<string, [kind: string, path: string]>) =>
  `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">${Object.entries(
    targets,
  )
    .map(([id, [kind, path]]) => `<Relationship Id="${id}" Type="${RELATIONS}/${kind}" Target="${path}"/>`)
    .join('')}</Relationships>`

/** A workbook of these sheets. Numbers are numbers, a Date is a day, and null an empty cell. */
export function workbook(
  sheets: Record<string, (string | number | boolean | Date | null)[][]>,
): Promise<Uint8Array> {
  const cell = (value: string | number | boolean | Date | null, row: number, column: number) => {
    const at = `r="${String.fromCharCode(65 + column)}${row + 1}"`
    if (value === null) return ''
    if (typeof value === 'number') return `<c ${at}><v>${value}</v></c>`
    if (typeof value === 'boolean') return `<c ${at} t="b"><v>${Number(value)}</v></c>`
    // Days are counted from the end of 1899 (ECMA-376, 18.17.4), and style 1 is that of a date.
    if (value instanceof Date) return `<c ${at} s="1"><v>${value.getTime() / 86_400_000 + 25_569}</v></c>`
    return `<c ${at} t="inlineStr"><is><t>${value}</t></is></c>`
  }
  const rowsOf = (rows: (string | number | boolean | Date | null)[][]) =>
    rows
      .map(
        (cells, row) =>
          `<row r="${row + 1}">${cells.map((value, column) => cell(value, row, column)).join('')}</row>`,
      )
      .join('')
  return workbookOf(Object.fromEntries(Object.entries(sheets).map(([name, rows]) => [name, rowsOf(rows)])))
}

/** A workbook of sheets with these rows (ECMA-376, 18.3.1.80). */
export function workbookOf(sheets: Record<string, string>): Promise<Uint8Array> {
  const names = Object.keys(sheets)
  const sheet = (rows: string) =>
    `<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>${rows}</sheetData></worksheet>`
  return zipped({
    'xl/workbook.xml': `<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="${RELATIONS}"><sheets>${names
      .map((name, at) => `<sheet name="${name}" sheetId="${at + 1}" r:id="s${at}"/>`)
      .join('')}</sheets></workbook>`,
    'xl/_rels/workbook.xml.rels': relations({
      ...Object.fromEntries(
        names.map((_, at) => [`s${at}`, ['worksheet', `worksheets/sheet${at}.xml`] as [string, string]]),
      ),
      styles: ['styles', 'styles.xml'],
    }),
    'xl/styles.xml':
      '<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14" applyNumberFormat="1"/></cellXfs></styleSheet>',
    ...Object.fromEntries(names.map((name, at) => [`xl/worksheets/sheet${at}.xml`, sheet(sheets[name]!)])),
  })
}

/** Two slides, which are not in the order of their files: a title with a list, and a table with notes. */
export function slides(): Promise<Uint8Array> {
  const drawing = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
  const presentation = 'xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"'
  const shape = (kind: string, ...lines: string[]) =>
    `<p:sp><p:nvSpPr><p:nvPr><p:ph type="${kind}"/></p:nvPr></p:nvSpPr><p:txBody>${lines
      .map(
        (line) =>
          `<a:p>${line
            .split('|')
            .map((run) => `<a:r><a:t>${run}</a:t></a:r>`)
            .join('')}</a:p>`,
      )
      .join('')}</p:txBody></p:sp>`
  const row = (...cells: string[]) =>
    `<a:tr>${cells.map((cell) => `<a:tc><a:txBody><a:p><a:r><a:t>${cell}</a:t></a:r></a:p></a:txBody></a:tc>`).join('')}</a:tr>`
  const slide = (...parts: string[]) =>
    `<p:sld ${drawing} ${presentation}><p:cSld><p:spTree>${parts.join('')}</p:spTree></p:cSld></p:sld>`
  return zipped({
    'ppt/presentation.xml': `<p:presentation ${presentation} xmlns:r="${RELATIONS}"><p:sldIdLst><p:sldId id="256" r:id="first"/><p:sldId id="257" r:id="second"/></p:sldIdLst></p:presentation>`,
    'ppt/_rels/presentation.xml.rels': relations({
      first: ['slide', 'slides/slide2.xml'],
      second: ['slide', 'slides/slide1.xml'],
    }),
    'ppt/slides/slide2.xml': slide(
      shape('title', 'Your first |day'),
      shape('body', 'Pick up your badge.', 'Meet your buddy at ten.'),
      shape('sldNum', '1'),
    ),
    'ppt/slides/slide1.xml': slide(
      shape('title', 'Who to call'),
      `<p:graphicFrame><a:tbl>${row('Room', 'Phone')}${row('Desk', '112')}</a:tbl></p:graphicFrame>`,
    ),
    'ppt/slides/_rels/slide1.xml.rels': relations({
      notes: ['notesSlide', '../notesSlides/notesSlide1.xml'],
    }),
    'ppt/notesSlides/notesSlide1.xml': `<p:notes ${drawing} ${presentation}>${shape('body', 'The desk opens at 8:30.')}</p:notes>`,
  })
}

/** A book of two chapters, with a table of contents. */
export const book = (): Promise<Uint8Array> =>
  zipped({
    mimetype: 'application/epub+zip',
    'META-INF/container.xml':
      '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
    'OEBPS/book.opf':
      '<package xmlns="http://www.idpf.org/2007/opf"><metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Bees &amp; hives</dc:title></metadata><manifest><item id="nav" href="nav.xhtml" properties="nav"/><item id="a" href="text/one%20more.xhtml"/><item id="b" href="two.xhtml"/></manifest><spine><itemref idref="nav"/><itemref idref="b"/><itemref idref="a"/></spine></package>',
    'OEBPS/nav.xhtml': '<html><body><nav><a href="two.xhtml">Swarms</a></nav></body></html>',
    'OEBPS/two.xhtml':
      '<html><head><title>2</title></head><body><h1>Swarms</h1><p>A swarm leaves in May.</p></body></html>',
    'OEBPS/text/one more.xhtml': '<html><body><h1>Honey</h1><p>A hive gives 30 kg a year.</p></body></html>',
  })
