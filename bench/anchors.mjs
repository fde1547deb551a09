/**
 * Whether passages open at their headings: `node --import ./scripts/installed.mjs bench/anchors.mjs COLLECTION`, after `parley import
 * http://localhost:PORT/ --into COLLECTION` of a website on this machine. Fifty passages whose addresses have anchors, drawn evenly from all
 * of them, are opened in Chromium: the place has to be there, in view, and to be the passage's heading, its section, or, for a place
 * in a text, to stand before words of the passage.
 */
import { chromium } from 'playwright-core'

const [collection = '', count = '50'] = process.argv.slice(2)
const url = process.env.PARLEY_URL ?? 'http://localhost:8108'
const key = process.env.PARLEY_API_KEY ?? 'xyz'

const exported = await fetch(
  `${url}/collections/${collection}/documents/export?include_fields=heading,title,text,url`,
  { headers: { 'x-typesense-api-key': key } },
)
if (!exported.ok) throw new Error(await exported.text())
const lines = (await exported.text()).split('\n').filter((line) => line !== '')
const all = lines.map((line) => JSON.parse(line)).filter((passage) => passage.url?.includes('#'))
const step = Math.max(1, all.length / Number(count))
const drawn = Array.from(
  { length: Math.min(all.length, Number(count)) },
  (_, at) => all[Math.floor(at * step)],
)

/** What a page shows at its anchor, as a function of the page. */
function shown() {
  const id = decodeURIComponent(location.hash.slice(1))
  const place = document.getElementById(id) ?? document.getElementsByName(id)[0]
  if (!place) return { isThere: false }
  const headings = 'h1,h2,h3,h4,h5,h6,dt,summary,[role="tab"]'
  const own = place.matches(headings) ? place : (place.closest(headings) ?? place.querySelector(headings))
  // An anchor may stand alone before its heading.
  let next = place
  while (next && !next.matches(headings))
    next = next.nextElementSibling ?? next.parentElement?.nextElementSibling
  const target = own ?? next ?? place
  const { top, bottom, height } = target.getBoundingClientRect()
  return {
    isThere: true,
    isInView: height > 0 && bottom > 0 && top < innerHeight,
    heading: target.textContent,
    around: place.textContent.slice(0, 20_000),
  }
}

const plain = (/** @type {string} */ text) => (text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).join(' ')

/** Whether a place in a text is one of the passage. */
const isText = (text, around) => around.trim() !== '' && plain(text).includes(plain(around).slice(0, 40))

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium-headless-shell',
  args: ['--no-sandbox', '--disable-gpu'],
})
const page = await browser.newPage()
let right = 0
for (const { url: address, heading, title, text } of drawn) {
  await page.goto('about:blank')
  await page.goto(address, { waitUntil: 'load' })
  await page.waitForTimeout(150)
  const { isThere, isInView, heading: found = '', around = '' } = await page.evaluate(shown)
  const wanted = plain((heading ?? title).split(' > ').at(-1))
  const isHeading = plain(found).includes(wanted) || isText(text, around)
  if (isThere && isInView && isHeading) right += 1
  else
    console.log(
      `${address}: ${isThere ? (isInView ? `is at "${found.trim().slice(0, 60)}"` : 'is not in view') : 'is not there'}; the passage is of "${heading}"`,
    )
}
await browser.close()
console.log(
  `${collection}: ${right} of ${drawn.length} passages open at their headings (${all.length} have anchors)`,
)
