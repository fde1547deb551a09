/** Whether the documents support what a model wrote, sentence by sentence, and what an assistant makes of it. */
import { describe, expect, it } from 'vitest'
import { restoreTurn, turnRow } from '../../src/conversation/stored'
import type { StoredTurn } from '../../src/db/turns'
import { contentOf, textOf } from '../../src/lib/parts'
import { indexPassages, resolveCitations, supportOf } from '../../src/turn/citations'
import { emptyTurn, foldBody, traceOf } from '../../src/turn/fold'
import { asking, makeWorld, ofType, says, take } from './world'

const PAGES = [
  {
    id: 'tower',
    title: 'Eiffel Tower',
    text: 'The Eiffel Tower stands on the Champ de Mars in Paris. It was designed by Maurice Koechlin and Émile Nouguier, and finished in 1889. The tower is 330 metres tall. Its lifts travel 103,000 kilometres a year. It is repainted every seven years, for which 60 tons of paint are needed.',
  },
  {
    id: 'server',
    title: 'Server options',
    text: 'The option bodyLimit sets the largest body that the server accepts. It is 1048576 bytes by default. The server answers 413 if a body is larger. With requestTimeout, a slow client is cut off after 30 seconds. Keep-alive connections are not closed by requestTimeout.',
  },
  {
    id: 'bahn',
    title: 'Fahrkarten',
    text: 'Fahrkarten gelten zwei Stunden. Hunde fahren mit einem Kinderticket. Das Jahresabo kostet 365 Euro und lässt sich zum Monatsende kündigen.',
  },
  {
    id: 'returns',
    title: 'Returns',
    text: 'Goods can be sent back within 30 days. Refunds arrive on the same card after five working days. Sale items cannot be returned. Contact Jane Miller in the Dublin office about damaged parcels.',
  },
]
const SOURCES = PAGES.map((document) => ({ collection: 'c', document }))
const INDEX = indexPassages(SOURCES)

const judged = (answer: string, question = '') =>
  supportOf(answer, question, resolveCitations(answer, SOURCES, INDEX), INDEX).map(
    ({ support, missing }) => ({
      support,
      ...(missing && { missing }),
    }),
  )

/** In a model's words rather than the documents'. */
const RIGHT = [
  'The Eiffel Tower can be found on the Champ de Mars, in Paris.',
  'Maurice Koechlin and Émile Nouguier designed the tower, which was finished in 1889.',
  'Its height is 330 metres.',
  'Every 7 years it gets a new coat, and 60 tons of paint are needed for that.',
  'In a year, the lifts of the tower cover 103000 kilometres.',
  'By default, `bodyLimit` is 1,048,576 bytes.',
  'If the body of a request is larger than that, the server answers with status 413.',
  'Set `requestTimeout` to cut off a slow client after 30 seconds.',
  'Note that keep-alive connections are not closed by `requestTimeout`.',
  'Eine Fahrkarte gilt 2 Stunden, und Hunde fahren mit einem Kinderticket.',
  'Das Jahresabo kostet 365 Euro.',
  'Das Abo lässt sich immer zum Monatsende kündigen.',
  'You can send goods back within 30 days [returns].',
  'The refund arrives on the same card after 5 working days.',
  'Items from the sale cannot be returned.',
  'For damaged parcels, contact Jane Miller in the Dublin office.',
]

describe('what documents say in other words', () => {
  it.each(RIGHT)('is supported: %s', (sentence) => {
    expect(judged(sentence)).toEqual([{ support: 'supported' }])
  })

  it('is not where a number or a name is another one', () => {
    const seeded = RIGHT.flatMap((sentence) => [
      ...(sentence.match(/\d[\d,]*/g) ?? []).map((number) =>
        sentence.replace(number, `${Number.parseInt(number, 10) + 4}`),
      ),
      // Every noun of German has a capital letter, and is no name for that.
      ...(/^(?:Eine|Das) /.test(sentence)
        ? []
        : (sentence.match(/(?<=[a-zäöü,`] )\p{Lu}\p{L}{3,}|`\w+`/gu) ?? [])
      ).map((name) => sentence.replace(name, name.startsWith('`') ? '`maxHeaders`' : 'Ferdinand')),
    ])
    expect(seeded.length).toBeGreaterThan(20)
    const believed = seeded.filter((sentence) => judged(sentence)[0]?.support === 'supported')
    expect(believed).toEqual([])
  })
})

it.each([
  ['The Eiffel Tower is 300 metres tall.', { support: 'partly', missing: ['300'] }],
  ['The lifts of the Eiffel Tower travel not 103,000 kilometres a year.', { support: 'partly' }],
  ['Goods can be sent back within 30 days [tower].', { support: 'not_found', missing: ['30'] }],
  [
    'Penguins raise their chicks on the ice of Antarctica.',
    { support: 'not_found', missing: ['Antarctica'] },
  ],
])('says what is missing: %s', (sentence, outcome) => {
  expect(judged(sentence)).toEqual([outcome])
})

it('judges sentences alone: no headings, no code, nothing too short, and what the question says needs no source', () => {
  const answer =
    '# Everything about Towers Everywhere\n\nYes.\n\n```\nconst unknown = thing(4711)\n```\n\nThe Eiffel Tower of Gustave is 330 metres tall.'
  expect(judged(answer)).toEqual([{ support: 'partly', missing: ['Gustave'] }])
  expect(judged(answer, 'How tall is the tower of Gustave?')).toEqual([{ support: 'supported' }])
})

describe('an assistant that asks for support', () => {
  const answering = (...texts: string[]) =>
    makeWorld({ documents: { films: PAGES }, speak: () => says(...texts) })
  const question = contentOf('How tall is it?')
  const textsOf = (events: Awaited<ReturnType<typeof take>>) =>
    ofType(events, 'delta')
      .map(({ text }) => text)
      .join('')

  it('gets each sentence judged, whatever it asks for', async () => {
    const events = await take(
      answering('The Eiffel Tower is 330 metres tall. ', 'It weighs 7,300 tons of iron.'),
      asking({ question }),
    )
    expect(ofType(events, 'done')[0]).toMatchObject({
      support: [
        { start: 0, end: 36, support: 'supported' },
        { start: 37, support: 'not_found', missing: ['7300'] },
      ],
    })
    expect(ofType(events, 'done')[0]).not.toHaveProperty('warned')
  })

  it('warns below its minimum, in the language of the question, and stores what readers saw', async () => {
    const world = answering('The Eiffel Tower is 300 metres tall.')
    const support = { minimum: 0.8, below: 'warn' as const }
    const events = await take(world, asking({ question: contentOf('Wie hoch ist denn der Turm?'), support }))
    const [done] = ofType(events, 'done')
    expect(done).toMatchObject({ warned: true, support: [{ support: 'partly' }] })
    expect(textOf(done!.answer)).toMatch(
      /^The Eiffel Tower is 300 metres tall\.\n\nVielleicht ist das nicht die Antwort/,
    )
    expect(textsOf(events)).toBe(textOf(done!.answer))
    expect(world.stored[0]?.[1]?.content).toEqual(done!.answer)
    // Half of it is supported.
    const lower = await take(world, asking({ question, support: { ...support, minimum: 0.5 } }))
    expect(ofType(lower, 'done')[0]).not.toHaveProperty('warned')
  })

  it('withholds the whole answer: no reader sees a word of it, and the trace has it', async () => {
    const world = answering('The Eiffel Tower is 300 metres tall, ', 'said Ferdinand.')
    const support = { minimum: 0.8, below: 'withhold' as const }
    const events = await take(world, asking({ question, support }))
    expect(textsOf(events)).toBe('The documents do not answer this question.')
    const [done] = ofType(events, 'done')
    expect(done).toMatchObject({
      declined: true,
      answer: contentOf('The documents do not answer this question.'),
    })
    expect(JSON.stringify(events)).not.toContain('Ferdinand')
    expect(ofType(events, 'citation')).toEqual([])
    expect(world.finished[0]?.trace.calls.at(-1)?.text).toContain('said Ferdinand.')
    const good = await take(answering('The Eiffel Tower is 330 metres tall.'), asking({ question, support }))
    expect(textsOf(good)).toBe('The Eiffel Tower is 330 metres tall.')
    expect(ofType(good, 'citation')).not.toEqual([])
  })
})

it('a stored turn says the same of its answer', () => {
  const verdict = {
    warned: true as const,
    support: [{ start: 0, end: 3, support: 'partly' as const, missing: ['4'] }],
  }
  const turn = [
    { type: 'usage' as const, usage: { model: 'm' }, timings: {} },
    { type: 'done' as const, finish_reason: 'stop', answer: contentOf('No.'), ...verdict },
  ].reduce(foldBody, emptyTurn())
  const row = turnRow(turn, traceOf(turn), 1, { id: 'c', expiresAt: 2 } as Parameters<typeof turnRow>[3], 'm')
  expect(restoreTurn(row as StoredTurn).verdict).toEqual(verdict)
  expect(restoreTurn({ ...row, verdict: null } as StoredTurn).verdict).toBeUndefined()
})
