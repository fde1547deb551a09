import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { comparison } from '../../../scripts/parley/commands/eval.mjs'
import { comparedRuns, outcomeOf, parseQuestions, summaryOf } from '../../../scripts/parley/eval/outcomes.mjs'

const hits = (...ids: string[]) => ({ hits: ids.map((id) => ({ document: { id } })) })
const ASKED = { question: 'How long?', relevant: ['reef'], answer: 'five years' }
const GOOD = { answer: 'Five years.', citations: [{ document_id: 'reef' }], results: [hits('inn', 'reef')] }

describe('a set of questions', () => {
  it('is read line by line', () => {
    expect(parseQuestions('{"question":"a"}\n\n{"question":"b","unanswerable":true}\n')).toHaveLength(2)
  })

  it.each(['parley', 'unanswerable'])('is what measures Parley: %s', (name) => {
    const text = readFileSync(join(import.meta.dirname, `../../../bench/quality/${name}.jsonl`), 'utf8')
    expect(parseQuestions(text).length).toBeGreaterThan(5)
  })

  it.each([
    ['{"question":"a"}\n{"q":1}', /^line 2: it has no `question`/],
    ['{"question":"a"}\n{', /^line 2: /],
    ['null', /^line 1: /],
    ['{"question":"a","relevant":"x"}', /^line 1: `relevant`/],
  ])('names the line that is wrong: %j', (text, message) => {
    expect(() => parseQuestions(text)).toThrow(message)
  })
})

describe('an outcome', () => {
  it('says at which rank the expected document came, and how good the answer is', () => {
    expect(outcomeOf(ASKED, GOOD, 5)).toMatchObject({
      found: ['inn', 'reef'],
      rank: 2,
      recall_5: 1,
      cited_right: true,
      f1: 1,
      declined: false,
    })
    expect(outcomeOf(ASKED, { ...GOOD, results: [hits('inn')] }, 5)).toMatchObject({ rank: 0, recall_5: 0 })
  })

  it('counts the passages of a page where the page is expected, once, and a passage where that one is', () => {
    const asked = { question: 'How long?', relevant: ['sea/reef.md', 'sea/inn.md~rooms'] }
    const results = [
      hits('sea/reef.markdown', 'sea/reef.md~film', 'sea/reef.md~film~2', 'sea/inn.md', 'sea/inn.md~rooms'),
    ]
    const citations = [{ document_id: 'sea/reef.md~film' }]
    const turn = { ...GOOD, citations, results }
    expect(outcomeOf(asked, turn, 5)).toMatchObject({ rank: 2, recall_5: 1, cited_right: true })
    expect(outcomeOf(asked, { ...turn, results: [hits('sea/inn.md')], citations: [] }, 5)).toMatchObject({
      rank: 0,
      recall_5: 0,
      cited_right: false,
    })
  })

  it('is the same from JSON and from events', () => {
    const { results, ...rest } = GOOD
    const replies = results.map((result) => ({ result }))
    expect(outcomeOf(ASKED, { ...rest, replies }, 5)).toEqual(outcomeOf(ASKED, GOOD, 5))
  })

  it('of a failure is its error', () => {
    expect(outcomeOf(ASKED, { error: 'no' }, 5)).toMatchObject({ error: 'no', answer: '' })
  })
})

it('two runs are compared question by question, by page and by command line alike', () => {
  const before = [outcomeOf(ASKED, { error: 'no' }, 5), outcomeOf({ question: 'Same?' }, GOOD, 5)]
  const after = [outcomeOf(ASKED, GOOD, 7), outcomeOf({ question: 'Same?' }, GOOD, 7)]
  const { figures, questions } = comparedRuns(before, after)
  expect(figures).toContainEqual({ name: 'errors', before: 1, now: 0 })
  expect(questions.map(({ changes }) => changes.length > 0)).toEqual([true, false])
  expect(questions[0]!.changes).toContain('no longer fails')
  expect(comparison(before, after)).toContain('  no longer fails')
  expect(summaryOf(after)).toMatchObject({ questions: 2, errors: 0, recall_5: 1 })
})
