/** Pages become passages: where they are cut, what stays together, and the place that each is found at. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { addContent, asDocuments, newRead, tablesAsPages } from '../../../scripts/parley/import/documents.mjs'
import { passagesOf, withoutPlaces } from '../../../scripts/parley/import/passages.mjs'
import { readContent } from '../../../scripts/parley/read/index.mjs'

const LONGEST = 1_800
const said = (about: string, sentences = 12) =>
  Array.from(
    { length: sentences },
    (_, n) => `Sentence ${n} tells what ${about} is good for, and when.`,
  ).join(' ')

const documentsOf = async (name: string, text: string, options = {}) => {
  const read = newRead()
  addContent(
    read,
    { id: `docs/${name}`, name, source: 'docs' },
    await readContent(new TextEncoder().encode(text), name),
  )
  return (await asDocuments(read, { embedding: 'local/hash', ...options })).documents
}

test('a passage has its page, its headings and the address of its place', async () => {
  const text = `# Server\n\n${said('the server')}\n\n## Options\n\n${said('an option')}\n\n### \`bodyLimit\` {#limit}\n\n${said('the limit')}\n\n### bodyLimit\n\n${said('the other limit')}\n`
  const documents = await documentsOf('server.md', text, { baseUrl: 'https://x.example/docs/' })
  expect(
    documents.map(({ id, heading, url, parley_page, parley_part }) => [
      id,
      heading,
      url,
      parley_page,
      parley_part,
    ]),
  ).toEqual([
    ['docs/server.md', 'Server', 'https://x.example/docs/server', 'docs/server.md', 1],
    [
      'docs/server.md~options',
      'Server > Options',
      'https://x.example/docs/server#options',
      'docs/server.md',
      2,
    ],
    [
      'docs/server.md~limit',
      'Server > Options > bodyLimit',
      'https://x.example/docs/server#limit',
      'docs/server.md',
      3,
    ],
    [
      'docs/server.md~bodylimit-1',
      'Server > Options > bodyLimit',
      'https://x.example/docs/server#bodylimit-1',
      'docs/server.md',
      4,
    ],
  ])
  expect(documents.every(({ title }) => title === 'Server')).toBe(true)
  expect(documents.map(({ text }) => text).join('\n')).not.toMatch(/\{#|^#/m)
  const [whole, ...others] = await documentsOf('server.md', text, { whole: true })
  expect(others).toEqual([])
  expect(whole?.text).toContain('### `bodyLimit`\n')
  expect(whole).not.toHaveProperty('heading')
})

test.each([
  ['its own', `<h2 id="keys">Keys</h2>`],
  ['that of a link in it', `<h2>Keys<a class="headerlink" href="#keys">¶</a></h2>`],
  ['that of the section it begins', `<section id="keys"><h2>Keys</h2></section>`],
  ['that of a name before it', `<a name="keys"></a><h2>Keys</h2>`],
])('a heading of a page has the place: %s', async (_, heading) => {
  const page = `<html><head><title>Door</title></head><body><main><h1>Door</h1><p>${said('a door')}</p>${heading}<p>${said('a key')}</p></main></body></html>`
  const documents = await documentsOf('door.html', page, { baseUrl: 'https://x.example' })
  expect(documents.map(({ heading, url }) => [heading, url])).toEqual([
    ['Door', 'https://x.example/door'],
    ['Door > Keys', 'https://x.example/door#keys'],
  ])
})

test('small sections stay with the one above them, and an introduction with what it introduces', () => {
  const faq = Array.from({ length: 8 }, (_, n) => `### Question ${n}?\n\nYes.\n`).join('\n')
  const passages = passagesOf(`Read me.\n\n# Hours\n\n## Bank\n\n${faq}\n## Shop\n\n${said('a shop')}\n`)
  expect(passages.map(({ path }) => path.join(' > '))).toEqual(['Hours > Bank', 'Hours > Shop'])
  expect(passages[0]?.text).toMatch(/^Read me\.\n\n### Question 0\?\n\nYes\./)
  expect(passagesOf(`# A\n\nOne.\n\n## B\n\nTwo.\n\n# C\n\nThree.`)).toEqual([
    { path: [], text: '# A\n\nOne.\n\n## B\n\nTwo.\n\n# C\n\nThree.' },
  ])
  expect(passagesOf('')).toEqual([])
})

test('long sections are cut between blocks that belong together', () => {
  const rows = Array.from({ length: 120 }, (_, n) => `| option${n} | what option ${n} does | ${n} |`)
  const table = `| name | meaning | default |\n| --- | --- | --- |\n${rows.join('\n')}`
  const tables = passagesOf(`## Options\n\nThese are all options:\n\n${table}`)
  expect(tables.length).toBeGreaterThan(2)
  for (const { text } of tables)
    expect(text).toContain('| name | meaning | default |\n| --- | --- | --- |\n| option')
  expect(tables[0]?.text).toMatch(/^These are all options:/)
  for (const row of rows) expect(tables.filter(({ text }) => text.includes(row))).toHaveLength(1)

  const steps = passagesOf(
    `${said('a start', 25)}\n\nRun it like this:\n\n\`\`\`sh\n# not a heading\nnpm start\n\`\`\`\n\n${said('an end', 25)}\n\nWhat you need:\n\n- a cup\n- a spoon\n\n${said('tea', 20)}`,
  )
  expect(
    steps.filter(({ text }) => text.includes('Run it like this:\n\n```sh\n# not a heading\nnpm start\n```')),
  ).toHaveLength(1)
  expect(steps.filter(({ text }) => text.includes('What you need:\n\n- a cup\n- a spoon'))).toHaveLength(1)

  const code = Array.from({ length: 200 }, (_, n) => `const value${n} = ${n}`)
  for (const { text } of passagesOf(`\`\`\`js\n${code.join('\n')}\n\`\`\``))
    expect(text).toMatch(/^```js\nconst [\s\S]*\n```$/)
})

test('a passage of a PDF has the page that it begins on', () => {
  const pages = [1, 2, 3, 4].map((n) => `{#page=${n}}\n\n${said(`page ${n}`, 18)}`)
  expect(
    passagesOf(`## Terms\n\n${pages.join('\n\n')}`).map(({ anchor, text }) => [
      anchor,
      /page (\d)/.exec(text)?.[1],
    ]),
  ).toEqual([
    ['page=1', '1'],
    ['page=2', '2'],
    ['page=3', '3'],
    ['page=4', '4'],
  ])
})

test('a table beside pages is a page, and data of programs is left out', async () => {
  const read = newRead()
  const files = {
    'guide.md': '# Guide\n\nRead the prices.',
    'prices.csv': `plan,price,note\n${Array.from({ length: 90 }, (_, n) => `Plan ${n},${n} €,"a | b, line 1\nline 2"`).join('\n')}`,
    'wide.csv': `${Array.from({ length: 12 }, (_, n) => `c${n}`).join(',')}\n${Array.from({ length: 12 }, (_, n) => `v${n}`).join(',')}`,
    'package.json': '{"name":"x"}',
  }
  for (const [name, text] of Object.entries(files))
    addContent(
      read,
      { id: `docs/${name}`, name, source: 'docs' },
      await readContent(new TextEncoder().encode(text), name),
    )
  expect(tablesAsPages(read)).toEqual(['package.json'])
  const { documents } = await asDocuments(read, { embedding: 'local/hash' })
  const ofPrices = documents.filter(({ parley_page: page }) => page === 'docs/prices.csv')
  expect(ofPrices.length).toBeGreaterThan(1)
  for (const { title, text } of ofPrices) {
    expect(title).toBe('Prices')
    expect(text).toMatch(
      /^\| plan \| price \| note \|\n\| --- \| --- \| --- \|\n\| Plan \d+ \| \d+ € \| a \\\| b, line 1 line 2 \|/,
    )
  }
  expect(documents.find(({ id }) => id === 'docs/wide.csv')?.text).toMatch(/^c0: v0; c1: v1; .*c11: v11$/)
})

const block = fc.oneof(
  fc
    .tuple(fc.integer({ min: 1, max: 6 }), fc.lorem({ maxCount: 4 }))
    .map(([depth, words]) => `${'#'.repeat(depth)} ${words}`),
  fc.lorem({ maxCount: 80 }),
  fc.lorem({ maxCount: 5, mode: 'sentences' }),
  fc
    .array(fc.lorem({ maxCount: 12 }), { minLength: 1, maxLength: 30 })
    .map((items) => items.map((item) => `- ${item}`).join('\n')),
  fc
    .array(fc.lorem({ maxCount: 12 }), { minLength: 1, maxLength: 60 })
    .map((lines) => `\`\`\`\n# ${lines.join('\n# ')}\n\`\`\``),
  fc.string({ maxLength: 200, unit: 'binary' }),
  fc.string({ maxLength: 4_000 }),
)

test('a table and code that are too long to parse keep their heads, and what stands around them stays as it is', () => {
  const row = (of: (at: number) => string) =>
    `| ${Array.from({ length: 30 }, (_, at) => of(at)).join(' | ')} |`
  const head = [row((at) => `Column ${at}`), row(() => '---')]
  const rows = Array.from({ length: 2_000 }, (_, at) => row((column) => `${at}-${column}`))
  const lines = Array.from({ length: 6_000 }, (_, at) => `echo line ${at}`)
  const list = '- one\n- two'
  const page = `${list}\n\n${[...head, ...rows].join('\n')}\n\n\`\`\`sh\n${lines.join('\n')}\n\`\`\`\n\nThe end.`
  const passages = passagesOf(page).map(({ text }) => text)
  expect(passages[0]?.startsWith(list)).toBe(true)
  const tables = passages.filter((text) => /^\| \d/m.test(text))
  expect(tables.every((text) => text.includes(head.join('\n')))).toBe(true)
  const said = new Set(passages.flatMap((text) => text.split('\n')))
  expect([...rows, ...lines].filter((line) => !said.has(line))).toEqual([])
  const code = passages.filter((text) => text.includes('echo line'))
  expect(code.every((text) => text.includes('```sh\n') && /\n```(?:\n|$)/.test(text))).toBe(true)
})

test('no word is lost, none is said twice, and no passage is long, whatever the page', () => {
  const words = (text: string) => text.match(/[\p{L}\p{N}]+/gu) ?? []
  fc.assert(
    fc.property(fc.array(block, { maxLength: 12 }), (blocks) => {
      const text = withoutPlaces(blocks.join('\n\n'))
      const passages = passagesOf(text)
      const headings = new Set<string>()
      for (const { path, text: piece } of passages) {
        // Code that is cut has its fence once more.
        expect(piece.length).toBeLessThanOrEqual(LONGEST * 1.3)
        expect(piece.trim()).not.toBe('')
        for (const heading of path) headings.add(heading)
      }
      const kept = [...headings, ...passages.map(({ text: piece }) => piece)].join('\n')
      const has = new Set(words(kept))
      for (const word of new Set(words(text))) if (word.length < 30) expect(has).toContain(word)
    }),
  )
})
