/** Editions of one page: the newer one is told first. */
import { describe, expect, it } from 'vitest'
import { answerFrom as answer } from '../../../src/models/extractive/answer'
import { isNewer } from '../../../src/models/extractive/editions'
import type { Candidate } from '../../../src/models/extractive/evidence'
import { editionOf } from '../../../src/models/extractive/sentences'
import type { Source } from '../../../src/models/language-model'

const answerFrom = (question: string, sources: Source[]): string => answer(question, sources).text

const from = (...documents: Record<string, unknown>[]) =>
  documents.map((document) => ({ collection: 'docs', document }))

describe('editions of a page', () => {
  const edition = (title: string, text: string) => ({ id: title, title, text })
  const old = edition('Version 4 released', 'Version 4 is faster. It runs on Windows Server 2012 and newer.')
  const today = edition(
    'Version 5 released',
    'Version 5 needs less memory and drops support for Windows Server 2012.',
  )

  it('are both shown where the earlier one fits better, the newer first, each under its name', () => {
    for (const documents of [from(old, today), from(today, old)]) {
      const answer = answerFrom('Does it run on Windows Server 2012?', documents)
      expect(answer.indexOf('drops support')).toBeGreaterThan(answer.indexOf('**Version 5 released**'))
      expect(answer.indexOf('It runs on')).toBeGreaterThan(answer.indexOf('**Version 4 released**'))
      expect(answer.indexOf('Version 4 released')).toBeGreaterThan(answer.indexOf('drops support'))
    }
  })

  it('are not shown beside the one that the question names, nor earlier ones beside the newest', () => {
    expect(answerFrom('Does version 4 run on Windows Server 2012?', from(old, today))).not.toContain('drops')
    expect(answerFrom('What does version 5 drop support for?', from(old, today))).not.toContain('It runs on')
  })

  it('are told apart by all of their numbers', () => {
    const named = (number: string, text: string) => edition(`Version ${number} released`, text)
    const [first, second] = [
      named('4.9', 'It runs on Windows Server 2012 and newer.'),
      named('4.10', 'The end of Windows Server 2012.'),
    ]
    const answer = answerFrom('Does it run on Windows Server 2012?', from(first, second))
    expect(answer.indexOf('4.10')).toBeGreaterThan(-1)
    expect(answer.indexOf('4.10')).toBeLessThan(answer.indexOf('4.9'))
  })

  it('without a year are those of today', () => {
    const price = (title: string, euros: number) =>
      edition(
        title,
        `These are the prices of our shop.\n\nA farmhouse loaf costs ${euros} euros and weighs a kilo.`,
      )
    const answer = answerFrom(
      'How much does a farmhouse loaf cost?',
      from(price('Price list 2023', 4), price('Price list', 5)),
    )
    expect(answer).toContain('5 euros')
    expect(answer.indexOf('5 euros')).toBeLessThan(`${answer}4 euros`.indexOf('4 euros'))
  })
})

describe('titles of editions', () => {
  const titled = (title: string, rank: number) => ({ rank, section: { context: [title] } }) as Candidate
  const newer = (title: string, earlier: string) => isNewer(titled(title, 0), titled(earlier, 1))

  it('differ in numbers alone', () => {
    expect(newer('Prices', 'Prices 2024')).toBe(true)
    expect(newer('Annual report', 'Annual Report (2023)')).toBe(true)
    expect(newer('Prices 2024', 'Prices')).toBe(true)
    expect(newer('Level 2', 'Level 3')).toBe(false)
    expect(newer('Exam B2', 'Exam A1')).toBe(false)
  })

  it('are not those of other pages that have the same words or letters among others', () => {
    expect(newer('Annual reporting calendar', 'Annual report 2023')).toBe(false)
    expect(newer('Opening hours of the museum shop', 'Opening hours 2019')).toBe(false)
  })
})

describe('pages of one title whose paths name a version', () => {
  const page = (id: string, seconds: number, more: Record<string, unknown> = {}) => ({
    id,
    title: 'Timeouts',
    text: `The request timeout is ${seconds} seconds.`,
    parley_page: id,
    ...more,
  })

  it.each([
    ['v1/timeouts.md', 'v2/timeouts.md'],
    ['docs/2.9/timeouts.md', 'docs/2.10/timeouts.md'],
    ['docs/v3/timeouts.md', 'docs/latest/timeouts.md'],
    ['timeouts-v1.md', 'timeouts-v2.md'],
    ['docs/2023/timeouts.md', 'docs/2024/timeouts.md'],
    ['docs/release-1.9/timeouts.md', 'docs/release-1.10/timeouts.md'],
    ['v1.0.0-rc.9/timeouts.md', 'v1.0.0/timeouts.md'],
    ['v1.0.0-beta.2/timeouts.md', 'v1.0.0-beta.10/timeouts.md'],
  ])('are both shown, the newer first, each under its version: %s, %s', (old, now) => {
    for (const documents of [from(page(old, 30), page(now, 60)), from(page(now, 60), page(old, 30))]) {
      const said = answerFrom('What is the request timeout?', documents)
      const version = now.replace(/^(?:docs\/|timeouts-)?|(?:\/timeouts)?\.md$/g, '')
      expect(said.indexOf('60 seconds')).toBeGreaterThan(said.indexOf(`**Timeouts › ${version}**`))
      expect(`${said}30 seconds`.indexOf('30 seconds')).toBeGreaterThan(said.indexOf('60 seconds'))
    }
  })

  it.each(['docs/6.0/timeouts.md', 'versioned_docs/version-6.0/timeouts.md'])(
    'come after the one that has none: %s',
    (old) => {
      const said = answerFrom(
        'What is the request timeout?',
        from(page(old, 30), page('docs/timeouts.md', 60)),
      )
      expect(said).toMatch(
        /\*\*Timeouts\*\*\n\n.* 60 seconds\.\n\n\*\*Timeouts › .*6\.0\*\*\n\n.* 30 seconds/,
      )
    },
  )

  it('are told apart by a version in the question', () => {
    const pages = from(page('v1/timeouts.md', 30), page('v2/timeouts.md', 60))
    const said = answerFrom('What is the request timeout in v1?', pages)
    expect(said.indexOf('30 seconds')).toBeGreaterThan(-1)
    expect(said.indexOf('30 seconds')).toBeLessThan(`${said}60 seconds`.indexOf('60 seconds'))
  })

  it('are not rows of a table or pages of a file', () => {
    for (const [a, b] of [
      ['prices.csv/1', 'prices.csv/2'],
      ['prices.pdf#page=3', 'prices.pdf#page=8'],
    ] as const)
      expect([a, b].map((id) => editionOf({ id }).version)).toEqual([undefined, undefined])
  })

  it('take the place of an earlier one that would come second', () => {
    const support = (title: string, text: string) => ({ id: title, title, heading: 'Node.js support', text })
    const answer = answerFrom(
      'which version of node is needed',
      from(
        { id: 'cycle', title: 'Release cycle', text: 'Versions of Node that are odd, such as 23, may work.' },
        support(
          'Tool 6.0 is out!',
          'Tool 6 supports the versions 18 and 20 of Node, and drops old versions.',
        ),
        support('Tool 8.0 is out!', 'Tool 8 requires Node 22.'),
      ),
    )
    expect(answer).toContain('Tool 8 requires Node 22.')
    expect(`${answer}Tool 6`.indexOf('Tool 8.0')).toBeLessThan(`${answer}Tool 6`.indexOf('Tool 6'))
  })
})
