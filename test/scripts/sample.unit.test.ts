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
      id: 'keys',
      title: 'Keys',
      heading: 'Keys',
      text: 'Intro.',
      section: 'keys',
      at: '',
    },
    {
      id: 'scoped-keys',
      title: 'Keys',
      heading: 'Scoped keys!',
      text: 'One.\n```sh\n# not a heading\n```\n#### Deep',
      section: 'keys',
      at: 'scoped-keys',
    },
  ])
})

test('the documentation makes passages of different ids that can be read and opened, none empty or long', () => {
  const all = passages('http://localhost:8108')
  expect(all.length).toBeGreaterThan(20)
  expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
  for (const { id, text, url } of all) {
    expect(id).toMatch(/^[\p{L}\p{N}-]+$/u)
    expect(url).toMatch(/^http:\/\/localhost:8108\/docs\/[\w/-]+(#[\p{L}\p{N}_-]+)?$/u)
    expect(text, id).not.toBe('')
    expect(text.length, id).toBeLessThan(4000)
  }
})

test('its commands name the server that has it', () => {
  const all = passages('https://parley.example').map(({ text }) => text)
  expect(all.filter((text) => text.includes('http://localhost:8108'))).toEqual([])
  expect(all.some((text) => text.includes("curl 'https://parley.example/"))).toBe(true)
})
