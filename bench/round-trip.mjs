/**
 * What an import lost of a documentation, and what it says twice: `node bench/round-trip.mjs COLLECTION FOLDER`, after `parley import FOLDER --into COLLECTION`. The words of each page are compared with those of its passages,
 * and sequences of five of them. Pages are read here by other means than the importer's: HTML as the text of its main part, Markdown as
 * marked renders it, a PDF as pdf.js tells its text. MDX is compared without names of components and attributes, some of which the importer says:
 * its sequences may have other words between theirs.
 */
import '../scripts/installed.mjs'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { parseHTML } from 'linkedom'
import { marked } from 'marked'
import { extractText, getDocumentProxy } from 'unpdf'

const [collection = '', folder = ''] = process.argv.slice(2)
const url = process.env.PARLEY_URL ?? 'http://localhost:8108'
const key = process.env.PARLEY_API_KEY ?? 'xyz'
const SEQUENCE = 5

const BLOCKS =
  'address,article,aside,blockquote,br,caption,dd,details,div,dl,dt,figcaption,figure,footer,h1,h2,h3,h4,h5,h6,header,hr,li,main,ol,p,pre,section,summary,table,td,th,tr,ul'
const UNSAID = 'script,style,template,noscript,button,nav,svg,head,.headerlink,.linenos,dialog'
const MAIN = ['main', '[role="main"]', 'article', '.body', 'body']

/** The words that an element shows. */
function saidBy(element) {
  for (const each of element.querySelectorAll(UNSAID)) each.remove()
  for (const each of element.querySelectorAll('img[alt]')) each.replaceWith(each.getAttribute('alt'))
  for (const each of element.querySelectorAll(BLOCKS)) {
    each.before(' \n')
    each.append(' \n')
  }
  return element.textContent
}

const parsed = (html) =>
  parseHTML(html.includes('<html') ? html : `<html><body>${html}</body></html>`).document
const textOfHtml = (html) => {
  const document = parsed(html)
  return saidBy(MAIN.map((selector) => document.querySelector(selector)).find((found) => found))
}
const textOfMarkdown = (markdown) => saidBy(parsed(marked.parse(markdown, { async: false })).body)
const withoutFrontMatter = (text) => text.replace(/^---\n[\s\S]*?\n---\n/, '')
/** Text and strings, without tags, names of attributes and of fields, and addresses. */
const textOfMdx = (text) =>
  textOfMarkdown(
    withoutFrontMatter(text)
      .replace(/^(```\w*).*$/gm, '$1')
      .replace(/^import .*$/gm, '')
      // Addresses are no words, and neither are flags, which the importer says as their names.
      .replace(
        /\b(?:href|link|url|src)\s*[:=]\s*\{?\s*(?:"[^"\n]*"|'[^'\n]*'|`[^`\n]*`)|\b\w+: (?:true|false)\b/g,
        ' ',
      )
      .replace(
        /<\/?[A-Z]\w*|\{\/\*[\s\S]*?\*\/\}|\b\w+(?=\s*[:=]\s*["'`{[])|\b\w+=\{?(?:true|false)\}?/g,
        ' ',
      )
      .replace(/\s+$/g, ''),
  )

const READERS = {
  html: textOfHtml,
  md: (text) => textOfMarkdown(withoutFrontMatter(text)),
  mdx: textOfMdx,
}

/** A page has a running head if this share of all pages begins or ends with the same words, numbers aside. */
const RUNNING = 0.2
const ENTRY = /\S(?:\s*(?:\.\s?){4,})?\s+(?:\d{1,4}|[ivxlc]{1,7})$/
const LEADERS = /(?:\.\s?){4,}\s*\d{1,4}$/

/**
 * The text of a PDF without what an importer leaves out on purpose, and says so here: running heads with the numbers of pages, and the
 * table of contents, whose titles are all headings. A word that the end of a line parts is one word if it stands elsewhere as one.
 */
function textOfPdf(pages) {
  const alike = (line) => line.toLowerCase().replace(/\d+|\s+/g, '')
  const ends = counted(
    pages.flatMap((page) => {
      const lines = page.split('\n')
      return [...new Set([lines[0], lines.at(-1)].map(alike))]
    }),
  )
  const left = { running: 0, contents: 0 }
  const kept = pages.map((page) => {
    const lines = page.split('\n')
    const body = lines.filter((line, at) => {
      const isEnd = at === 0 || at === lines.length - 1
      const isRunning =
        isEnd &&
        ((ends.get(alike(line)) ?? 0) >= RUNNING * pages.length ||
          /^(?:\d+ )?.{0,40}\bcontents\b.{0,40}$/i.test(line))
      if (isRunning) left.running += wordsIn(line).length
      return !isRunning
    })
    const entries = body.filter((line) => ENTRY.test(line))
    const isContents = body.some((line) => LEADERS.test(line)) && entries.length > body.length / 2
    if (!isContents) return body.join('\n')
    left.contents += wordsIn(entries.join(' ')).length
    return body.filter((line) => !ENTRY.test(line)).join('\n')
  })
  const text = kept.join('\n')
  const whole = new Set(wordsIn(text))
  console.log(
    `Left out of what is compared: ${left.running} words of running heads, ${left.contents} of the table of contents`,
  )
  return text.replace(/(\p{L}+)-\n(\p{Ll}+)/gu, (parts, first, second) =>
    whole.has((first + second).toLowerCase()) ? first + second : parts,
  )
}

/** @returns {Promise<[path: string, text: string][]>} */
async function pagesOf(path) {
  if (path.endsWith('.pdf')) {
    const { text } = await extractText(await getDocumentProxy(new Uint8Array(readFileSync(path))))
    return [['', textOfPdf(text)]]
  }
  if (!statSync(path).isDirectory()) throw new Error(`${path} is no folder and no PDF`)
  return readdirSync(path, { recursive: true, encoding: 'utf8' }).flatMap((name) => {
    const read = READERS[name.slice(name.lastIndexOf('.') + 1)]
    return read ? [[name, read(readFileSync(join(path, name), 'utf8'))]] : []
  })
}

const wordsIn = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
const sequences = (words) =>
  words.map((_, at) => words.slice(at, at + SEQUENCE).join(' ')).slice(0, 1 - SEQUENCE)
const counted = (list) => {
  const counts = new Map()
  for (const each of list) counts.set(each, (counts.get(each) ?? 0) + 1)
  return counts
}
/** How many of the first are not in the second. */
const without = (first, second) => {
  const counts = counted(second)
  return first.filter((each) => {
    const left = counts.get(each) ?? 0
    counts.set(each, left - 1)
    return left <= 0
  })
}

/**
 * Sequences whose words are not all in the longest order that both lists have. Words that only the second has part none.
 * @param {string[]} words @param {string[]} said
 */
function partedSequences(words, said) {
  const width = said.length + 1
  const longest = new Uint16Array((words.length + 1) * width)
  for (let at = words.length - 1; at >= 0; at--)
    for (let to = said.length - 1; to >= 0; to--)
      longest[at * width + to] =
        words[at] === said[to]
          ? longest[(at + 1) * width + to + 1] + 1
          : Math.max(longest[(at + 1) * width + to], longest[at * width + to + 1])
  const isKept = []
  for (let at = 0, to = 0; at < words.length; ) {
    if (words[at] === said[to] && to < said.length) {
      isKept[at++] = true
      to++
    } else if (to === said.length || longest[(at + 1) * width + to] >= longest[at * width + to + 1])
      isKept[at++] = false
    else to++
  }
  return sequences(words).filter((_, at) => isKept.slice(at, at + SEQUENCE).includes(false))
}

/** The passages of a page as it was: each with those of its headings that the one before did not have. */
function saidOf(passages) {
  let last = []
  return passages
    .sort((a, b) => a.parley_part - b.parley_part)
    .map(({ title, heading, text }) => {
      // Of a PDF the importer names the page.
      const path = heading ? heading.replace(/ \(page \d+\)$/, '').split(' > ') : [title]
      const shared = path.findIndex((each, at) => each !== last[at])
      last = path
      return `${path.slice(shared < 0 ? path.length : shared).join('\n')}\n${textOfMarkdown(text)}`
    })
    .join('\n')
}

const exported = await fetch(`${url}/collections/${collection}/documents/export`, {
  headers: { 'x-typesense-api-key': key },
})
if (!exported.ok) throw new Error(await exported.text())
const lines = (await exported.text()).split('\n').filter((line) => line !== '')
const passages = Object.groupBy(
  lines.map((line) => JSON.parse(line)),
  (document) => document.parley_page,
)

const sums = { words: 0, lost: 0, more: 0, sequences: 0, lostSequences: 0, missing: [] }
for (const [path, text] of await pagesOf(folder)) {
  const ids = Object.keys(passages).filter((id) => path === '' || id === path || id.endsWith(`/${path}`))
  const id = ids.sort((a, b) => a.length - b.length)[0]
  if (id === undefined) {
    sums.missing.push(path)
    continue
  }
  const [words, said] = [wordsIn(text), wordsIn(saidOf(passages[id]))]
  const lost = without(words, said)
  if (process.env.BENCH_SHOW && lost.length > 0)
    console.log(`${relative('.', path)}: ${lost.slice(0, 40).join(' ')}`)
  const parted = path.endsWith('.mdx')
    ? partedSequences(words, said)
    : without(sequences(words), sequences(said))
  if (process.env.BENCH_SHOW === 'sequences') console.log(parted.join('\n'))
  sums.words += words.length
  sums.lost += lost.length
  sums.more += without(said, words).length
  sums.sequences += sequences(words).length
  sums.lostSequences += parted.length
}
const share = (part, of) => `${((100 * part) / of).toFixed(2)}%`
console.log(
  `${collection}: ${sums.words} words, ${share(sums.lost, sums.words)} lost, ${share(sums.more, sums.words)} more; ` +
    `${share(sums.lostSequences, sums.sequences)} of the sequences of ${SEQUENCE} lost or moved` +
    (sums.missing.length > 0 ? `; not imported: ${sums.missing.join(', ')}` : ''),
)
