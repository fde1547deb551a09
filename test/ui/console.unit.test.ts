/** What the console reckons: usage, spans of time, and what is known of a turn while it runs. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { priced } from '../../scripts/parley/prices.mjs'
import { type Insight, learn, liveSpans, traceSpans } from '../../ui/console/src/chat/insight'
import { excerpt } from '../../ui/console/src/collections/wire'
import {
  budgetsOf,
  byDay,
  byName,
  ceiling,
  daysOf,
  groupedFailures,
  total,
  type UsageRow,
} from '../../ui/console/src/usage/sums'
import { plain } from '../../ui/widget/src/plain'

const row = fc.record<UsageRow>({
  day: fc.constantFrom('2026-02-27', '2026-02-28', '2026-03-01'),
  key: fc.constantFrom('admin', '1', '2'),
  conversation_model_id: fc.constantFrom('a', 'b'),
  turns: fc.nat(1_000),
  input_tokens: fc.nat(1_000_000),
  output_tokens: fc.nat(1_000_000),
  dollars: fc.nat(1_000),
})

describe('errors', () => {
  test('are grouped by what they say, the most frequent first', () => {
    const turn = (message: string, at: number) => ({
      conversation: `${at}`,
      created_at: at,
      error: { message },
    })
    const groups = groupedFailures([turn('a', 1), turn('b', 5), turn('b', 3), turn('c', 9)])
    expect(groups.map(({ message, count, last }) => [message, count, last.conversation])).toEqual([
      ['b', 2, '5'],
      ['c', 1, '9'],
      ['a', 1, '1'],
    ])
  })
})

describe('usage', () => {
  test('days go on over the end of a month', () => {
    expect(daysOf('2026-02-27', '2026-03-01')).toEqual(['2026-02-27', '2026-02-28', '2026-03-01'])
    expect(daysOf('2026-03-01', '2026-03-01')).toEqual(['2026-03-01'])
  })

  test('sums by day, by key and by model are all of it', () => {
    const days = daysOf('2026-02-26', '2026-03-02')
    fc.assert(
      fc.property(
        fc.array(row),
        fc.constantFrom('turns', 'input_tokens', 'output_tokens', 'dollars'),
        (rows, measure) => {
          const all = total(rows, measure)
          const plotted = byDay(rows, days, measure)
          expect(plotted.map(({ day }) => day)).toEqual(days)
          expect(plotted.reduce((sum, { value }) => sum + value, 0)).toBe(all)
          for (const name of ['key', 'conversation_model_id'] as const) {
            expect(byName(rows, name, measure).reduce((sum, { value }) => sum + value, 0)).toBe(all)
          }
        },
      ),
    )
  })

  const ROW = {
    day: '2026-03-01',
    key: '1',
    conversation_model_id: 'a',
    turns: 3,
    input_tokens: 1_000_000,
    output_tokens: 500_000,
  }

  test('costs money where the price of its model is known', () => {
    const models = [
      { id: 'a', model_name: 'cloudflare/@cf/zai-org/glm-4.7-flash' },
      { id: 'b', model_name: 'openai/gpt' },
      { id: 'c', model_name: 'local/extractive' },
    ]
    const rows = ['a', 'b', 'c', 'gone'].map((id) => ({ ...ROW, conversation_model_id: id }))
    const { rows: withMoney, dollars, unpriced } = priced(rows, models)
    expect(withMoney.map((each) => each.dollars)).toEqual([0.0605 + 0.2, undefined, 0, undefined])
    expect(unpriced).toEqual(['openai/gpt', 'gone'])
    expect(dollars).toBeCloseTo(total(withMoney, 'dollars'))
    expect(priced(rows, models, { 'openai/gpt': { in: 1, out: 2 } }).unpriced).toEqual(['gone'])
  })

  test('is set against budgets, of today alone', () => {
    const rows = [ROW, { ...ROW, day: '2026-02-28' }, { ...ROW, key: '2' }]
    const limited = [
      { id: '1', name: 'one', turns_per_day: 6, tokens_per_day: 1_500_000 },
      { id: '3', name: 'three', turns_per_day: 5 },
      { id: '2', name: 'two' },
    ]
    expect(budgetsOf(limited, rows, 'key', '2026-03-01')).toEqual([
      { name: 'one', unit: 'tokens', used: 1_500_000, most: 1_500_000 },
      { name: 'one', unit: 'turns', used: 3, most: 6 },
      { name: 'three', unit: 'turns', used: 0, most: 5 },
    ])
  })

  test('an axis ends at a round number, not far above what it holds', () => {
    expect([0, 1, 3, 9, 10, 11, 180, 5_001].map(ceiling)).toEqual([1, 1, 4, 10, 10, 20, 200, 6_000])
    expect(ceiling(0.0031)).toBeCloseTo(0.004)
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e12 }), (most) => {
        expect(ceiling(most)).toBeGreaterThanOrEqual(most)
        expect(ceiling(most)).toBeLessThanOrEqual(most * 2.5)
      }),
    )
  })
})

describe('a turn', () => {
  const event = (type: string, data: unknown) => ({ turn: 1, seq: 0, type, data })
  const HIT = {
    document: { id: '1', heading: 'Tides', title: 'The sea' },
    text_match: 7,
    vector_distance: 0.25,
    hybrid_search_info: { rank_fusion_score: 0.8 },
  }

  test('is known better with each event', () => {
    const events = [
      [event('question', { question: 'And why?', standalone: 'Why are there tides?' }), 5],
      [
        event('retrieval', {
          replies: [
            { result: { found: 3, hits: [HIT], request_params: { collection_name: 'sea' } } },
            { error: 'Not found' },
          ],
          sources: [{ collection: 'sea', document_id: '1' }],
          cut: [{ collection: 'sea', document_id: '2', passages: 0, of: 4 }],
        }),
        20,
      ],
      [event('delta', { text: 'The ' }), 90],
      [event('delta', { text: 'moon' }), 95],
      [event('usage', { usage: { model: 'm' }, timings: { finished: 130 } }), 120],
      [event('done', { answer: 'The moon' }), 130],
    ] as const
    const insight = events.reduce<Insight>((known, [next, at]) => learn(known, next, at), {})
    expect(insight).toEqual({
      standalone: 'Why are there tides?',
      searches: [
        {
          collection: 'sea',
          found: 3,
          hits: [{ id: '1', title: 'Tides', text_match: 7, vector_distance: 0.25, score: 0.8 }],
        },
        { collection: '', found: 0, hits: [], error: 'Not found' },
      ],
      sources: [{ collection: 'sea', document_id: '1' }],
      cut: [{ collection: 'sea', document_id: '2', passages: 0, of: 4 }],
      usage: { model: 'm' },
      timings: { finished: 130 },
      retrieved: 20,
      firstWords: 90,
      ended: 130,
    })
    expect(liveSpans(insight, 500).map(({ name, from, to }) => [name, from, to])).toEqual([
      ['Search', 0, 20],
      ['Waiting for model', 20, 90],
      ['Generating', 90, 130],
    ])
    expect(liveSpans({ retrieved: 20 }, 50).at(-1)).toMatchObject({ from: 20, to: 50, running: true })
  })

  test('that has ended has the spans of its trace, in their order', () => {
    const call = { model: 'm', prompt: [], input_tokens: 1, output_tokens: 1 }
    const spans = traceSpans({
      question: 'q',
      searches: [{ collection: 'sea', params: {}, started: 40, took: 10 }],
      calls: [
        { ...call, purpose: 'standalone', started: 0, took: 38 },
        { ...call, purpose: 'answer', started: 52, first_token: 80, took: 60 },
      ],
    })
    expect(spans.map(({ name, from, to }) => [name, from, to])).toEqual([
      ['Rewriting', 0, 38],
      ['Search sea', 40, 50],
      ['Waiting for model', 52, 80],
      ['Generating', 80, 112],
    ])
  })
})

describe('an excerpt of a document', () => {
  test('is its longest text without marks of Markdown, and without its title', () => {
    const text =
      '# Cookies\n\nSet **one** with [the `helper`](/helpers#set) of `hono/cookie`:\n\n```ts\nsetCookie(c)\n```'
    expect(excerpt({ id: 'a', title: 'Cookies', url: 'https://a.example/a-long-address', text })).toBe(
      'Set one with the helper of hono/cookie: setCookie(c)',
    )
    expect(excerpt({ id: 'a', n: 1 })).toBe('')
  })

  test('keeps what is no Markdown, whatever it is', () => {
    expect(plain('| a | b |\n| :-- | --- |\n| `x` | *two* |')).toBe('a · b x · two')
    expect(plain('Call `__init__` of gnuplot*line1Color: `2 * 3 * 4`')).toBe(
      'Call __init__ of gnuplot*line1Color: 2 * 3 * 4',
    )
    expect(plain('a * b < c, snake_case and 2 > 1 [note]')).toBe('a * b < c, snake_case and 2 > 1 [note]')
    fc.assert(fc.property(fc.string(), (text) => plain(text).length <= text.length))
    // A line that begins with three colons is a mark of some site generators.
    const word = fc.stringMatching(/^[a-z0-9.,;:!?]+$/).filter((text) => !text.startsWith(':::'))
    const words = fc.array(word, { minLength: 1 })
    fc.assert(fc.property(words, (all) => plain(all.join(' ')) === all.join(' ').trim()))
  })
})
