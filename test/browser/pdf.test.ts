/** A PDF as people have them: printed by a browser, with headers, footers, columns and bookmarks. */
import { expect, test } from 'vitest'
import { readContent } from '../../scripts/parley/read/index.mjs'
import { CHROMIUM, sharedBrowser } from './chromium'

const about = (what: string) =>
  `The ${what} opens at eight in the morning and closes when the last guest has left, which in summer can be long after midnight. Guests who have a well-known allergy tell the kitchen before they order, and the kitchen keeps a list of what is in each dish.`

const PAGE = `<title>Microsoft Word - cafe-manual.docx</title>
<style>body { font: 11pt serif } h1 { font-size: 24pt } h2 { font-size: 15pt } pre { font: 10pt monospace }</style>
<h1>The café's manual</h1><p>${about('café')}</p>
<h2>Starting the till</h2><p>Type this:</p>
<pre>till start
  --drawer 2
till open</pre>
<h2>Two columns</h2><div style="column-count: 2"><p>${about('bar')}</p><p>${about('garden')}</p></div>
<h2>Prices</h2><table><tr><td>Soup<td>4 €<tr><td>Bread<td>1 €</table>
<h2 style="break-before: page">The terrace</h2><p>${about('terrace')}</p>`

test.runIf(CHROMIUM)('a printed page is read as it was written', async () => {
  const page = await (await sharedBrowser()).newPage()
  await page.setContent(PAGE)
  const small = (html: string) => `<span style="font-size: 9px">${html}</span>`
  const printed = await page.pdf({
    format: 'A4',
    margin: { top: '60px', right: '60px', bottom: '60px', left: '60px' },
    displayHeaderFooter: true,
    headerTemplate: small('Manual of the café'),
    footerTemplate: small('Page <b class="pageNumber"></b> of <b class="totalPages"></b>'),
    outline: true,
    tagged: true,
  })
  await page.close()
  expect(await readContent(printed, 'print-7.pdf')).toEqual({
    article: {
      title: "The café's manual",
      text: [
        `## The café's manual (page 1) {#page=1}\n\n${about('café')}`,
        '### Starting the till (page 1) {#page=1}\n\nType this:\n\n```\ntill start\n  --drawer 2\ntill open\n```',
        `### Two columns (page 1) {#page=1}\n\n${about('bar')}\n\n${about('garden')}`,
        '### Prices (page 1) {#page=1}\n\nSoup 4 €\n\nBread 1 €',
        `### The terrace (page 2) {#page=2}\n\n${about('terrace')}`,
      ].join('\n\n'),
    },
  })
})
