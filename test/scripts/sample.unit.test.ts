import { expect, test } from 'vitest'
import { cut, passages } from '../../scripts/sample.mjs'

test('a page is cut at its headings, code left whole', () => {
  const page = [
    '# Keys',
    '',
    'Intro.',
    '',
    '## `Scoped` keys!',
    'One.',
    '```sh',
    '# not a heading',
    '```',
    '#### Deep',
    '## Empty',
    '',
  ].join('\n')
  expect(cut('keys', page)).toEqual([
    {
      id: 'keys#keys',
      title: 'Keys',
      heading: 'Keys',
      text: 'Intro.',
      url: 'docs/keys.md#keys',
      section: 'keys',
    },
    {
      id: 'keys#scoped-keys',
      title: 'Keys',
      heading: 'Scoped keys!',
      text: 'One.\n```sh\n# not a heading\n```\n#### Deep',
      url: 'docs/keys.md#scoped-keys',
      section: 'keys',
    },
  ])
})

test('the documentation makes passages of different ids, none empty or long', () => {
  const all = passages()
  expect(all.length).toBeGreaterThan(20)
  expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
  for (const { id, text } of all) {
    expect(text, id).not.toBe('')
    expect(text.length, id).toBeLessThan(4000)
  }
})
