import { describe, expect, test } from 'vitest'
import { markdownOf, printedTitle } from '../../../scripts/parley/read/pdf-lines.mjs'

type Line = Parameters<typeof markdownOf>[0][number]['lines'][number]

/** Letters are half as wide as they are high. */
const line = (text: string, base: number, more: Partial<Line> = {}): Line => {
  const { size = 10, left = 50 } = more
  const right = left + (text.length * size) / 2
  return { text, base, left, right, size, columns: [], isMonospaced: false, ...more }
}

/** Lines 12 points apart, from the top of a page. */
const lines = (texts: string[], from = 700, more: Partial<Line> = {}): Line[] =>
  texts.map((text, at) => line(text, from - at * 12, more))

const page = (label: string, lines: Line[], outline: { title: string; level: number }[] = []) => ({
  label,
  lines,
  outline,
})

const TEXT = [
  'The café opens at eight in the morning and closes when the last guest has left, which can be',
  'long after midnight. Guests who have an aller-',
  'gy tell the kitchen before they order.',
]
const WHOLE =
  'The café opens at eight in the morning and closes when the last guest has left, which can be long after midnight. Guests who have an allergy tell the kitchen before they order.'

describe('lines of a PDF', () => {
  test('are paragraphs again, also over the end of a page', () => {
    const pages = [page('1', lines(TEXT.slice(0, 2))), page('2', lines(TEXT.slice(2)))]
    expect(markdownOf(pages)).toBe(`## Page 1\n\n${WHOLE}`)
    const apart = [...lines(TEXT), ...lines(['Bread is free.'], 640)]
    expect(markdownOf([page('1', apart)])).toBe(`## Page 1\n\n${WHOLE}\n\nBread is free.`)
  })

  test('a line that ends although the next word would fit ends its paragraph', () => {
    expect(markdownOf([page('1', lines([TEXT[0] ?? '', 'Soup is hot.', 'Bread is free.']))])).toBe(
      `## Page 1\n\n${TEXT[0]}\n\nSoup is hot.\n\nBread is free.`.replace('be\n\nSoup', 'be Soup'),
    )
  })

  test('page numbers, running heads and tables of contents are left out', () => {
    const pages = [0, 1, 2].map((number) =>
      page(String(number + 1), [
        line(`Chapter 1: Hours ${number + 1}`, 760),
        ...(number === 0 ? [line('1.1 Hours . . . . . . . . . 2', 730)] : []),
        ...lines([`Sentence ${'abc'[number]} of the text ends here.`]),
        ...lines(['What stands below it.', 'And what is below that.', 'And so on.'], 600),
        line(`- ${number + 1} -`, 20),
      ]),
    )
    const text = markdownOf(pages)
    expect(text).not.toContain('Chapter')
    expect(text).not.toMatch(/\. \./)
    expect(text).not.toMatch(/^-/m)
    for (const number of [0, 1, 2]) expect(text).toContain(`Sentence ${'abc'[number]} of the text`)
  })

  test('what recurs in the middle of pages stays', () => {
    const pages = ['1', '2', '3'].map((label) =>
      page(label, [
        ...lines(['One.', 'Two.', 'Three.'].map((text) => `${text}${label}`)),
        line('Warning: hot.', 500),
        ...lines(
          ['Four.', 'Five.', 'Six.'].map((text) => `${text}${label}`),
          400,
        ),
      ]),
    )
    expect(markdownOf(pages).match(/Warning: hot\./g)).toHaveLength(3)
  })

  test('larger lines and bookmarks are headings, and name their page', () => {
    const pages = [
      page(
        'iv',
        [
          line('Opening', 700, { size: 20 }),
          line('hours', 676, { size: 20 }),
          ...lines(TEXT, 640),
          line('2.1 Sundays', 580),
          ...lines(['On Sundays there is brunch.'], 560),
        ],
        [{ title: 'Sundays', level: 2 }],
      ),
    ]
    expect(markdownOf(pages)).toBe(
      `## Opening hours (page iv)\n\n${WHOLE}\n\n### 2.1 Sundays (page iv)\n\nOn Sundays there is brunch.`,
    )
  })

  test('code keeps its lines and its indentation, and lists their items', () => {
    const mono = { isMonospaced: true }
    const pages = [
      page('1', [
        ...lines(['Do this:']),
        line('if hungry', 680, mono),
        line('eat', 668, { ...mono, left: 60 }),
        line('done', 640, mono),
        ...lines(['• Monday is a day of rest.', '• Sunday is for brunch.'], 600),
        line('# is a number sign.', 550),
      ]),
    ]
    expect(markdownOf(pages)).toBe(
      '## Page 1\n\nDo this:\n\n```\nif hungry\n  eat\n\ndone\n```\n\n- Monday is a day of rest.\n- Sunday is for brunch.\n\n\\# is a number sign.',
    )
  })

  test('rows of a table stay apart', () => {
    const row = (text: string, base: number) => line(text, base, { columns: [{ left: 90, gap: 0.7 }] })
    const pages = [page('1', [...lines(TEXT), row('Soup 4 €', 650), row('Bread 1 €', 638)])]
    expect(markdownOf(pages)).toContain('\n\nSoup 4 €\n\nBread 1 €')
  })

  test('Japanese is joined without spaces', () => {
    const wide = { right: 545 }
    const pages = [
      page('1', [line('朝は八時に開店しますがまだまだ', 700, wide), line('夜は遅くまで営業します。', 688)]),
    ]
    expect(markdownOf(pages)).toContain('まだまだ夜は')
  })
})

test('a printed title is the largest line of the first page, if one stands out', () => {
  const title = line('The manual', 700, { size: 24 })
  expect(printedTitle([page('1', [title, ...lines(TEXT, 600)])])).toBe('The manual')
  expect(printedTitle([page('1', lines(TEXT))])).toBeUndefined()
  expect(printedTitle([])).toBeUndefined()
})
