/** Pages as documentation generators write them: code, terms, notes, menus in sentences, and links. */
import { expect, test } from 'vitest'
import { htmlToMarkdown, readPage } from '../../../scripts/parley/read/html.mjs'

const ADDRESS = 'https://docs.example.com/guide/backup.html'
const SAID =
  'A backup is a copy of files that you keep in another place, so that nothing is lost when a disk fails.'

/** What is read of a page with this content. */
const read = (content: string): string =>
  readPage(
    `<html><head><title>Backup</title></head><body><main><h1>Backup</h1><p>${SAID}</p>${content}</main></body></html>`,
    ADDRESS,
  ).article.text

test.each([
  [
    'Sphinx',
    '<div class="highlight-bash notranslate"><div class="highlight"><pre><span></span><span class="c1"># Restore one file</span>\n$ keep restore <span class="s1">\'*.o\'</span>\n</pre></div></div>',
    "```bash\n# Restore one file\n$ keep restore '*.o'\n```",
  ],
  [
    'Sphinx, of no language',
    '<div class="highlight-default notranslate"><div class="highlight"><pre><span></span># all\nkeep\n</pre></div></div>',
    '```\n# all\nkeep\n```',
  ],
  [
    'DocBook',
    '<pre class="screen"># keep --all\n# keep --none\n</pre>',
    '```\n# keep --all\n# keep --none\n```',
  ],
  [
    'Docusaurus, where a line ends with an element',
    '<pre class="prism-code language-js"><code><span class="token-line">a()<br></span><span class="token-line">b()<br></span></code></pre>',
    '```js\na()\nb()\n```',
  ],
  [
    'code of one element a line',
    '<pre class="language-sh"><code><div class="line">one</div><div class="line">two</div></code></pre>',
    '```sh\none\ntwo\n```',
  ],
  [
    'Hexo and MkDocs, beside line numbers',
    '<table class="highlighttable"><tr><td class="linenos"><div class="linenodiv"><pre>1\n2</pre></div></td><td class="code"><div><pre><code class="language-yaml">a: 1\nb: 2</code></pre></div></td></tr></table>',
    '```yaml\na: 1\nb: 2\n```',
  ],
  [
    'Doxygen',
    '<div class="fragment"><div class="line"><span class="lineno">1</span>int a;</div><div class="line"><span class="lineno">2</span>int b;</div></div>',
    '```\nint a;\nint b;\n```',
  ],
  ['code that has a fence in it', '<pre><code>```\na\n```</code></pre>', '````\n```\na\n```\n````'],
])('code stays code: %s', (_, html, markdown) => {
  expect(htmlToMarkdown(html)).toBe(markdown)
  expect(read(html)).toContain(markdown)
})

test.each([
  ['a link', '<code><a href="https://x.example/f"><b>Files</b></a></code>', '[`Files`](https://x.example/f)'],
  [
    'a link in its middle',
    '<code><span>Optional</span>[<a href="f.html">Files</a>]</code>',
    '`Optional[Files]`',
  ],
  ['a link within the page', '<code><a href="#f">Files</a></code>', '`Files`'],
  ['marks of its look', '<code>a<em>b</em> <b>c</b> <del>d</del> 2<sup>8</sup></code>', '`ab c d 2^8`'],
])('code in a line is shown as it stands: %s', (_, html, markdown) => {
  expect(htmlToMarkdown(`<p>Takes ${html} alone.</p>`)).toBe(`Takes ${markdown} alone.`)
})

test('a question that unfolds is the heading of its answer', () => {
  expect(
    read(
      '<details><summary>Do you take <b>PayPal</b>?</summary><p>SEPA, Visa and Mastercard. No PayPal.</p></details>' +
        '<details><summary>Details</summary><p>Prices include taxes.</p></details>',
    ),
  ).toContain('#### Do you take PayPal?\n\nSEPA, Visa and Mastercard. No PayPal.\n\nDetails')
})

test('a page that says nothing but its title has no text', () => {
  const page =
    '<html><head><title>Shop</title></head><body><h1>Shop</h1><script>draw()</script></body></html>'
  expect(readPage(page, ADDRESS).article.text).toBe('')
})

test('text that only keeps its lines is read as text', () => {
  const letter = [SAID, 'Keep the copy away from the computer that it was made of.', SAID].join('\n\n')
  expect(htmlToMarkdown(`<pre>${letter}</pre>`)).toBe(letter)
})

test('a term and what it means are one paragraph, several terms together', () => {
  const text = read(
    '<dl><dt>\n <span class="term">-k</span>\n</dt><dt><code>--keep</code></dt><dd><p>Keeps <b>all</b> files.</p><p>Since 2.0.</p></dd>' +
      '<dt>Depth:</dt><dd>How far to go.</dd><dt>Modes</dt><dd><ul><li>fast</li></ul></dd></dl>',
  )
  expect(text).toContain('**-k, `--keep`**: Keeps **all** files.\n\nSince 2.0.')
  expect(text).toContain('**Depth:** How far to go.')
  expect(text).toMatch(/\*\*Modes\*\*:\s+-\s+fast/)
})

test('a note in a table is a paragraph', () => {
  const text = read(
    '<div class="note"><table><tr><td rowspan="2"><img alt="[Note]" src="n.png"></td><th>Note</th></tr><tr><td><p>Disks fail.</p></td></tr></table></div>' +
      '<div class="admonitionblock tip"><table><tr><td class="icon"><div class="title">Tip</div></td><td class="content">Test your copies.</td></tr></table></div>',
  )
  expect(text).toContain('**Note:** Disks fail.')
  expect(text).toContain('**Tip:** Test your copies.')
  expect(text).not.toContain('|')
})

test('words in a sentence stay, whatever they are called', () => {
  const way =
    '<span class="menuchoice"><span class="guimenu">File</span> → <span class="guimenuitem">Back up</span></span>'
  expect(read(`<p>You can begin from the menu bar: ${way}. It asks where the copy goes.</p>`)).toContain(
    'File → Back up',
  )
})

test('links are whole, those within the page are words, and footnotes and links to sources go', () => {
  const text = read(
    '<p>See <a href="../faq.html#disk" title="Questions">questions</a>, <a href="#safe">safe copies</a> and <a href="backup.html#old">old ones</a><a href="#id2">[1]</a>.</p>' +
      '<h2>Safe copies<a class="headerlink" href="#safe">¶</a></h2><dl><dt>keep(<em>lazy</em><em>=False</em>)<a href="_modules/keep.html"><span class="viewcode-link">[source]</span></a></dt><dd>Keeps it.</dd></dl>',
  )
  expect(text).toContain('See [questions](https://docs.example.com/faq.html#disk), safe copies and old ones.')
  expect(text).toContain('## Safe copies {#safe}\n')
  expect(text).toContain('**keep(_lazy__=False_)**: Keeps it.')
})

test('signs are escaped where a line begins with them', () => {
  expect(htmlToMarkdown('<p>- a <b>- b</b></p><p>`x` <b># c</b></p><pre><code>a \\- b</code></pre>')).toBe(
    '\\- a **- b**\n\n\\`x\\` **# c**\n\n```\na \\- b\n```',
  )
})

test('the table of contents of a page is not its text', () => {
  const text = read(
    '<div class="topic"><ul><li><a href="#a">Making copies</a><ul><li><a href="#b">With your hand</a></li></ul></li></ul></div><h2 id="a">Making copies</h2><p>Run it.</p><div id="b"><h3>By hand</h3><p>Copy it.</p></div>',
  )
  expect(text.match(/Making copies/g)).toHaveLength(1)
  expect(text).not.toContain('With your hand')
})

test('a heading that is the title is not read twice, hard spaces or not', () => {
  const page = `<html><head><title>Handbook</title></head><body><div class="section"><h3 class="title">4.6.&nbsp;Crop</h3><p>${SAID}</p><h4>4.6.1.&nbsp;Keys</h4><p>${SAID}</p></div></body></html>`
  const { title, text } = readPage(page, ADDRESS).article
  expect({ title, text }).toEqual({
    title: 'Handbook',
    text: `### 4.6. Crop\n\n${SAID}\n\n#### 4.6.1. Keys\n\n${SAID}`,
  })
  const named = readPage(page.replace('Handbook', '4.6.&nbsp;Crop'), ADDRESS).article
  expect(named).toMatchObject({ title: '4.6. Crop', text: `${SAID}\n\n#### 4.6.1. Keys\n\n${SAID}` })
})

test('a table that holds numbered code in a cell keeps its other cells', () => {
  const code =
    '<div class="syntaxhighlighter"><table><tr><td class="gutter">1</td><td class="code"><pre>GET /users</pre></td></tr></table></div>'
  const text = read(
    `<table><thead><tr><th>Endpoint</th><th>Meaning</th></tr></thead><tbody><tr><td>/users</td><td>Lists the users. ${code}</td></tr><tr><td>/orders</td><td>Orders of 90 days.</td></tr></tbody></table>`,
  )
  for (const said of ['Lists the users.', 'GET /users', 'Orders of 90 days.']) expect(text).toContain(said)
})

test('links that sentences need keep their words, whatever they are marked as', () => {
  const text = read(
    '<p>Write to <a accesskey="c" href="/contact">the support desk</a> or call.</p><p>The limit rises in <a rel="next" href="/v2">version 2</a>.</p>' +
      '<p>Open port <a href="#web">80</a> and <a href="#tls">443</a>.</p><p>Use a disk<sup><a href="#fn1">1</a></sup> or tape<a href="#footnote-2">2</a>.</p>' +
      '<ul class="docnav"><li><a accesskey="p" href="/before">Prev</a></li><li><a accesskey="n" href="/after">Next</a></li></ul>',
  )
  expect(text).toContain('Write to [the support desk](https://docs.example.com/contact) or call.')
  expect(text).toContain('The limit rises in [version 2](https://docs.example.com/v2).')
  expect(text).toContain('Open port 80 and 443.')
  expect(text).toContain('Use a disk or tape.')
  expect(text).not.toMatch(/Prev|Next/)
})

test('a list of links to nowhere on the page is content', () => {
  const text = read(
    '<h2>Errors</h2><ul><li><a href="#e1">E1001 disk is full</a></li><li><a href="#e2">E1002 no network</a></li></ul>' +
      '<ul><li><a href="#">Open the settings</a></li><li><a href="#">Close the settings</a></li></ul>',
  )
  for (const said of ['E1001 disk is full', 'E1002 no network', 'Open the settings'])
    expect(text).toContain(said)
})

test('slides of class fragment are no code', () => {
  expect(htmlToMarkdown('<div class="fragment"><p>First <b>point</b>.</p><ul><li>a</li></ul></div>')).toBe(
    'First **point**.\n\n-   a',
  )
})

test('comments in highlighted code stay', () => {
  const code =
    '<pre class="ruby"><span class="ruby-comment"># File copy.rb, line 487</span>\n<span class="ruby-keyword">def</span> copy</pre>'
  expect(read(`<h2>copy</h2><p>${SAID}</p>${code}`)).toContain('# File copy.rb, line 487\ndef copy')
})

test('a page without a body is read', () => {
  expect(readPage(`<h1>Examples</h1><p>${SAID}</p>`, ADDRESS).article).toMatchObject({
    title: 'Examples',
    text: SAID,
  })
})

const ROWS = '<tr><td rowspan="2">Pro</td><td>Month</td><td>9</td></tr><tr><td>Year</td><td>90</td></tr>'

test.each([
  [
    'spans rows',
    `<tr><th>Plan</th><th>Period</th><th>Price</th></tr>${ROWS}`,
    '| Plan | Period | Price |\n| --- | --- | --- |\n| Pro | Month | 9 |\n| Pro | Year | 90 |',
  ],
  [
    'spans the rest of its part of the table',
    '<tbody><tr><th>A</th><th>B</th></tr></tbody><tbody><tr><td rowspan="0">x</td><td>1</td></tr><tr><td>2</td></tr></tbody><tbody><tr><td>y</td><td>3</td></tr></tbody>',
    '| A | B |\n| --- | --- |\n| x | 1 |\n| x | 2 |\n| y | 3 |',
  ],
  [
    'spans columns of the head',
    '<tr><th colspan="2">Size</th><th>Weight</th></tr><tr><td>1</td><td>2</td><td>3</td></tr>',
    '| Size | Size | Weight |\n| --- | --- | --- |\n| 1 | 2 | 3 |',
  ],
  [
    'is in a head of two rows',
    '<thead><tr><th rowspan="2">Plan</th><th colspan="2">Price</th></tr><tr><th>Month</th><th>Year</th></tr></thead><tr><td>Pro</td><td>9</td><td>90</td></tr>',
    '| Plan | Price Month | Price Year |\n| --- | --- | --- |\n| Pro | 9 | 90 |',
  ],
  [
    'heads a part of the rows',
    '<caption>Fares</caption><tr><th>To</th><th>Fare</th></tr><tr><td colspan="2">Europe</td></tr><tr><td>Bern</td><td>5</td></tr>',
    'Fares\n\n| To | Fare |\n| --- | --- |\n| Europe | |\n| Bern | 5 |',
  ],
  [
    'holds a list, lines and bars',
    '<tr><th>Plan</th><th>Parts</th></tr><tr><td>a<br>b | c</td><td><ul><li>lamp</li><li>rope</li></ul></td></tr>',
    '| Plan | Parts |\n| --- | --- |\n| a b \\| c | lamp; rope |',
  ],
  [
    'is bold in a first row without marks',
    '<tr><td><b>Name</b></td><td><b>Value</b></td></tr><tr><td>Depth</td><td>wide</td></tr>',
    '| Name | Value |\n| --- | --- |\n| Depth | wide |',
  ],
  [
    'is one of names and values',
    '<tr><th>Depth</th><td>12 metres</td></tr><tr><th>Width</th><td>3 metres</td></tr>',
    '| | |\n| --- | --- |\n| Depth | 12 metres |\n| Width | 3 metres |',
  ],
  [
    'holds code',
    '<tr><th>Call</th><th>Code</th></tr><tr><td>list</td><td>Run:<pre>ls -l\nls -a</pre></td></tr>',
    '**Call:** list\n\n**Code:** Run:\n\n```\nls -l\nls -a\n```',
  ],
  [
    'is there for the layout',
    '<tr><td><p>Left</p></td><td><table><tr><th>a</th></tr><tr><td>1</td></tr></table></td></tr>',
    'Left\n\n| a |\n| --- |\n| 1 |',
  ],
])('a cell of a table %s', (_, rows, markdown) => {
  expect(read(`<table>${rows}</table>`)).toContain(`\n\n${markdown}`)
  expect(htmlToMarkdown(`<table>${rows}</table>`)).toBe(markdown)
})

test.each([
  ['10<sup>6</sup> and 1<sup>st</sup> of CO<sub>2</sub>, x<sub>i</sub>', '10^6 and 1st of CO2, x_i'],
  [
    'As <span class="katex"><span class="katex-mathml"><math><semantics><mi>E</mi><annotation encoding="application/x-tex">E_1=m*c*d</annotation></semantics></math></span><span class="katex-html" aria-hidden="true">E=m</span></span> says',
    'As $E_1=m*c*d$ says',
  ],
  [
    'As <span class="mwe-math-element"><span style="display: none;"><math alttext="{\\displaystyle x^{2}}"><mi>x</mi></math></span><img alt="x2" src="x.svg"></span> says',
    'As $x^{2}$ says',
  ],
  ['As <span class="MathJax">E=m</span><script type="math/tex">E=m</script> says', 'As $E=m$ says'],
  ['As <math><mfrac><mi>a</mi><msup><mi>b</mi><mn>2</mn></msup></mfrac></math> says', 'As $a/b^2$ says'],
])('raised numbers and formulas say once what they mean: %s', (html, text) => {
  expect(read(`<p>${html}</p>`)).toContain(text)
})

test('what a page never shows is not read, and what unfolds is, under its label', () => {
  const text = read(
    '<div style="display:none">Junk</div><p hidden>Junk</p><template><p>Junk</p></template><div style="visibility: hidden">Junk</div>' +
      '<button data-target="#m">More</button><div id="m" class="modal" style="display: none">Junk</div>' +
      '<button aria-controls="faq">Cost?</button><div id="faq" style="display: none"><p>It is free.</p></div>' +
      '<div class="tabs"><ul role="tablist"><li role="tab">macOS</li><li role="tab">Windows</li></ul><div><div role="tabpanel"><p>Use brew.</p></div><div role="tabpanel" hidden><p>Use choco.</p></div></div></div>' +
      '<ul role="tablist"><li><button role="tab" data-bs-target="#b">B</button></li><li><a role="tab" href="#a">A</a></li></ul><div class="tab-pane" id="a">Of A.</div><div class="tab-pane" id="b" style="display:none">Of B.</div>' +
      '<div class="tabbed-set"><input><div class="tabbed-labels"><label>Py</label></div><div><div class="tabbed-block"><p>Use pip.</p></div></div></div>',
  )
  expect(text).not.toContain('Junk')
  expect(text).toContain('It is free.')
  expect(text.slice(text.indexOf('**macOS'))).toBe(
    '**macOS**\n\nUse brew.\n\n**Windows**\n\nUse choco.\n\n**A**\n\nOf A.\n\n**B**\n\nOf B.\n\n**Py**\n\nUse pip.',
  )
})

test.each([
  [
    'Chroma',
    '<table class="lntable"><tr><td class="lntd"><pre><code><span class="lnt">1\n</span><span class="lnt">2\n</span></code></pre></td><td class="lntd"><pre><code class="language-yaml"><span class="line">a: 1\n</span><span class="line">  b: 2\n</span></code></pre></td></tr></table>',
    '```yaml\na: 1\n  b: 2\n```',
  ],
  [
    'a table of two blocks',
    '<table><tr><td><pre>1\n2</pre></td><td><pre class="language-yaml">a: 1\n  b: 2</pre></td></tr></table>',
    '```yaml\na: 1\n  b: 2\n```',
  ],
  [
    'a row a line',
    '<table><tr><td class="blob-num" data-line-number="1"></td><td class="blob-code">a: 1</td></tr><tr><td class="blob-num">2</td><td class="blob-code">b: 2</td></tr></table>',
    '```\na: 1\nb: 2\n```',
  ],
  [
    'a number in each line',
    '<pre><button>Copy</button><code class="language-sh"><span class="ln">1</span>npm i\n<span class="line-number">2</span>npm t\n</code></pre><div class="copy-btn">Copy</div>',
    '```sh\nnpm i\nnpm t\n```',
  ],
  [
    'VitePress',
    '<div class="language-js line-numbers-mode"><button class="copy"></button><span class="lang">js</span><pre><code><span class="line">a()</span>\n<span class="line">b()</span></code></pre><div class="line-numbers-wrapper"><span class="line-number">1</span><br><span class="line-number">2</span></div></div>',
    '```js\na()\nb()\n```',
  ],
])('numbers of lines and buttons are no code: %s', (_, html, markdown) => {
  expect(read(html)).toBe(`${SAID}\n\n${markdown}`)
})

test('names of attributes in capitals are read like those in small letters', () => {
  const { article, links } = readPage(
    `<HTML><BODY><MAIN><H1 ID="top">Old</H1><P>${SAID} <A HREF="next.html" TARGET=_top>On</A> goes it.</P><P HIDDEN="hidden">Not shown.</P></MAIN></BODY></HTML>`,
    ADDRESS,
  )
  expect(links).toEqual(['https://docs.example.com/guide/next.html'])
  expect(article.text).toContain('[On](https://docs.example.com/guide/next.html) goes it.')
  expect(article.text).not.toContain('Not shown')
})

/** A section as manuals have them, long enough to be a page of its own. */
const section = (id: string, more: string) => `<h2 id="${id}">${id}</h2><p>${SAID}</p><p>${SAID}</p>${more}`

test('nothing of a marked main part is dropped: a section of code, and what a class calls a footer', () => {
  const said = read(
    `${section('one', '')}<section id="pager"><h2>Pager</h2><p>Example:</p><pre>page(1)</pre></section><div class="footer comment">Kept.</div>${section('two', '')}`,
  )
  for (const part of ['## Pager', 'page(1)', 'Kept.']) expect(said).toContain(part)
})

test('without a marked main part, headings of any id and lists of links stay, and what stands beside the content goes', () => {
  const { text, title } = readPage(
    `<html><body><header><a href="/">Home</a> Site</header><div class="page"><aside>Subscribe to our letters.</aside><div class="content"><h1>Options</h1>${section('extra_css', '<ul><li><a href="a.html">a</a></li><li><a href="b.html">b</a></li><li><a href="c.html">c</a></li><li><a href="d.html">d</a></li></ul>')}${section('related', '')}</div></div><footer>Made by us.</footer></body></html>`,
    ADDRESS,
  ).article
  expect(title).toBe('Options')
  expect(text).toMatch(
    /^## extra_css \{#extra_css\}[\s\S]*\[d\]\(https:\/\/docs.example.com\/guide\/d.html\)[\s\S]*## related/,
  )
  expect(text).not.toMatch(/Home|letters|Made by/)
})

test('a page within a form is read', () => {
  const form = `<html><body><form action="x"><div><h1>Old</h1>${section('a', '')}</div></form></body></html>`
  expect(readPage(form, ADDRESS).article.text).toContain(SAID)
})

test('names in angle brackets stay, and make no element', () => {
  expect(
    read('<p>Look in <cite>~/&lt;user&gt;/cache</cite> if 1 &lt; 2, and at a = &lt;factory&gt;.</p>'),
  ).toMatch(/Look in ~\/\\<user>\/cache if 1 < 2, and at a = \\<factory>\.$/)
})

test('a page that Sphinx has no name for goes by its path', () => {
  const page = `<html><head><title>&lt;no title&gt; &#8212; Black 23.1</title></head><body><div role="main"><p>${SAID}</p></div></body></html>`
  expect(readPage(page, ADDRESS).article.title).toBe('Backup')
})

test('links above the first paragraph are a menu, and links that a sentence leads to are not', () => {
  const links = ['a', 'b', 'c', 'd'].map((name) => `<li><a href="${name}.html">${name}</a></li>`).join('')
  const menu = `<ul>${links.replaceAll('.html', '-menu.html')}</ul>`
  const { text } = readPage(
    `<html><body><main><div><div>${menu}</div></div><p>See also:</p><ul>${links}</ul><section><div><p>${SAID}</p></div></section><div><p>Of these:</p>${menu.replaceAll('menu', 'later')}</div></main></body></html>`,
    ADDRESS,
  ).article
  expect(text).not.toContain('menu')
  expect(text).toMatch(/guide\/d\.html/)
  expect(text).toMatch(/d-later\.html/)
  // An index has no paragraph.
  expect(
    readPage(`<html><body><main><h1>Index</h1>${menu.repeat(9)}</main></body></html>`, ADDRESS).article.text,
  ).toContain('menu')
})

test('a table that is all of a page stays one, and one that lays out a page does not', () => {
  const rows = `<tr><td>Depth</td><td>12 metres</td></tr><tr><td>Width</td><td>${SAID}</td></tr>`
  const table = (inner: string) =>
    readPage(`<html><body><table>${inner}</table></body></html>`, ADDRESS).article.text
  expect(table(rows)).toMatch(/\| Depth *\| 12 metres *\|/)
  expect(table(`<tr><td>Menu</td><td><h1>Old</h1>${section('a', '')}</td></tr>`)).toMatch(/^## a/)
})

test.each([
  [
    'og:site_name',
    '<meta property="og:site_name" content=" A &amp;  B "><title>Home</title>',
    { name: 'A & B' },
  ],
  ['application-name', '<meta name="application-name" content="App"><title>Home</title>', { name: 'App' }],
  ['the title, shortened', `<title>${'\u{1f600}'.repeat(70)}</title>`, { name: '\u{1f600}'.repeat(60) }],
  [
    'the colour of light pages',
    '<meta name="theme-color" media="(prefers-color-scheme: dark)" content="#000"><meta name="theme-color" content=" rgb(1 2 3 / 50%) ">',
    { color: 'rgb(1 2 3 / 50%)' },
  ],
  ['no colour that is none', '<meta name="theme-color" content="red;background:url(//a.example)">', {}],
  ['nothing', '', {}],
])('a page says of its site: %s', (_, head, site) => {
  expect(readPage(`<html><head>${head}</head><body><p>${SAID}</p></body></html>`, ADDRESS).site).toEqual(site)
})
