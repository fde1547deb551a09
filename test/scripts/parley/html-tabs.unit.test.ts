/** What pages hide, and what they unfold: tabs, answers to questions, and what stands beside headings. */
import { expect, test } from 'vitest'
import { readPage } from '../../../scripts/parley/read/html.mjs'

const SAID =
  'A backup is a copy of files that you keep in another place, so that nothing is lost when a disk fails.'

/** What is read of a page with this content, and this in its head. */
const read = (content: string, head = ''): string =>
  readPage(
    `<html><head><title>Backup</title>${head}</head><body><main><h1>Backup</h1><p>${SAID}</p>${content}</main></body></html>`,
    'https://docs.example.com/guide/backup.html',
  ).article.text.slice(SAID.length + 2)

const [MAC, WINDOWS] = ['<p>Use brew.</p>', '<p>Use choco.</p>']

test.each([
  [
    'Bootstrap, without roles',
    `<ul class="nav nav-tabs"><li><a data-toggle="tab" href="#w">Windows</a></li><li><a data-toggle="tab" href="#m">macOS</a></li></ul><div class="tab-content"><div class="tab-pane" id="m">${MAC}</div><div class="tab-pane" id="w" style="DISPLAY:none">${WINDOWS}</div></div>`,
  ],
  [
    'jQuery',
    `<div><ul><li><a href="#t1">macOS</a></li><li><a href="#t2">Windows</a></li></ul><div id="t1">${MAC}</div><div id="t2">${WINDOWS}</div></div>`,
  ],
  [
    'Foundation',
    `<ul class="tabs"><li class="tabs-title"><a href="#p1">macOS</a></li><li class="tabs-title"><a href="#p2">Windows</a></li></ul><div><div class="tabs-panel" id="p1">${MAC}</div><div class="tabs-panel" id="p2">${WINDOWS}</div></div>`,
  ],
  [
    'W3Schools',
    `<div class="tab"><button class="tablinks" onclick="open(event, 'm')">macOS</button><button class="tablinks">Windows</button></div><div class="tabcontent">${MAC}</div><div class="tabcontent" style="display:none">${WINDOWS}</div>`,
  ],
  [
    'Antora',
    `<div class="tabs"><div class="ulist tablist"><ul><li class="tab"><p>macOS</p></li><li class="tab"><p>Windows</p></li></ul></div><div class="tabpanel">${MAC}</div><div class="tabpanel is-hidden" hidden>${WINDOWS}</div></div>`,
  ],
  [
    'buttons that name parts',
    `<div><button data-tab="m">macOS</button><button data-tab="w">Windows</button></div><div data-panel="m">${MAC}</div><div data-panel="w" hidden>${WINDOWS}</div>`,
  ],
])('labels stand before what they show: tabs of %s', (_, html) => {
  const text = read(html)
  for (const [label, words] of [
    ['macOS', 'Use brew.'],
    ['Windows', 'Use choco.'],
  ])
    expect(text).toContain(`**${label}**\n\n${words}`)
  expect(text).not.toContain('-   ')
})

test('a table of contents makes no tabs', () => {
  const parts = '<div id="a"><h2>Alpha</h2><p>One.</p></div><div id="b"><h2>Beta</h2><p>Two.</p></div>'
  expect(read(`<ul><li><a href="#a">Alpha</a></li><li><a href="#b">Beta</a></li></ul>${parts}`)).toBe(
    '## Alpha {#a}\n\nOne.\n\n## Beta {#b}\n\nTwo.',
  )
})

test.each([
  [
    'a button with a target',
    '<button aria-controls="a">How long?</button><div id="a" hidden><p>Two days.</p></div>',
    '#### How long?\n\nTwo days.',
  ],
  [
    'a button in a heading',
    '<h3><button aria-expanded="false">Where?</button></h3><div hidden>In Bern.</div>',
    '### Where?\n\nIn Bern.',
  ],
  [
    'a button of Bootstrap',
    '<button data-bs-target="#c">Details</button><div id="c" style="display:none">In short.</div>',
    'Details\n\nIn short.',
  ],
  [
    'a summary without a question',
    '<details><summary>More</summary>In short.</details>',
    'More\n\nIn short.',
  ],
  [
    'a menu',
    '<button aria-haspopup="true" aria-expanded="false">Language</button><p>In short.</p>',
    'In short.',
  ],
  [
    'a button that copies code',
    '<pre><code>npm i</code><button aria-controls="x">Copy</button></pre>',
    '```\nnpm i\n```',
  ],
])('what unfolds keeps the words that unfold it: %s', (_, html, text) => {
  expect(read(html)).toBe(text)
})

test.each([
  ['a class', '.x { display: none }', 1],
  [
    'an id of an element, in capitals, beside another rule',
    'p { color: red } /* .y */ div#i, .z { DISPLAY : NONE !important }',
    1,
  ],
  ['what is printed', '@media print { .x, #i { display: none } }', 2],
  ['what another rule shows', '.x, #i { display: none } .open .x, body.open #i { display: block }', 2],
])('a sheet of the page hides %s', (_, sheet, shown) => {
  const text = read('<div class="x">Junk.</div><div id="i">Junk.</div>', `<style>${sheet}</style>`)
  expect(text.split('Junk.')).toHaveLength(shown + 1)
})

test('what a script may show stays', () => {
  const script = '<script>document.getElementById("i").style.display = "block"</script>'
  expect(read(`<div id="i">Shown.</div>${script}`, '<style>#i { display: none }</style>')).toBe('Shown.')
})

test.each([
  ['<h2 id="a">Alpha<a class="headerlink" href="#a">Link to this heading</a></h2>', '## Alpha {#a}'],
  ['<h2 id="a">Alpha <a class="anchor" href="#a"><span>Permalink</span></a></h2>', '## Alpha {#a}'],
  ['<h2 id="a">Alpha <a href="#a">Direct link to Alpha</a></h2>', '## Alpha {#a}'],
  ['<h2 id="a"><a class="anchor" href="#a">Alpha</a></h2>', '## Alpha {#a}'],
  [
    '<h3><span id="Z">Zeta</span><span class="mw-editsection">[<a href="/w?action=edit">edit</a>]</span></h3>',
    '### Zeta {#Z}',
  ],
  [
    '<p>Read.</p><div><a href="https://github.com/a/b/edit/main/x.md"><svg></svg>Edit this page</a></div>',
    'Read.',
  ],
  ['<p>Read.</p><p><a href="https://gitlab.com/a/-/blob/main/x.rst">View page source</a></p>', 'Read.'],
  [
    '<p>Read, then <a href="/edit/x">edit this page</a> by hand.</p>',
    'Read, then [edit this page](https://docs.example.com/edit/x) by hand.',
  ],
])('links to a heading or to where a page is changed are no text: %s', (html, text) => {
  expect(read(html)).toBe(text)
})

test.each([
  ['10<sup>-6</sup>, x<sup>n+1</sup>, 10<sup><b>3</b></sup>', '10^-6, x^(n+1), 10^3'],
  ['a<sub><i>i</i></sub> and a<sub>i+1</sub>', 'a_i and a_(i+1)'],
  ['is <span class="math">\\(a_1 * b_{2}\\)</span> here', 'is $a_1 * b_{2}$ here'],
  ['is \\[ \\{x_1\\} \\] here', 'is $\\{x_1\\}$ here'],
])('raised numbers and formulas: %s', (html, text) => {
  expect(read(`<p>${html}</p>`)).toBe(text)
})

test.each([
  [
    'whose corner is no head',
    '<tr><td></td><th>Mon</th><th>Tue</th></tr><tr><th>Opens</th><td>9</td><td>10</td></tr>',
    '| | Mon | Tue |\n| --- | --- | --- |\n| Opens | 9 | 10 |',
  ],
  [
    'whose foot stands first',
    '<tfoot><tr><td>Sum</td><td>9</td></tr></tfoot><thead><tr><th>A</th><th>B</th></tr></thead><tbody><tr><td>x</td><td>9</td></tr></tbody>',
    '| A | B |\n| --- | --- |\n| x | 9 |\n| Sum | 9 |',
  ],
  [
    'of lines of code',
    '<tr><td class="blob-num">1</td><td class="blob-code">a:</td></tr><tr><td class="blob-num">2</td><td class="blob-code">  b: 2</td></tr>',
    '```\na:\n  b: 2\n```',
  ],
])('a table %s', (_, rows, text) => {
  expect(read(`<table>${rows}</table>`)).toBe(text)
})
