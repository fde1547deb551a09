import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { comparison, summaryLines } from '../../../scripts/parley/commands/eval.mjs'
import {
  comparedRuns,
  type Outcome,
  outcomeOf,
  parseQuestions,
  summaryOf,
  verdictOf,
} from '../../../scripts/parley/eval/outcomes.mjs'

const hits = (...ids: string[]) => ({ hits: ids.map((id) => ({ document: { id } })) })
const ASKED = { question: 'How long?', relevant: ['reef'], answer: 'five years' }
const GOOD = { answer: 'Five years.', citations: [{ document_id: 'reef' }], results: [hits('inn', 'reef')] }

describe('a set of questions', () => {
  it('is read line by line', () => {
    expect(parseQuestions('{"question":"a"}\n\n{"question":"b","unanswerable":true}\n')).toHaveLength(2)
  })

  it('may be plain text: a question, what is to be said, and where it stands', () => {
    const text = `# The inn
      When do you open?
      When do you open? => at ten | ten o'clock
      When do you open? @ inn/hours.md, inn/room.md~2
      When do you open? => ten @ inn/hours.md
      Do you sell shoes? =>`
    const question = 'When do you open?'
    expect(parseQuestions(text)).toEqual([
      { question },
      { question, answer: ['at ten', "ten o'clock"] },
      { question, relevant: ['inn/hours.md', 'inn/room.md~2'] },
      { question, answer: ['ten'], relevant: ['inn/hours.md'] },
      { question: 'Do you sell shoes?', unanswerable: true },
    ])
  })

  it.each(['parley', 'unanswerable'])('is what measures Parley: %s', (name) => {
    const text = readFileSync(join(import.meta.dirname, `../../../bench/quality/${name}.jsonl`), 'utf8')
    expect(parseQuestions(text).length).toBeGreaterThan(5)
  })

  it.each([
    ['{"question":"a"}\n{"q":1}', /^line 2: it has no `question`/],
    ['{"question":"a"}\n{', /^line 2: /],
    ['[\n]', /^line 1: it has no question/],
    ['=> ten', /^line 1: it has no question/],
    ['{"question":"a","relevant":"x"}', /^line 1: `relevant`/],
    ['{"question":"a","answer":5}', /^line 1: `answer`/],
    ['{"question":"a","answer":""}', /^line 1: `answer`/],
  ])('names the line that is wrong: %j', (text, message) => {
    expect(() => parseQuestions(text)).toThrow(message)
  })
})

describe('an outcome', () => {
  it('says at which rank the expected document came, and what is said of the expected words', () => {
    expect(outcomeOf(ASKED, GOOD, 5)).toMatchObject({
      found: ['inn', 'reef'],
      rank: 2,
      cited_right: true,
      said: 1,
      declined: false,
    })
    expect(outcomeOf(ASKED, { ...GOOD, results: [hits('inn')] }, 5)).toMatchObject({ rank: 0 })
  })

  it('counts a passage of a page where the page is expected, and a passage where that one is', () => {
    const asked = { question: 'How long?', relevant: ['sea/reef.md', 'sea/inn.md~rooms'] }
    const results = [hits('sea/reef.markdown', 'sea/reef.md~film', 'sea/inn.md', 'sea/inn.md~rooms')]
    const citations = [{ document_id: 'sea/reef.md~film' }]
    const turn = { ...GOOD, citations, results }
    expect(outcomeOf(asked, turn, 5)).toMatchObject({ rank: 2, cited_right: true })
    expect(outcomeOf(asked, { ...turn, results: [hits('sea/inn.md')], citations: [] }, 5)).toMatchObject({
      rank: 0,
      cited_right: false,
    })
  })

  it('is the same from JSON and from events', () => {
    const { results, ...rest } = GOOD
    const replies = results.map((result) => ({ result }))
    expect(outcomeOf(ASKED, { ...rest, replies }, 5)).toEqual(outcomeOf(ASKED, GOOD, 5))
  })

  it('ranks what several searches found by their places, each document once', () => {
    const results = [hits('a', 'b', 'c'), hits('x', 'a', 'reef')]
    expect(outcomeOf(ASKED, { ...GOOD, results }, 5)).toMatchObject({
      found: ['a', 'x', 'b', 'c', 'reef'],
      rank: 5,
    })
  })

  it('has its tokens, and its cost where the price of the model is known', () => {
    const usage = { model: 'openai/own', input_tokens: 1_000, output_tokens: 500 }
    const prices = { 'openai/own': { in: 2, out: 4 } }
    expect(outcomeOf(ASKED, { ...GOOD, usage }, 5, prices)).toMatchObject({ tokens: 1_500, dollars: 0.004 })
    expect(outcomeOf(ASKED, { ...GOOD, usage }, 5)).not.toHaveProperty('dollars')
  })

  it('of a failure is its error', () => {
    expect(outcomeOf(ASKED, { error: 'no' }, 5)).toMatchObject({ error: 'no', answer: '' })
  })
})

describe('a verdict', () => {
  const SOURCE = { question: 'q', relevant: ['reef'] }
  const WORDS = { question: 'q', answer: 'It was filmed for 5 years' }
  const NONE = { question: 'q', unanswerable: true }
  const DECLINED = { answer: 'I do not know.', citations: [] }
  const said = (answer: string) => ({ ...GOOD, answer })
  const citing = (id: string) => ({ ...GOOD, citations: [{ document_id: id }] })

  it.each([
    ['right', ASKED, GOOD],
    ['partly', ASKED, citing('inn')],
    ['partly', ASKED, said('A long time.')],
    ['wrong', ASKED, { ...citing('inn'), answer: 'A long time.' }],
    ['declined wrongly', ASKED, DECLINED],
    ['failed', ASKED, { error: 'no' }],
    ['right', SOURCE, GOOD],
    ['partly', SOURCE, citing('inn')],
    ['wrong', SOURCE, { ...citing('inn'), results: [hits('inn')] }],
    ['right', WORDS, said('They filmed it for 5 years: it was hard.')],
    ['partly', WORDS, said('It was filmed, and I waited 5 hours.')],
    ['wrong', WORDS, said('It was filmed for 6 years.')],
    ['declined rightly', NONE, DECLINED],
    ['wrong', NONE, GOOD],
    ['answered', { question: 'q' }, GOOD],
    ['right', { question: 'q', answer: ['six', 'five years'] }, GOOD],
    ['wrong', { question: 'q', answer: 'ten' }, said('Often.')],
    ['wrong', { question: 'q', answer: '--port' }, said('Take another port.')],
    ['right', { question: 'q', answer: '--port' }, said('Give `--port 80`.')],
    ['right', { question: 'q', answer: '五年' }, said('撮影は五年間続いた。')],
  ])('is %s: %j, %j', (verdict, asked, turn) => {
    expect(verdictOf(outcomeOf(asked, turn, 5))).toBe(verdict)
  })
})

describe('a run', () => {
  const outcome = (parts: Partial<Outcome>): Outcome => ({ ...outcomeOf(ASKED, GOOD, 5), ...parts })
  const RUN = [
    outcome({ rank: 1, ms: 100, tokens: 10, dollars: 0.5 }),
    outcome({ rank: 3, ms: 300, tokens: 20, said: 0 }),
    outcome({ rank: 0, ms: 2_500, said: 0, cited_right: false, warned: true }),
    outcome({ declined: true, unanswerable: true }),
  ]

  it('comes to counts of verdicts, places, tokens, money and times', () => {
    expect(summaryOf(RUN)).toEqual({
      questions: 4,
      right: 1,
      partly: 1,
      wrong: 1,
      declined_rightly: 1,
      declined_wrongly: 0,
      failed: 0,
      right_warned: 0,
      wrong_warned: 1,
      first: 0.25,
      first_3: 0.75,
      found: 0.75,
      tokens: 30,
      dollars: 0.5,
      ms: 300,
      slowest_ms: 2_500,
    })
    expect(summaryOf([])).toMatchObject({ questions: 0, right: 0 })
  })

  it('is told in words, question by question', () => {
    const lines = summaryLines([...RUN, outcomeOf(ASKED, { error: 'The model failed.' }, 5)])
    expect(lines[0]).toBe(
      'right             How long?\n                  rank 1 · 10 tokens · $0.5000 · 100 ms',
    )
    expect(lines[2]).toBe('wrong             How long?\n                  with a warning · not found · 2.5 s')
    expect(lines[4]).toBe('failed            How long?\n                  The model failed.')
    expect(lines).toContain('Among the first three              75%')
  })

  it('is compared with another question by question, by page and by command line alike', () => {
    const before = [outcomeOf(ASKED, { error: 'no' }, 5), outcomeOf({ question: 'Same?' }, GOOD, 5)]
    const after = [outcomeOf(ASKED, GOOD, 7), outcomeOf({ question: 'Same?' }, GOOD, 7)]
    const { figures, questions } = comparedRuns(before, after)
    expect(figures).toContainEqual({ name: 'failed', before: 1, now: 0 })
    expect(questions.map(({ changes }) => changes.length > 0)).toEqual([true, false])
    expect(questions[0]!.changes).toContain('failed before, right now')
    expect(comparison(before, after)).toContain('  failed before, right now')
  })
})
