/** What stands in the braces of MDX, and what its modules declare. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readMarkdown } from '../../../scripts/parley/read/markdown.mjs'
import { literalOf, markdownList } from '../../../scripts/parley/read/mdx-values.mjs'

/** A value without what JSON calls null, which says nothing here. */
const withoutNull = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutNull)
  if (typeof value !== 'object' || value === null) return value ?? undefined
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withoutNull(each)]))
}

test('JSON is read as what it is', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 6 }), fc.boolean(), (value, isSpaced) => {
      const plain = JSON.parse(JSON.stringify(value))
      expect(literalOf(JSON.stringify(plain, null, isSpaced ? 2 : 0))).toEqual(withoutNull(plain))
    }),
  )
})

test('nothing is refused, and nothing that is no value becomes one', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'[]{}(),:+<>/"\'`\\ab1.=$\n ') }), (text) => {
      expect(() => markdownList(literalOf(text))).not.toThrow()
    }),
  )
  for (const code of [
    'name',
    'f({ a: 1 })',
    '(a) => a',
    `\`a \${b}\``,
    '"a" + b',
    '...more',
    'a ? "b" : "c"',
  ])
    expect(literalOf(code)).toBeUndefined()
})

test('what is computed is left out of what is not', () => {
  expect(
    literalOf(
      "[{ a: f(1, { b: 2 }), 'b-c': 'd', e: [g, 2, `h`], ...rest, i: <I n={[1]} />, /* j */ k: !l, },]",
    ),
  ).toEqual([{ 'b-c': 'd', e: [undefined, 2, 'h'] }])
})

test('a long or deep expression takes no more than its length', () => {
  expect(markdownList(literalOf('['.repeat(100_000)))).toBe('')
  expect(markdownList(literalOf(`${'{a:['.repeat(20_000)}1`))).toBe('')
  expect(markdownList(literalOf(`[${"{ name: 'a' },".repeat(20_000)}]`))).toHaveLength(20_000 * 8 - 1)
})

/** A page of MDX as its text. */
const read = (page: string) => {
  const content = readMarkdown(page, 'x/keys.mdx')
  return 'article' in content ? content.article.text : ''
}

const PLANS = `export const plans = [
  { name: 'Small', price: 5, note: 'For one :)' },

  { name: 'Large', price: 9 },
]
`
const TOLD = '- **Small** (price: 5): For one :)\n- **Large** (price: 9)'

test.each([
  ['an attribute', `${PLANS}\n<Table data={plans} />`, TOLD],
  [
    'two attributes, once',
    `${PLANS}\n<Table data={plans} />\n\n<Chart of={plans} />\n\nEnd.`,
    `${TOLD}\n\nEnd.`,
  ],
  ['an attribute above it', `<Table data={plans} />\n\n${PLANS}`, TOLD],
  ['children', `${PLANS}\n<Table>{plans}</Table>`, TOLD],
  [
    'a way into it',
    `${PLANS}\n# Plans\n\n{plans[1].name} is {plans[1]['price']} of {plans.length}.`,
    '# Plans\n\nLarge is 9 of 2.',
  ],
  [
    'a list in the page',
    `${PLANS}\n<ul>{plans.map((p) => <li key={p.name}>{p.name}: {p.price} euros</li>)}</ul>`,
    /-\s+Small: 5 euros\n-\s+Large: 9 euros/,
  ],
  [
    'a table in the page',
    `${PLANS}
<table>
  <thead><tr><th>Plan</th><th>Euros</th></tr></thead>
  <tbody>
    {plans.filter((p) => p.price > 0).map(({ name, price: euros }, at) => (
      <tr key={at}><td>{name}</td><td>{euros}</td></tr>
    ))}
  </tbody>
</table>`,
    '| Plan | Euros |\n| --- | --- |\n| Small | 5 |\n| Large | 9 |',
  ],
  [
    'components',
    `${PLANS}\n{plans.map(p => <Card title={p.name}>Costs {p.price}.</Card>)}`,
    /\*\*Small\*\*\s+Costs 5\.\s+\*\*Large\*\*\s+Costs 9\./,
  ],
  [
    'entries of an object',
    'export const most = { cpu: "10 ms", ram: "128 MB" }\n\n{Object.entries(most).map(([key, value]) => <p>{key}: {value}</p>)}',
    /cpu: 10 ms\s+ram: 128 MB/,
  ],
  [
    'lists of lists',
    'export const rows = [["Day", "Opens"], ["Monday", 9]] as const;\n\n<Table rows={rows} />',
    '| Day | Opens |\n| --- | --- |\n| Monday | 9 |',
  ],
  [
    'columns with names',
    '<Table columns={["Plan", "Price"]} rows={[["S", "5 | 6"], ["L", "9"]]} />',
    '| Plan | Price |\n| --- | --- |\n| S | 5 \\| 6 |\n| L | 9 |',
  ],
  [
    'objects without a name',
    'export const fees = [{ plan: "Small", euros: 5 }, { plan: "Large", euros: 9 }]\n\n<Table of={fees} />',
    '- plan: Small, euros: 5\n- plan: Large, euros: 9',
  ],
  ['texts', 'export const parts = ["lamp", "rope"]\n\n<Parts of={parts} />', '- lamp\n- rope'],
  [
    'one value in another',
    'export const unit = "ms"\nconst most = { cpu: unit }\n\nIn {most.cpu}.',
    'In ms.',
  ],
  [
    'front matter',
    '---\ntitle: Keys\nmost: 5\n---\n\n# {frontMatter.title}\n\nUp to {frontmatter.most}.',
    '# Keys\n\nUp to 5.',
  ],
  [
    'a template with escaped marks',
    '<Table of={[{ name: "calls", type: `"all" | \\`last-\\$n\\`` }]} />',
    '- **calls** (type: "all" | `last-$n`)',
  ],
  [
    'a sentence in any attribute',
    '<Try className="flex mx-2 p-4" startsWith="Write a slogan." />',
    '**Write a slogan.**',
  ],
  ['a condition', '{isOpen && (<p>Open on <b>Monday</b>.</p>)}', 'Open on Monday.'],
  ['what is not used', `${PLANS}\nText {plans.sum()}.`, 'Text .'],
  [
    'a module that never ends',
    'export const a = {\n\nText.\n\nexport const b = "c"\n\nMore {b}.',
    'Text.\n\nMore c.',
  ],
])('what a page of MDX declares stands where it is used: %s', (_, page, text) => {
  const made = read(page)
  if (typeof text === 'string') expect(made).toBe(text)
  else expect(made).toMatch(text)
})

test('lists of lists of lists end', () => {
  const numbers = `[${'1,'.repeat(2_000)}]`
  const nested = 'n.map((a) => <>{n.map((b) => <>{n.map((c) => <b>x</b>)}</>)}</>)'
  expect(read(`export const n = ${numbers}\n\n{${nested}}`).length).toBeLessThan(2_000_000)
  expect(read('export const a = {\n\n'.repeat(40_000))).toBe('')
})
