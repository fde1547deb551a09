/** A conversation as Markdown. */
import fc from 'fast-check'
import { lexer } from 'marked'
import { expect, it } from 'vitest'
import { asMarkdown } from '../../ui/widget/src/share'
import type { Source } from '../../ui/widget/src/sources'
import { blank, type Turn } from '../../ui/widget/src/turn'

const source = (number: number, more: Partial<Source> = {}): Source => ({
  number,
  collection: 'docs',
  documentId: `d${number}`,
  title: `Page ${number}`,
  label: `d${number}.txt`,
  texts: [],
  ...more,
})
const turn = (more: Partial<Turn>): Turn => ({
  ...blank(),
  number: 1,
  question: 'Why?',
  state: 'done',
  ...more,
})

it('lists what is cited, in the order of the numbers, and links what has an address', () => {
  const url = 'https://example.com/a_(b)'
  const sources = [source(1, { url, title: 'A [page]' }), source(2), source(3)]
  expect(asMarkdown([turn({ answer: 'So [d3.txt]. And so [d1.txt].', sources })])).toBe(
    `## Why?\n\nSo\\[3\\]. And so[\\[1\\]](<${url}>).\n\n1. [A \\[page\\]](<${url}>)\n3. Page 3\n`,
  )
})

it('leaves out what was not answered', () => {
  const failed = turn({ state: 'failed', answer: 'Half' })
  expect(asMarkdown([failed, turn({ answer: 'Whole.' })])).toBe('## Why?\n\nWhole.\n')
  expect(asMarkdown([])).toBe('')
})

it('shows any question and any title as one line of text', () => {
  const text = fc.string({ unit: 'grapheme', maxLength: 60 }).filter((each) => /\p{L}/u.test(each))
  fc.assert(
    fc.property(text, text, (question, title) => {
      const sources = [source(1, { title, url: 'https://example.com' })]
      const markdown = asMarkdown([turn({ question, answer: 'Yes [d1.txt].', sources })])
      const kinds = lexer(markdown).filter(({ type }) => type !== 'space')
      expect(kinds.map(({ type }) => type)).toEqual(['heading', 'paragraph', 'list'])
      const [heading] = kinds as { tokens?: { type: string }[] }[]
      for (const { type } of heading?.tokens ?? []) expect(['text', 'escape', 'link', 'del']).toContain(type)
    }),
  )
})
