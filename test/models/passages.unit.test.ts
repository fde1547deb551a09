import fc from 'fast-check'
import { expect, test } from 'vitest'
import { joinPassages, passagesOf } from '../../src/models/passages'

const words = (count: number, word = 'word') =>
  Array.from({ length: count }, (_, at) => `${word}${at}`).join(' ')

test('a text is cut at headings, each passage with the path of them', () => {
  const text = `Intro.\n\n# A\n\nAbout a.\n\n## B\n\nAbout b.\n\n# C\n\nAbout c.`
  expect(
    passagesOf(text).map(({ headings, text }) => [headings.map((each) => each.text).join(' > '), text]),
  ).toEqual([
    ['', 'Intro.'],
    ['A', 'About a.'],
    ['A > B', 'About b.'],
    ['C', 'About c.'],
  ])
})

test('what announces something stays with it', () => {
  const text = `${words(140)}\n\nRun this:\n\n\`\`\`sh\n# no heading\n${words(60, 'c')}\n\`\`\``
  const passages = passagesOf(text)
  expect(passages.find(({ text }) => text.includes('Run this:'))?.text).toContain('# no heading')
})

test('a long paragraph is cut between sentences, a long table between rows', () => {
  const sentence = `${words(30)}.`
  const prose = passagesOf(Array.from({ length: 40 }, () => `S${sentence}`).join(' '))
  expect(prose.length).toBeGreaterThan(5)
  for (const { text } of prose) expect(text).toMatch(/^S.*\.$/s)
  const table = passagesOf(Array.from({ length: 100 }, (_, at) => `| row ${at} | ${words(4)} |`).join('\n'))
  for (const { text } of table) expect(text).toMatch(/^\| row.*\|$/s)
})

const texts = fc
  .array(
    fc.oneof(
      fc.string({ unit: 'binary', maxLength: 60 }),
      fc.constantFrom('# Heading', '## Deeper', '```', '- item', '| a | b |', '', 'Do this:', words(300)),
    ),
    { maxLength: 60 },
  )
  .map((lines) => lines.join('\n'))

test('no passage is too long, and none loses a character that is not blank or a heading', () => {
  fc.assert(
    fc.property(texts, (text) => {
      const passages = passagesOf(text)
      for (const passage of passages) expect(passage.text.length).toBeLessThanOrEqual(2_500)
      const rest = (all: string) => all.replace(/\s+/g, '')
      const kept = rest(passages.map(({ text }) => text).join('\n'))
      const lines = text.split(/\r?\n/)
      for (const line of lines) if (!/^ {0,3}#/.test(line)) expect(kept).toContain(rest(line))
    }),
  )
})

test('joined passages show their headings once, and where something is left out', () => {
  const passages = passagesOf('# A\n\nOne.\n\n## B\n\nTwo.\n\n## C\n\nThree.')
  expect(joinPassages(passages)).toBe('# A\n\nOne.\n\n## B\n\nTwo.\n\n## C\n\nThree.')
  expect(joinPassages([passages[2]!])).toBe('…\n\n# A\n\n## C\n\nThree.')
})
