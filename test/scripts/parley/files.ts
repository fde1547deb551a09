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

async function docx(body: string, styles: Record<string, string> = {}): Promise<Uint8Array> {
  const word = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
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
