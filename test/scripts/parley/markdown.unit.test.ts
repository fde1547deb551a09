import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parsers } from '../../../scripts/parley/read/front-matter.mjs'
import { readMarkdown } from '../../../scripts/parley/read/markdown.mjs'

const read = (markdown: string, path = 'x/keys.md') => {
  const content = readMarkdown(markdown, path, parsers)
  if (!('article' in content)) throw new Error('No article')
  return content.article
}

const BADGE = '[![npm](https://img.shields.io/npm/v/x)](https://npm.example/x)'

test.each([
  ['a badge', `my-lib ${BADGE}\n======\n\nText.`, '# my-lib\n\nText.'],
  ['HTML', 'The <b>quick</b> start\n===', '# The quick start'],
  ['HTML of the second level', 'B <i>x</i>\n---', '## B x'],
  ['a logo', '![Logo](logo.png) Project\n===', '# Project'],
  ['two lines', 'One line\nand another\n===', '# One line and another'],
  ['two lines in a quote', '> One line\n> and another\n> ===', '> # One line and another'],
  ['a sign at its end', 'Use #\n===', '# Use \\#'],
  ['a sign at its beginning', '#tags\n===', '# #tags'],
  ['an address', 'Ask <b>a@b.example</b> or www.b.example\n===', '# Ask a@b.example or www.b.example'],
  ['a break', 'One<br>two\\\nthree\r\n---\r\n', '## One two three'],
])('an underlined heading with %s keeps its words', (_, page, text) => {
  expect(read(page).text).toBe(text)
})

test.each([
  ['a table', '| a |\n| - |\n| One.<br>Two.<br/>Three |', 'One. Two. Three'],
  ['a text', 'x<br>y', 'x y'],
  ['bold', '**Bold<br>two**', '**Bold two**'],
  ['a link', '[One<br>two](u)', '[One two](u)'],
  ['a list in a table', '| a |\n| - |\n| <ul><li>one</li><li>two<li>three</ul> |', 'one; two; three'],
  ['keys', 'Press <kbd>Ctrl</kbd><kbd>C</kbd>', 'Press Ctrl C'],
])('tags in %s leave no words glued together', (_, page, text) => {
  expect(read(page).text).toMatch(text)
})

test.each([
  ['a power', '10<sup>6</sup> and (a)<sup>n+1</sup>', '10^6 and (a)^(n+1)'],
  ['an ordinal', 'The 1<sup>st</sup> key', 'The 1st key'],
  ['indices', 'CO<sub>2</sub>, x<sub>i</sub>, 10<sub>2</sub>', 'CO2, x_i, 10_2'],
  [
    'a power in a table of HTML',
    '<table><tr><th>10<sup>6</sup></th><th>size</th></tr></table>',
    '| 10^6 | size |\n| --- | --- |',
  ],
  [
    'an address',
    'See <a href="https://x.example/pay">the payment page</a>.',
    'See [the payment page](https://x.example/pay).',
  ],
  [
    'an address in a block',
    '<p>\nSee <a href="https://x.example/pay">\n the page\n</a>.</p>',
    'See  [the page](https://x.example/pay) .',
  ],
  [
    'the address of a link around a heading',
    '<a href="https://x.example">\n<h2>Home</h2></a>\n<b>\n<p>Text</p></b>',
    '## Home\n\n<https://x.example>\n\nText',
  ],
  ['an address in brackets', '<a href="/a(b)">page</a>', '[page](</a(b)>)'],
  [
    'the words of a picture',
    'See <img src="a.png" alt="the [big] picture"> here',
    'See the \\[big\\] picture here',
  ],
  ['a picture to click on', '[![The settings page](s.png)](s.png)', '[![The settings page](s.png)](s.png)'],
  [
    'a picture of badges',
    '![The desk](https://e.example/badge/photo.png)',
    '![The desk](https://e.example/badge/photo.png)',
  ],
  [
    'a picture in a heading that says more',
    '# ![A plan of the house](p.png) Home',
    '# ![A plan of the house](p.png) Home',
  ],
  ['what only looks like a tag', 'If x<a and b>c holds', 'If x<a and b>c holds'],
  ['a tag in a sentence', 'Type <b then enter> now', 'Type <b then enter> now'],
  ['an element that is named', 'Copy <source> to <section> in <b>', 'Copy <source> to <section> in <b>'],
  [
    'what stands for something in HTML',
    '<table><tr><th>Use <your-key></th><th>size</th></tr></table>',
    '| Use <your-key> | size |\n| --- | --- |',
  ],
  ['a comment without an end', '<!-- open\n\nText.', '<!-- open\n\nText.'],
  ['what would be a heading without its tag', '<b># x</b> y', '<b># x</b> y'],
  ['code', '<div></div>\n\n```\na\n\n\n\nb\n  \n```', '```\na\n\n\n\nb\n  \n```'],
  ['code at the beginning', '    code\n\n<br>\n', '    code'],
  ['code of HTML', '<pre>\na\n  b\n</pre>', '```\na\n  b\n```'],
  ['signs of code', 'Run <code>a_b --c</code>', 'Run `a_b --c`'],
  [
    'Markdown in HTML',
    '<details><summary>Q?</summary>\nAnswer **bold** [link](u)\n- a\n- b\n</details>',
    'Q?\n\nAnswer **bold** [link](u)\n- a\n- b',
  ],
  ['lines in a quote', '> <div>a\n> b</div>', '> a\n> b'],
  ['lines in a list', '- one\n\n  <div>a\n  b</div>', '- one\n\n  a\n  b'],
  ['an aside', 'a\n\n<aside class="tip">\n\tb\n</aside>\n\n<nav>c</nav>', 'a\n\nb\n\nc'],
  [
    'buttons and templates',
    'a\n\n<template v-else>\n<button x-on:click="os = \'mac\'">b</button>\n</template>',
    'a\n\nb',
  ],
  [
    'character references',
    'a&mdash;b&nbsp;c &amp; d&#8230; `&mdash;`\n\n## &quot;e&quot; &lt;id&gt; &amp;lt; &nope;',
    'a\u2014b c & d\u2026 `&mdash;`\n\n## "e" &lt;id&gt; &amp;lt; &nope;',
  ],
  ['what is said to be Markdown', '<div class="grid" markdown>\n\n- a\n\n</div>', '- a'],
  ['an address of a template', 'See <a href="{{ \'/x\' | url }}">b</a>.', 'See b.'],
  [
    'references',
    '# [A] b\n\nSee [the <i>b</i>][c], [c][] and [nothing].\n\n- ![d][e]\n- [A], `[A]`\n\n| x |\n| - |\n| [A] |\n\n[a]: /a\n  [c]: </c d> "C"\n[e]: /e.png\n\nEnd.[^1]\n\n[^1]: Note.',
    '# [A](/a) b\n\nSee [the b](</c d>), [c](</c d>) and [nothing].\n\n- ![d](/e.png)\n- [A](/a), `[A]`\n\n| x |\n| - |\n| [A](/a) |\n\nEnd.[^1]\n\n[^1]: Note.',
  ],
  ['an aside of Markdown', 'a\n\n<aside>\n\n`b`\n\n</aside>', 'a\n\n`b`'],
  ['an anchor that is closed at once', '- **a** <span id="a"/> is b\n- <a name="c"/>c', '- **a**  is b\n- c'],
  [
    'what only looks like a heading',
    '<div>\n<div><i># a</i></div>\n<div># b</div>\n</div>',
    '\\# a\n\n\\# b',
  ],
  ['a heading', '<div><h2>a</h2># b</div>', '## a\n\n\\# b'],
])('HTML in Markdown keeps %s', (_, page, text) => {
  expect(read(page).text).toBe(text)
})

test.each([
  BADGE,
  '<a href="https://npm.example/x"><img src="https://img.shields.io/npm/v/x" alt="npm"></a>',
  '<p align="center">\n  <a href="/x"><img src="https://badge.fury.io/js/x.svg" alt="npm"></a>\n</p>',
  '[![CI][ci-badge]](https://ci.example)\n\n[ci-badge]: https://github.com/o/r/actions/workflows/ci.yml/badge.svg',
  '![cover](https://codecov.io/gh/o/r/branch/main/graph/badge.svg)',
])('badges go: %s', (badge) => {
  const { text } = read(`Before\n\n${badge}\n\nAfter`)
  expect(text.replace(/^\[ci-badge\]:.*\n+/m, '')).toBe('Before\n\nAfter')
})

test.each([
  ['<h1 align="center"><img alt="Logo"><br>Fastify Thing</h1>', 'Fastify Thing'],
  ['<h1>\n<img alt="A plan of the house" src="a.png">Home</h1>', 'Home'],
  [`# ${BADGE}\n\n# Keys`, 'Keys'],
  ['# ![Keys](keys.svg)', 'Keys'],
  ['<div>\n\n```\n# no\n```\n\n</div>\n\nThe <i>keys</i>\n---', 'The keys'],
])('a page is called by its first heading with words: %s', (page, title) => {
  expect(read(page).title).toBe(title)
})

test('pages and runs of lines that take long to parse stay as they are, and are called by their heading', () => {
  for (const long of [
    '| a |\n| - |\n'.padEnd(70_000, '| one<br>two |\n'),
    'Some *em* <b>and</b> [link](u) words. '.repeat(2_000),
    'A <b>short</b> paragraph.\n\n'.repeat(50_000),
  ]) {
    expect(read(`# Keys\n\n${long}`)).toEqual({ title: 'Keys', text: `# Keys\n\n${long}`.trimEnd() })
  }
})

const word = fc.stringMatching(/^[a-z]{2,6}$/).map((letters) => `zq${letters}`)
const words = fc.array(word, { minLength: 1, maxLength: 4 }).map((each) => each.join(' '))
const CODE = '```js\nif (a<b> c) <br>\n\n\n\n   ![x](https://img.shields.io/x)\n```'
const blocks = fc.oneof(
  words.map((text) => `# ${text}`),
  words.map((text) => `${text}\n---`),
  fc.tuple(words, words).map(([a, b]) => `${a}\n${b} ${BADGE}\n===`),
  words.map((text) => `## <img alt="" src="x.png"> ${text} <b>${text}</b>`),
  fc.tuple(words, words).map(([a, b]) => `- ${a}\n- <b>${b}</b>\n\n  <div>${a}<br>${b}</div>\n`),
  fc.tuple(words, words).map(([a, b]) => `1. ${a}<br/>${b}\n   > ${b} <i>${a}`),
  fc.constant(CODE),
  fc
    .tuple(words, words)
    .map(([a, b]) => `| ${a} | ${b} |\n| --- | - |\n| ${b}<br>${a} | <ul><li>${a}<li>${b}</ul> |`),
  fc.tuple(words, words).map(([a, b]) => `<table>\n<tr><th>${a}</th></tr>\n<tr><td>${b}</td></tr></table>`),
  fc
    .tuple(words, words)
    .map(([a, b]) => `<details><summary>${a}</summary>\n- ${b}\n  - **${a}**\n\n</details>`),
  fc.tuple(words, words).map(([a, b]) => `<ul>\n<li>${a}</li><li>${b} <your-key></li></ul>`),
  fc
    .tuple(words, words)
    .map(([a, b]) => `<div>\n\n${a} <${b}> <a href="https://x.example">${b}</a>\n${BADGE}\n</div> ${a}`),
  fc.tuple(words, words).map(([a, b]) => `<h2>${a}<br>${b}</h2>\n<p>${b}\n${a}`),
  fc
    .tuple(words, words)
    .map(([a, b]) => `${a}<a and b>${b} **${a}<br>${b}** [${b}](https://x.example) <b> ${a}`),
  fc.tuple(words, words).map(([a, b]) => `<!-- -->\n${a}\n<pre>${b}</pre> <unknown>${a}</unknown>`),
  fc.constantFrom(
    '---',
    BADGE,
    `${BADGE} ${BADGE}`,
    '<br>',
    '</div>',
    '<p align="center">',
    '> <hr>',
    '<!-- -->',
  ),
)

test('no word is lost, glued to another or out of its order, and code is the same to the byte', () => {
  const wordsIn = (text: string) => text.match(/\bzq[a-z]+\b/g) ?? []
  fc.assert(
    fc.property(
      fc.array(fc.tuple(blocks, fc.constantFrom('\n\n', '\n\n', '\n', '\n\n\n')), { maxLength: 8 }),
      fc.boolean(),
      (parts, isWindows) => {
        const page = parts.flat().join('')
        const source = isWindows ? page.replaceAll('\n', '\r\n') : page
        const { text } = read(source)
        expect(wordsIn(text)).toEqual(wordsIn(source))
        const code = isWindows ? CODE.replaceAll('\n', '\r\n') : CODE
        // Code that no line above or below touches is code wherever it stands.
        const isApart = parts.every(
          ([block, gap], at) => block !== CODE || (gap !== '\n' && parts[at - 1]?.[1] !== '\n'),
        )
        if (isApart) expect(text.split(code).length).toBe(source.split(code).length)
      },
    ),
    { numRuns: 300 },
  )
})

test.each([
  ['TOML', '+++\ntitle = "Keys"\ndate = 2023-04-20\n[taxonomies]\ntags = ["a"]\n+++\n\nText.', 'Keys', ['a']],
  ['JSON', '{\n  "title": "Keys",\n  "tags": ["a"]\n}\n\nText.', 'Keys', ['a']],
  [
    'YAML with a colon in a value',
    '---\nlayout: doc\ntitle: Guide: First keys\n---\n\nText.',
    'Guide: First keys',
    undefined,
  ],
  [
    'YAML with a template',
    '---\nurl: {{ site.x }}\ntitle: "Keys"\nitems:\n  - a\n---\nText.',
    'Keys',
    undefined,
  ],
  ['YAML with a number', '---\ntitle: 2024\n---\nText.', '2024', undefined],
  [
    'lists',
    '---\ntitle: Keys # of an API\ntags:\n  - a b\n  - "c: d"\nkeywords: [e, \'f\']\nsidebar:\n  title: Other\n---\n\nText.',
    'Keys',
    ['a b', 'c: d', 'e', 'f'],
  ],
])('front matter is read, with parsers and without: %s', (_, page, title, tags) => {
  for (const own of [parsers, undefined])
    expect(readMarkdown(page, 'x/keys.md', own)).toEqual({
      article: { title, text: 'Text.', ...(tags && { tags }) },
    })
})

test('a folded description is read, with parsers and without', () => {
  const page = '---\ntitle: "Keys"\ndescription: >-\n  Who may\n  do what.\n---\n\nText.'
  for (const own of [parsers, undefined])
    expect(readMarkdown(page, 'x/keys.md', own)).toEqual({
      article: { title: 'Keys', text: 'Who may do what.\n\nText.' },
    })
})

test.each([
  [
    'what is no place',
    '# Setup {: #set-up}\n\n## More { #more .wide }\n\n## Less {.wide}',
    '# Setup {#set-up}\n\n## More {#more}\n\n## Less',
  ],
  ['a comment around a place', '# Setup {/* #set-up */}', '# Setup {#set-up}'],
  [
    'a component, with the words in its attributes',
    '<Steps>\n<Step title="Plug in">\nUse the red cable.\n</Step>\n</Steps>\n\n<ParamField query="limit" type="int" />',
    '**Plug in**\n\nUse the red cable.\n\n**limit, int**',
  ],
  [
    'a note, with its kind',
    '<Note type="warning">\nIt is hot.\n</Note>\n\n<Warning>\nSo is this.\n</Warning>\n\n<Callout type="danger" title="Fire">\nRun.\n</Callout>\n\n<Callout type="outline">\nA box.\n</Callout>',
    '**Warning**\n\nIt is hot.\n\n**Warning**\n\nSo is this.\n\n**Fire**\n\nRun.\n\nA box.',
  ],
  [
    'an indent, code in it too',
    '<Tabs>\n  <TabItem label="X">\n    Inner.\n\n    ```sh\n    a\n      b\n    ```\n  </TabItem>\n</Tabs>',
    '**X**\n\nInner.\n\n```sh\na\n  b\n```',
  ],
  [
    'an attribute of code',
    '<Card items={["a", {b: 1}]} title={\'Home\'} go={() => f({a: 1})}>In.</Card> <br/><div style={{color: "red"}}>red</div>',
    '**Home**\nIn.   red',
  ],
  [
    'a table of objects',
    "<PropertiesTable\n  content={[\n    {\n      name: 'model',\n      type: 'Model<string>',\n      isRequired: true,\n      description: 'The model to use. Example: `small`, or ' + \"one's own.\", // of many\n      icon: <Icon />,\n    },\n    {\n      name: 'tools',\n      properties: [{ type: 'Tool', parameters: [{ name: 'run', isOptional: true, description: <>It <b>runs</b>.</> }] }],\n      make: (a) => ({ a, b: [1] }),\n    },\n  ]}\n/>\n\nAfter.",
    "- **model** (type: Model\\<string>, required): The model to use. Example: `small`, or one's own.\n- **tools**\n  - **Tool**\n    - **run** (optional): It runs.\n\nAfter.",
  ],
  [
    'cards with addresses, and what is no text',
    "<Cards width={3} colors={[1, 2]} style={{ margin: 1 }} items={[{ title: 'Start', href: '/start', description: 'Begin here.' }]} />",
    '- [Start](/start): Begin here.',
  ],
  [
    'names of tabs in the component around them',
    "<Tabs items={['npm', 'yarn']}>\n  <Tab>\n    Use npm.\n  </Tab>\n  <Tab>\n    Use yarn.\n  </Tab>\n</Tabs>\n\n<Features items={['Small', 'Fast']} />",
    '**npm**\n\nUse npm.\n\n**yarn**\n\nUse yarn.\n\n- Small\n- Fast',
  ],
  [
    'code in an attribute',
    '<Snippet text={`import { tool } from "ai"`} dark />\n\n<Install packages="ai zod" />',
    '**import { tool } from "ai"**\n\n**ai zod**',
  ],
  [
    'signs in a table',
    '| a | b |\n| - | - |\n| <Check /> | <Cross /> by hand |',
    '| a | b |\n| - | - |\n| Check | Cross by hand |',
  ],
  [
    'a component in a list',
    '1. One\n\n   <Tab label="X">\n     Inner.\n   </Tab>\n\n2. Two',
    /1\. One\n\n {3}\*\*X\*\*\n\n {3}Inner\.\n\n2\. Two/,
  ],
  [
    'literals',
    'It{" "}stops {"<name>"} {`make all`} {42}{/* note */} {value}.',
    'It stops <name> make all 42 .',
  ],
  [
    'components in a line',
    '<Tabs><Tab title="A">In a.</Tab><Tab title="B">In b.</Tab></Tabs>\n\n<img src={a} alt="The plan" />',
    '**A**\nIn a. **B** In b.\n\nThe plan',
  ],
  [
    'tabs that go by their values',
    '<Tabs values={[{ label: "macOS", value: "m" }, { label: "Windows", value: "w" }]}>\n<TabItem value="w">Use choco.</TabItem>\n<TabItem value="m">Use brew.</TabItem>\n</Tabs>\n\n<Tabs>\n<TabItem value="npm">Run it.</TabItem>\n</Tabs>\n\nIf 1 < 2 and 3 > 2.',
    '**Windows**\nUse choco.\n**macOS**\nUse brew.\n\n**npm**\nRun it.\n\nIf 1 < 2 and 3 > 2.',
  ],
  [
    'what MDX refuses',
    'If a < b, see <http://x.example> {.\n\n<!-- note -->\n\nAfter {#x.',
    'If a < b, see <http://x.example> {.\n\nAfter {#x.',
  ],
  [
    'modules',
    'import A, { b } from "./a"\nimport {\n  c,\n} from "c"\nexport const meta = {\n\n  a: 1,\n}\n\nWe import the data.',
    'We import the data.',
  ],
  [
    'code',
    '`<Tab>` and `{x}`\n\n```jsx\nimport A from "a"\n<Tab>{x}</Tab>\n```',
    '`<Tab>` and `{x}`\n\n```jsx\nimport A from "a"\n<Tab>{x}</Tab>\n```',
  ],
])('MDX loses %s', (_, page, text) => {
  const made = read(page, 'x/keys.mdx').text
  if (typeof text === 'string') expect(made).toBe(text)
  else expect(made).toMatch(text)
  if (!page.includes('{')) expect(read(`import A from 'a'\n\n${page}`).text).toBe(made)
})

test.each([
  [
    'of scripts and styles',
    '<script setup lang="ts">\nimport a from "a"\n\nconst b = 0\n</script>\n\nText.\n\n<style module>\n.a { b: c }\n\n.d {}\n</style>',
    'Text.',
  ],
  [
    'of notes',
    ':::tip[Mind]\n\nThe gap.\n\n:::\n\n::: warning\nHot.\n:::\n\n!!! note "Read"\n    Words.\n\n    More.\n\nAfter.\n\n> [!TIP]\n> Said.\n\n```{warning} Deep\n:class: x\nWater\n```',
    '**Mind**\n\nThe gap.\n\n**Warning**\n\nHot.\n\n**Read**\n\nWords.\n\nMore.\n\nAfter.\n\n> **Tip**\n> Said.\n\n**Deep**\n\nWater',
  ],
  [
    'of tabs',
    '=== "Py"\n\n    ```py\n    x\n    ```\n\n=== "JS"\n\n    Use npm.',
    '**Py**\n\n```py\nx\n```\n\n**JS**\n\nUse npm.',
  ],
  [
    'of Hugo',
    '{{< callout type="warning" >}}\nCut it.\n{{< /callout >}}\n\n{{% tab "Windows" %}}\nRun it.\n{{% /tab %}}\n\nSee [x]({{< ref "/a.md" >}}). {{/* note */}}\n\n{{< highlight go >}}\na()\n{{< /highlight >}}',
    'Cut it.\n\n**Windows** \nRun it.\n\nSee [x](/a.md). \n\n```go\na()\n```',
  ],
  [
    'of Jekyll',
    'A{% comment %}note{% endcomment %}\n\n{% highlight sh %}\napt install\n{% endhighlight %}\n{: .code}\n\n{% if x %}B{% endif %} {{ site.name }}',
    'A\n\n```sh\napt install\n```\n\nB ',
  ],
  [
    'of code between templates',
    '{{< code-toggle config=x />}}\n\nText.\n\n{{< code-toggle file=hugo >}}\nbuild = 1\n[a]\n{{< /code-toggle >}}\n\n{% codeblock lang:js A %}\na()\n{% endcodeblock %}\n\n{% code title="a.ts" %}\n```ts\nb\n```\n{% endcode %}',
    'Text.\n\n```\nbuild = 1\n[a]\n```\n\n```js\na()\n```\n\n**a.ts** \n```ts\nb\n```',
  ],
  [
    'but no text',
    'Use <Name>, {name}, {{ value }} and `{% if %}`.\n\n```\n{{< tab >}}\n:::tip\n```',
    'Use <Name>, {name}, {{ value }} and `{% if %}`.\n\n```\n{{< tab >}}\n:::tip\n```',
  ],
  [
    'of tabs of code and of colons in braces',
    '::: code-group\n```sh [npm]\nnpm i\n```\n:::\n\n::::{tab-set}\n:::{tab-item} macOS\nUse brew.\n:::\n::::\n\n```js title="a.js" {1}\nx\n```\n\n<<< @/snippets/x.js\n\nEnd.',
    '**npm**\n\n```sh\nnpm i\n```\n\n**macOS**\n\nUse brew.\n\n**a.js**\n\n```js {1}\nx\n```\n\nEnd.',
  ],
  [
    'of Liquid, but not what it is told to leave',
    '* TOC\n{:toc}\n\n{% assign x = 1 %}{% capture y %}Gone{% endcapture %}{% include note.html content="Mind the gap" %}\n\nOf {{ p.title }}: {% raw %}{{ name }}, `{{ a }}`{% endraw %}.',
    '**Mind the gap** \n\nOf : {{ name }}, `{{ a }}`.',
  ],
  [
    'of what is hidden, with Markdown in it',
    'A.\n\n<div class="x" style="display: none">\n\n# Gone\n\n<div>Gone</div>\n\n</div>\n\n<p hidden>Gone</p>\n\n`<p hidden>kept</p>`\n\n<template>\nB\n</template>',
    'A.\n\n`<p hidden>kept</p>`\n\nB',
  ],
  ['of front matter that ends with dots', '---\ntitle: A\n...\n\nB.', 'B.'],
])('Markdown loses the marks %s', (_, page, text) => {
  expect(read(page).text).toBe(text.trimEnd())
})
