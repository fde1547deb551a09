import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { linesOf } from '../../../scripts/parley/read/pdf.mjs'
import { markdownOf, printedTitle } from '../../../scripts/parley/read/pdf-lines.mjs'
import { leftOut } from '../../../scripts/parley/read/pdf-running-lines.mjs'

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
        ...(number === 0
          ? lines(
              [
                'Contents',
                '1.1 Hours . . . . . . . . . 2',
                '1.2 Rest days . . . . . . . 2',
                '1.3 Guests . . . . . . . 3',
              ],
              730,
            )
          : [line(number === 1 ? '1.1 Hours' : '1.3 Guests', 730, { size: 14 })]),
        ...lines([`Sentence ${'abc'[number]} of the text ends here.`], 680),
        ...lines(['What stands below it.', 'And what is below that.', 'And so on.'], 600),
        line(`- ${number + 1} -`, 20),
      ]),
    )
    const text = markdownOf(pages)
    expect(text).not.toContain('Chapter')
    expect(text).not.toMatch(/\. \./)
    expect(text).not.toContain('Contents')
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

describe('no text of a PDF is lost:', () => {
  test('headings that others follow, with the levels of their numbers', () => {
    const pages = [
      page('7', [
        line('Chapter 3. The Root Filesystem', 700, { size: 25 }),
        line('3.5. /boot : Static files of the boot loader', 660, { size: 17.5 }),
        line('3.5.1. Purpose', 630, { size: 17.5 }),
        line('Rationale', 600, { size: 14 }),
        ...lines(TEXT, 580),
        line('3.6. /dev : Device files', 500, { size: 20.5 }),
      ]),
    ]
    expect(markdownOf(pages)).toBe(
      [
        '## Chapter 3. The Root Filesystem (page 7)',
        '### 3.5. /boot : Static files of the boot loader (page 7)',
        '#### 3.5.1. Purpose (page 7)',
        '##### Rationale (page 7)',
        WHOLE,
        '### 3.6. /dev : Device files (page 7)',
      ].join('\n\n'),
    )
  })

  test('slides with nothing but a title', () => {
    const slides = ['Why we bake', 'Questions?', 'Thank you'].map((title, at) =>
      page(String(at + 1), [line(title, 300, { size: 40 }), ...(at === 0 ? lines(TEXT, 200) : [])]),
    )
    const text = markdownOf(slides)
    for (const title of ['Why we bake', 'Questions?', 'Thank you']) expect(text).toContain(`## ${title}`)
  })

  test('a CV, whose large lines follow each other', () => {
    const text = markdownOf([
      page('1', [
        line('Jane Doe', 760, { size: 28 }),
        line('Senior Engineer', 720, { size: 16 }),
        line('jane@example.com', 690, { size: 12 }),
        line('Experience', 650, { size: 16 }),
        ...lines(TEXT, 620),
        line('Languages', 500, { size: 16 }),
      ]),
    ])
    for (const word of ['Jane Doe', 'Senior Engineer', 'jane@example.com', 'Experience', 'Languages']) {
      expect(text).toContain(word)
    }
  })

  test('prices with leader dots, in a list of one page, of many, and alone', () => {
    const prices = ['Espresso ............ 3', 'Cappuccino . . . . . . 4', 'Cake ............ 4']
    expect(markdownOf([page('1', lines(prices))])).toContain('Espresso ............ 3')
    const many = ['1', '2', '3', '4', '5'].map((label) =>
      page(label, [...lines(TEXT), ...lines(prices, 600)]),
    )
    expect(markdownOf(many).match(/Espresso \.+ 3/g)).toHaveLength(5)
    expect(markdownOf([page('1', lines(['Contents', ...prices]))])).toContain('Cake ............ 4')
  })

  test.each([12, 40])('one record a page, its lines %s points apart', (apart) => {
    const pages = ['1', '2', '3'].map((label, at) =>
      page(label, [
        line(`Room ${label}`, 700),
        line('Price per night', 700 - apart),
        line(`A room with a view of ${['the sea', 'a garden', 'our yard'][at]}`, 600),
        line('It has a bath', 588),
        line('Breakfast included', 500),
        line('120', 500 - apart),
      ]),
    )
    const text = markdownOf(pages)
    for (const label of ['1', '2', '3']) expect(text).toContain(`Room ${label}`)
    for (const word of ['Price per night', 'Breakfast included', '120']) {
      expect(text.match(new RegExp(word, 'g'))).toHaveLength(3)
    }
  })

  test('a line that is a bookmark and a number', () => {
    const marked = page(
      '1',
      [...lines(['Windows 11', 'Windows 10']), ...lines(TEXT, 600)],
      [
        { title: 'Windows', level: 1 },
        { title: 'Windows 11', level: 2 },
      ],
    )
    const text = markdownOf([marked, page('2', lines(['Windows 11', ...TEXT]))])
    expect(text.match(/Windows 11/g)).toHaveLength(2)
    expect(text).toContain('Windows 10')
  })

  test('hyphens of compounds, and of words left out', () => {
    const broken = (before: string, after: string, rest = '') =>
      markdownOf([
        page('1', [
          ...lines([`The kitchen cooks what guests like and keeps all of it a ${before}`, after]),
          ...lines(rest === '' ? [] : [rest], 500),
        ]),
      ])
    expect(broken('well-', 'known dish', 'It is well-known.')).toContain('well-known dish')
    expect(broken('long-', 'term plan', 'A term can be long.')).toContain('long-term plan')
    expect(broken('aller-', 'gy')).toContain('allergy')
    expect(broken('North-', 'South line')).toContain('North-South line')
    expect(broken('in-', 'and output')).toContain('in- and output')
  })

  test('exponents, while marks of footnotes go', () => {
    const item = (str: string, left: number, base: number, size: number, hasEOL = false) => ({
      str,
      transform: [size, 0, 0, size, left, base],
      width: (str.length * size) / 2,
      fontName: 'f',
      hasEOL,
    })
    const styles = { f: { fontFamily: 'serif' } }
    const texts = (items: ReturnType<typeof item>[]) => linesOf({ items, styles }).map(({ text }) => text)
    const raised = (text: string, number: string, after: string) => [
      item(text, 50, 500, 10),
      item(number, 100, 504, 6),
      item(after, 110, 500, 10, true),
    ]
    const note = item('2 The kitchen decides.', 50, 40, 8, true)
    expect(texts([...raised('(1+r)', '2', ' is it'), note])[0]).toBe('(1+r)^2 is it')
    expect(texts([...raised('sin', '2', ' x'), note])[0]).toBe('sin^2 x')
    expect(texts([...raised('10', '6', ' guests'), note])[0]).toBe('10^6 guests')
    expect(texts([...raised('allowed', '2', ' today'), note])[0]).toBe('allowed today')
    expect(texts(raised('allowed', '2', ' today'))[0]).toBe('allowed^2 today')
  })

  test('columns are read one after the other however they are drawn, and rows of a table stay rows', () => {
    const styles = { f: { fontFamily: 'serif' } }
    const item = (str: string, left: number, base: number, hasEOL: boolean, [a, b] = [10, 0]) => ({
      str,
      transform: [a, b, -b, a, left, base],
      width: str.length * 5,
      fontName: 'f',
      hasEOL,
    })
    const left = [
      'Herons are large birds that',
      'hunt fish in shallow water',
      'near the coast. They',
      'nest in large colonies.',
    ]
    const right = [
      'In winter herons move south',
      'if the lakes freeze, which',
      'happens late. A bird from',
      'the north was 35 years old.',
    ]
    const rows = (one: string[], other: string[], hasEnd: boolean) =>
      one.flatMap((text, at) => [
        item(text, 50, 700 - 12 * at, hasEnd),
        item(other[at] ?? '', 300, 700 - 12 * at, true),
      ])
    const heading = item(
      'A line over both of the columns, which is as wide as the two of them are together',
      50,
      730,
      true,
    )
    const whole = [heading.str, ...left, ...right]
    for (const hasEnd of [true, false])
      expect(
        linesOf({ items: [heading, ...rows(left, right, hasEnd)], styles }).map(({ text }) => text),
      ).toEqual(whole)
    const table = [
      ['Plan', 'Small', 'Large', 'Huge', 'Endless'],
      ['Monthly', '5 euros', '9 euros', '12 euros', '15 euros'],
    ] as const
    const lines = linesOf({ items: [heading, ...rows([...table[0]], [...table[1]], true)], styles })
    expect(markdownOf([page('1', lines)])).toContain('Plan Monthly\n\nSmall 5 euros\n\nLarge 9 euros\n\n')
    // A page on its side is read like others, and a slanted word over a text is none of its words.
    const turned = left.map((text, at) => item(text, 100 + 12 * at, 50, true, [0, 10]))
    expect(linesOf({ items: turned, styles }).map(({ text }) => text)).toEqual(left)
    const marked = [
      ...rows(left, [], true),
      item('DRAFT', 200, 300, true, [42, 42]),
      item('Fig. 1', 20, 90, true, [0, 40]),
    ]
    expect(linesOf({ items: marked, styles }).map(({ text, size }) => [text, size])).toEqual(
      [...left, 'Fig. 1'].map((text) => [text, 10]),
    )
  })

  test('every word of every line is in the Markdown, or a rule names its line', () => {
    const word = fc.constantFrom(
      ...'soup bread Room 1 2 3 120 ii Page of Contents ..... . Windows 11 3.5. # - • (a) café 朝は'.split(
        ' ',
      ),
    )
    const made = fc.record({
      words: fc.array(word, { minLength: 1, maxLength: 6 }),
      size: fc.constantFrom(8, 10, 10, 10, 14, 25),
      down: fc.constantFrom(0, 12, 12, 12, 30),
      left: fc.constantFrom(50, 50, 70, 300),
      isMonospaced: fc.constantFrom(false, false, false, true),
    })
    const outline = fc.array(
      fc.record({
        title: fc.constantFrom('Windows', 'Room 1', 'soup'),
        level: fc.integer({ min: 1, max: 3 }),
      }),
      { maxLength: 2 },
    )
    const book = fc.array(fc.record({ made: fc.array(made, { maxLength: 9 }), outline }), {
      minLength: 1,
      maxLength: 6,
    })
    const wordsOf = (text: string) => text.match(/[\p{L}\p{N}]/gu) ?? []
    fc.assert(
      fc.property(book, (book) => {
        const pages = book.map((one, at) => {
          let base = 760
          const made = one.made.map(({ words, size, down, left, isMonospaced }) => {
            base -= down
            return line(words.join(' '), base, { size, left, isMonospaced })
          })
          return page(String(at + 1), made, one.outline)
        })
        const without = leftOut(pages)
        const kept = pages.flatMap(({ lines }) => lines.filter((line) => !without.has(line)))
        const text = markdownOf(pages)
          .replace(/^## Page \d+$/gm, '')
          .replace(/^(#.*) \(page \d+\)$/gm, '$1')
        expect(wordsOf(text)).toEqual(kept.flatMap((line) => wordsOf(line.text)))
        for (const [line, rule] of without) {
          if (rule === 'contents') expect(line.text).toMatch(/\d|[ivxlc]$|Contents/)
          else {
            const isNumber = /^[-\s]*(?:\d|ii)[-\s]*$/.test(line.text)
            const recurs = pages.filter(({ lines }) =>
              lines.some(({ text }) => text.replace(/\d+/g, '') === line.text.replace(/\d+/g, '')),
            )
            expect(isNumber || recurs.length > 1 || /\d/.test(line.text)).toBe(true)
          }
        }
      }),
      { numRuns: 500 },
    )
  })
})
