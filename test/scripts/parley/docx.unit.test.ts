/** What Word's documents hold beside paragraphs: formulas, and tables whose heads have several rows. */
import { expect, test } from 'vitest'
import { readContent } from '../../../scripts/parley/read/index.mjs'
import { docx } from './files'

const text = (words: string) => `<w:r><w:t xml:space="preserve">${words}</w:t></w:r>`
const said = (words: string) => `<m:r><m:t>${words}</m:t></m:r>`
const read = async (body: string) => {
  const content = await readContent(await docx(body), 'x.docx')
  return 'article' in content ? content.article.text : ''
}

test.each([
  ['a power', `<m:sSup><m:e>${said('x')}</m:e><m:sup>${said('n+1')}</m:sup></m:sSup>`, '$x^{n+1}$'],
  [
    'a fraction in a root',
    `<m:rad><m:radPr><m:degHide m:val="1"/></m:radPr><m:deg/><m:e><m:f><m:num>${said('a')}</m:num><m:den>${said('b')}</m:den></m:f></m:e></m:rad>`,
    '$\\sqrt{\\frac{a}{b}}$',
  ],
  [
    'a sum of terms in brackets',
    `<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>${said('i=1')}</m:sub><m:sup>${said('n')}</m:sup><m:e><m:d><m:e><m:sSub><m:e>${said('a')}</m:e><m:sub>${said('i')}</m:sub></m:sSub>${said('*b*c')}</m:e></m:d></m:e></m:nary>`,
    '$∑_{i=1}^n (a_i*b*c)$',
  ],
])('a formula is TeX: %s', async (_, formula, tex) => {
  expect(await read(`<w:p>${text('As ')}<m:oMath>${formula}</m:oMath>${text(' says.')}</w:p>`)).toBe(
    `As ${tex} says.`,
  )
})

const cell = (words: string, properties = '') =>
  `<w:tc><w:tcPr>${properties}</w:tcPr><w:p>${text(words)}</w:p></w:tc>`
const row = (...cells: string[]) => `<w:tr>${cells.join('')}</w:tr>`
const [begins, goesOn] = ['<w:vMerge w:val="restart"/>', '<w:vMerge/>']

test.each([
  [
    'of two rows',
    row(cell('Plan', begins), cell('Price', '<w:gridSpan w:val="2"/>')) +
      row(cell('', goesOn), cell('Month'), cell('Year')) +
      row(cell('Pro'), cell('9'), cell('90')),
    '| Plan | Price Month | Price Year |\n| --- | --- | --- |\n| Pro | 9 | 90 |',
  ],
  [
    'of one, over cells that are one',
    row(cell('Plan'), cell('Price')) +
      row(cell('Pro', begins), cell('9')) +
      row(cell('', goesOn), cell('90')),
    '| Plan | Price |\n| --- | --- |\n| Pro | 9 |\n| Pro | 90 |',
  ],
])('a table keeps its head: %s', async (_, rows, markdown) => {
  expect(await read(`<w:tbl>${rows}</w:tbl>`)).toBe(markdown)
})
