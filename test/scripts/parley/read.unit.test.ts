import fc from 'fast-check'
import { parseHTML } from 'linkedom'
import { marked } from 'marked'
import { expect, test } from 'vitest'
import { withoutElements } from '../../../scripts/parley/read/article.mjs'
import { htmlToMarkdown } from '../../../scripts/parley/read/html.mjs'
import { readContent } from '../../../scripts/parley/read/index.mjs'
import { changed, handbookDocx, onePagePdf, oneParagraphDocx } from './files'

const read = (path: string, text: string | Uint8Array) =>
  readContent(typeof text === 'string' ? new TextEncoder().encode(text) : text, path)

test('front matter gives a page its title, address and tags', async () => {
  const page =
    '---\ntitle: Keys\nurl: https://example.com/keys\ntags: [a, b]\ndescription: All about keys.\n---\n\nText.'
  expect(await read('x.md', page)).toEqual({
    article: {
      title: 'Keys',
      url: 'https://example.com/keys',
      tags: ['a', 'b'],
      text: 'All about keys.\n\nText.',
    },
  })
})

test.each([
  ['underlined', 'keys/README.md', 'The keys\n========\n\n## Install', 'The keys'],
  [
    'of HTML, in a box',
    'keys/README.md',
    '<p align="center">\n<h1>The keys</h1>\n</p>\n\n## Install',
    'The keys',
  ],
  ['with a badge', 'x.md', '# The keys [![CI](https://ci.example/a.svg)](https://ci.example)', 'The keys'],
  ['with a picture', 'x.md', '# ![Logo](logo.svg) The keys', 'The keys'],
  [
    'missing in a README, so its folder counts',
    'packages/the-keys/README.md',
    '## Install\n\nText.',
    'The keys',
  ],
])('a heading that is %s', async (_, path, page, title) => {
  expect(await read(path, page)).toMatchObject({ article: { title } })
})

test('an underlined heading gets its marks in front, as passages are told apart by them', async () => {
  const page =
    '<img src="https://img.shields.io/a.svg" alt="CI">\n\nThe **keys** `x`\n=====\n\nText.\n\nMore\n---\n\nText.'
  expect(await read('x.md', page)).toEqual({
    article: { title: 'The keys x', text: '# The **keys** `x`\n\nText.\n\n## More\n\nText.' },
  })
})

test('HTML in Markdown becomes Markdown, and placeholders stay', async () => {
  const page = `# Keys

<div align="center"><a href="https://ci.example"><img src="https://img.shields.io/a.svg" alt="build"></a></div>

<details>
<summary>More</summary>

A **key** opens<br>a door. Press <kbd>Enter</kbd>, or run \`a<b>c\`.

</details>

<table><tr><th>Lock</th></tr><tr><td>Blue</td></tr></table>

<!-- a note -->

- <details><summary>One</summary>

  of two

- Use <your-key> and <filename>.

\`\`\`html
<div>stays</div>
\`\`\`
`
  const { article } = (await read('keys.md', page)) as { article: { text: string } }
  expect(article.text).toBe(`# Keys

More

A **key** opens a door. Press Enter, or run \`a<b>c\`.

| Lock |
| --- |
| Blue |

- One

  of two

- Use <your-key> and <filename>.

\`\`\`html
<div>stays</div>
\`\`\``)
})

test('a rule at the top is no front matter', async () => {
  expect(await read('x.md', '---\n\n# Title\n\n---\nText.')).toMatchObject({
    article: { title: 'Title', text: expect.stringContaining('Text.') },
  })
})

test('a page without a title is called by its first heading, not by one in code, else by its path', async () => {
  expect(await read('x.md', '```sh\n# a comment\n```\n\n## The `real` [one](x) {#id}\n')).toMatchObject({
    article: { title: 'The real one' },
  })
  expect(await read('guide/getting-started/index.md', 'Text.')).toMatchObject({
    article: { title: 'Getting started' },
  })
})

test('MDX loses its code and keeps what its components hold', async () => {
  const page =
    'import X from "x"\n\n# Title\n\n<Note kind="tip">\n  Mind the **gap**.\n</Note>\n\n{1 + 1}\n\n| a | b |\n|---|---|\n| 1 | 2 |\n'
  const { article } = (await read('x.mdx', page)) as { article: { text: string } }
  expect(article.text).toContain('Mind the **gap**.')
  expect(article.text).toContain('| 1 | 2 |')
  expect(article.text).not.toMatch(/import|Note|1 \+ 1/)
})

test('of HTML the main content is read, as Markdown', async () => {
  const page = `<html><head><title>Keys | Site</title></head><body><nav><a href="/">Home</a> Menu</nav>
    <main><h1>Keys</h1><p>${'A key opens what it may open. '.repeat(8)}</p>
    <pre><code class="language-sh">curl x</code></pre><table><thead><tr><th>a</th></tr></thead><tbody><tr><td>1</td></tr></tbody></table>
    </main><footer>Imprint</footer><script>alert(1)</script></body></html>`
  const { article } = (await read('keys.html', page)) as { article: { title: string; text: string } }
  expect(article.title).toBe('Keys')
  expect(article.text).toContain('A key opens')
  expect(article.text).toContain('```sh\ncurl x\n```')
  expect(article.text).toMatch(/\| a +\|\n\| -+ \|\n\| 1 +\|/)
  expect(article.text).not.toMatch(/Menu|Imprint|alert/)
})

const PROSE = `<p>${'A key opens what it may open. '.repeat(8)}</p>`

test.each([
  [
    'by the heading of its main part, not by the name of the site',
    '<title>Keys - Handbook</title>',
    '<div><h1>Handbook</h1></div><main><h1>Keys and locks</h1></main>',
    'Keys and locks',
  ],
  [
    'by its title without the site, where its main part has smaller headings only',
    '<title>Keys - Handbook</title>',
    '<div><h1>Handbook</h1></div><main><h2>Keys</h2></main>',
    'Keys',
  ],
  [
    'by its heading, where the title adds the site',
    '<title>Keys | Handbook</title>',
    '<header><h1>Keys</h1></header><main></main>',
    'Keys',
  ],
  [
    'by its title, where its first heading is one of several parts',
    '<title>Row Values</title>',
    '<div><h1>1. Definitions</h1><p>A row.</p><h1>2. Syntax</h1></div><main></main>',
    'Row Values',
  ],
  [
    'by its title, where its main part has several headings',
    '<title>Row Values</title>',
    '<main><h1>1. Definitions</h1><p>A row.</p><h1>2. Syntax</h1></main>',
    'Row Values',
  ],
  [
    'by its first heading of several, where the title says it too',
    '<title>Keys | Handbook</title>',
    '<main><h1>Keys</h1><p>A key.</p><h1>See also</h1></main>',
    'Keys',
  ],
  [
    'by its heading without buttons and permanent links',
    '<title>keys</title>',
    '<main><h1>Keys <button>Copy</button><a href="#keys">¶</a></h1></main>',
    'Keys',
  ],
])('a page of HTML is called %s', async (_, head, body, title) => {
  const page = `<html><head>${head}</head><body>${body.replace('</main>', `${PROSE}</main>`)}</body></html>`
  expect(await read('keys.html', page)).toMatchObject({ article: { title } })
})

test('names with underscores, lone stars and brackets are text as they are', () => {
  const said = 'Set journal_mode, or SELECT * FROM a WHERE x[1] or [a] and not [b].'
  expect(htmlToMarkdown(`<h2>2. Modes</h2><p>${said}</p>`)).toBe(`## 2. Modes\n\n${said}`)
})

test('marks that are left out mean nothing: the text stays the same', () => {
  const signs = fc.constantFrom(...'_*[]^:ab1. (')
  fc.assert(
    fc.property(fc.array(signs, { maxLength: 24 }), (parts) => {
      const text = parts.join('').replace(/ +/g, ' ').trim()
      const html = marked.parse(htmlToMarkdown(`<p>a ${text} b</p>`)) as string
      expect(parseHTML(`<html><body>${html}</body></html>`).document.body.textContent.trim()).toBe(
        `a ${text} b`.replace(/ +/g, ' '),
      )
    }),
    { numRuns: 2_000 },
  )
})

test('what surrounds the content of an HTML page is not read', async () => {
  const page = `<html><body>
    <div id="help"><h2>Keyboard shortcuts</h2><p>Press S to search in the book, or Esc to hide this help.</p></div>
    <main><h2 id="keys"><a href="#keys">Keys</a></h2>${PROSE}
    <h3>More<a class="headerlink" href="#more" title="Link to this heading">¶</a></h3><p>See <a href="/locks">locks</a>.</p>
    <nav><a href="/before" title="Previous chapter"><i></i></a></nav><a rel="next" href="/next"><i></i></a></main></body></html>`
  const { article } = (await read('keys.html', page)) as { article: { text: string } }
  expect(article.text).toMatch(/^A key opens[^#]+### More {#more}\n\nSee \[locks\]\(\/locks\)\.$/)
})

test.each([
  [
    'all posts',
    `<article><h2>One</h2>${PROSE}</article><article><h2>Two</h2>${PROSE}</article>`,
    ['## One', '## Two'],
  ],
  [
    'a story beside a teaser',
    `<article><h2>Teaser</h2>${PROSE}</article><div id="content"><h1>Story</h1>${PROSE.repeat(4)}The end.</div>`,
    ['Story', 'The end.'],
  ],
  [
    'a story beside a comment',
    `<div id="content"><h1>Story</h1>${PROSE.repeat(4)}The end.</div><article class="comment">${PROSE}</article>`,
    ['Story', 'The end.'],
  ],
])('HTML without a marked main part keeps %s', async (_, body, kept) => {
  const { article } = (await read('a.html', `<html><body>${body}</body></html>`)) as {
    article: { title: string; text: string }
  }
  for (const text of kept) expect(`${article.title}\n${article.text}`).toContain(text)
})

test('a piece of HTML needs no body', async () => {
  const { article } = (await read('keys.html', `<main><h1>Keys</h1>${PROSE}</main>`)) as {
    article: { title: string; text: string }
  }
  expect(article.title).toBe('Keys')
  expect(article.text).toContain('A key opens')
})

test('a page of HTML that redirects, or asks not to be indexed, is marked', async () => {
  const page = (head: string) => `<html><head>${head}</head><body>${PROSE}</body></html>`
  expect(await read('a.html', page('<meta http-equiv="Refresh" content="0; URL=b.html">'))).toHaveProperty(
    'indexed',
    false,
  )
  expect(await read('a.html', page('<meta name="robots" content="noindex">'))).toHaveProperty(
    'indexed',
    false,
  )
  for (const head of [
    '<meta http-equiv="refresh" content="300">',
    '<meta http-equiv="refresh" content="300; url=/later">',
    '<meta http-equiv="refresh" content="1; url=a.html#top">',
    '<noscript><meta http-equiv="refresh" content="0; url=/no-script"></noscript>',
  ]) {
    expect(await read('a.html', page(head)), head).not.toHaveProperty('indexed')
  }
})

test('HTML in an old encoding is read as its own words say', async () => {
  const bytes = Buffer.from(
    '<html><head><meta charset="iso-8859-1"></head><body><h1>Caf\xe9</h1></body></html>',
    'latin1',
  )
  expect(await read('x.html', new Uint8Array(bytes))).toMatchObject({ article: { title: 'Café' } })
})

test('CSV: quotes, semicolons, a byte-order mark', async () => {
  expect(await read('x.csv', '\uFEFFname;note\nReef;"a; b\nc"\n')).toEqual({
    rows: [{ name: 'Reef', note: 'a; b\nc' }],
    lines: [2],
  })
})

test.each([
  ['Excel names its separator', 'sep=;\r\nname;note\r\nReef;a, b\r\n', { name: 'Reef', note: 'a, b' }, 3],
  ['lines end as on old machines', 'name;note\rReef;a, b\r', { name: 'Reef', note: 'a, b' }, 2],
  ['names hold the marks of others', '"a;b;c",d\n1,2\n', { 'a;b;c': '1', d: '2' }, 2],
])('CSV: %s', async (_, text, row, line) => {
  expect(await read('x.csv', text)).toEqual({ rows: [row], lines: [line] })
})

test('CSV: rows that are too long have a fault, short ones and empty ends have none; a second name gets a number', async () => {
  expect(await read('x.csv', 'a,,a\n\n1,2,3\n1,2,3,4\n1\n1,2,3,,\n')).toEqual({
    rows: [
      { a: '1', column_2: '2', a_2: '3' },
      expect.anything(),
      { a: '1' },
      { a: '1', column_2: '2', a_2: '3' },
    ],
    lines: [3, 4, 5, 6],
    faults: new Map([[1, expect.stringContaining('has 4 cells, and the table 3 columns')]]),
  })
})

test('JSON: a list, an object with a list in it, lines', async () => {
  const rows = [{ a: 1 }, { a: 2 }]
  expect(await read('x.json', JSON.stringify(rows))).toEqual({ rows })
  expect(await read('x.json', JSON.stringify({ items: rows, total: 2 }))).toEqual({ rows })
  const order = { id: 7, items: rows }
  expect(await read('x.json', JSON.stringify(order))).toEqual({ rows: [order] })
  expect(await read('x.jsonl', rows.map((row) => JSON.stringify(row)).join('\n'))).toEqual({
    rows,
    lines: [1, 2],
  })
  await expect(read('x.jsonl', '{"a":1}\n{"a":')).rejects.toThrow('line 2')
})

const GERMAN = 'Frage;Antwort\nWann ist die Küche geöffnet?;Täglich, auch für größere Gruppen.\n'

/** Texts with too few letters outside of ASCII to guess from. */
const FEW = ['Björn', 'Résumé', 'Árból', 'Straße', 'Café', 'city\nKøbenhavn\nÅrhus', 'Gastos de año'].map(
  (text): [string, Buffer, string] => [`Windows-1252, as in ${text},`, Buffer.from(text, 'latin1'), text],
)

test.each([
  ['Windows-1252, as spreadsheets save it', Buffer.from(GERMAN, 'latin1'), GERMAN],
  ['UTF-16', Buffer.from(`\uFEFF${GERMAN}`, 'utf16le'), GERMAN],
  ['UTF-8 with its mark', Buffer.from(`\uFEFF${GERMAN}`), GERMAN],
  [
    'Windows-1251',
    Buffer.from('c3e4e520ecfb20e5e4e8ec3f20cdeeece5f020eff0e8e5e7e6e0e5f220f3f2f0eeec2e', 'hex'),
    'Где мы едим? Номер приезжает утром.',
  ],
  [
    'Shift JIS',
    Buffer.from('92938ed48fea82cd82c782b182c582b782a98148837a8365838b82cc97a082c582b78142', 'hex'),
    '駐車場はどこですか？ホテルの裏です。',
  ],
  ...FEW,
  ['Windows-1252 with its own signs', Buffer.from('5 \x80, \x93so\x94', 'latin1'), '5 €, “so”'],
  [
    'UTF-8 with a broken letter',
    Buffer.concat([Buffer.from(GERMAN.repeat(9)), Buffer.from([0xc3])]),
    `${GERMAN.repeat(9)}\uFFFD`,
  ],
  [
    'Windows-1252 far behind',
    Buffer.from(`${'Only English. '.repeat(50_000)}${GERMAN}`, 'latin1'),
    `${'Only English. '.repeat(50_000)}${GERMAN}`,
  ],
])('text in %s is read', async (_, bytes, text) => {
  expect(await read('x.txt', bytes)).toMatchObject({ article: { text: text.trim() } })
})

test('a table and a page without a named encoding are read in theirs', async () => {
  expect(await read('x.csv', Buffer.from(GERMAN, 'latin1'))).toEqual({
    rows: [{ Frage: 'Wann ist die Küche geöffnet?', Antwort: 'Täglich, auch für größere Gruppen.' }],
    lines: [2],
  })
  const page = `<title>Küche</title><main><p>${'Täglich geöffnet, auch für größere Gruppen. '.repeat(5)}</p></main>`
  expect(await read('x.html', Buffer.from(page, 'latin1'))).toMatchObject({ article: { title: 'Küche' } })
})

test('stars in a PDF are no emphasis', async () => {
  expect(await read('a.pdf', onePagePdf('Set a*b: 2 and c*d, or use * alone.'))).toMatchObject({
    article: { text: expect.stringContaining('Set a\\*b: 2 and c\\*d, or use * alone.') },
  })
})

test('PDF and DOCX give up their text', async () => {
  const file = onePagePdf('Sharks sleep in caves.')
  // Node reads files as a Buffer, and a browser as plain bytes.
  for (const bytes of [file, Buffer.from(file)]) {
    expect(await read('guide.pdf', bytes)).toEqual({
      article: { title: 'Guide', text: '## Page 1 {#page=1}\n\nSharks sleep in caves.' },
    })
  }
  const { article: docx } = (await read('guide.docx', await oneParagraphDocx('Sharks sleep in caves.'))) as {
    article: { text: string }
  }
  expect(docx.text).toBe('Sharks sleep in caves.')
})

test('a name in angle brackets hides nothing of a PDF, but in code it stays as it is', async () => {
  expect(await read('guide.pdf', onePagePdf('Set <style> first.'))).toMatchObject({
    article: { text: '## Page 1 {#page=1}\n\nSet \\<style> first.' },
  })
  expect(withoutElements('a <b\n```sh\nrun <name>\n```\n1 < 2 </b>')).toBe(
    'a \\<b\n```sh\nrun <name>\n```\n1 < 2 \\</b>',
  )
})

test('a Word document keeps its title, its chapters and the heads of its tables', async () => {
  expect(await read('handbook.docx', await handbookDocx())).toEqual({
    article: {
      title: 'Staff handbook',
      text: '# Staff handbook\n\n# Holidays\n\nEveryone has 28 days a year.\n\n| Role | Notice |\n| --- | --- |\n| Intern | 2 weeks |',
    },
  })
})

test('text that a Word document hides is left out', async () => {
  const run = (text: string, hidden = '') => `<w:r><w:rPr><w:b/>${hidden}</w:rPr><w:t>${text}</w:t></w:r>`
  const bytes = changed(oneParagraphDocx('Sharks sleep.'), {
    'word/document.xml': (xml) =>
      xml.replace(
        /<w:r>.*<\/w:r>/,
        `${run('Sharks ')}${run('never ', '<w:vanish/>')}${run('sleep.', '<w:vanish w:val="0"/>')}`,
      ),
  })
  expect(await read('guide.docx', await bytes)).toEqual({
    article: { title: 'Guide', text: '**Sharks sleep.**' },
    hidden: ['hidden text'],
  })
})

test('a PDF of pictures says what has to be done', async () => {
  await expect(read('scan.pdf', onePagePdf(''))).rejects.toThrow('text recognition (OCR)')
})

test('a broken file says that it is', async () => {
  await expect(read('x.pdf', 'no pdf')).rejects.toThrow()
  await expect(read('x.docx', 'no docx')).rejects.toThrow()
  await expect(read('x.json', '{')).rejects.toThrow()
})
