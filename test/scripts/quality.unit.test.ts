/** The questions that the built-in answerer is measured on, against the documentation as it is now. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { passages } from '../../scripts/sample.mjs'

interface Asked {
  id: string
  question: string
  documents: string[]
  answers: string[]
}

const read = <T>(name: string): T[] =>
  readFileSync(join(import.meta.dirname, `../../bench/quality/${name}.jsonl`), 'utf8')
    .trim()
    .split('\n')
    .map((line: string) => JSON.parse(line))

const byId = new Map(passages('').map((passage) => [passage.id, passage]))

describe('questions about this documentation', () => {
  it.each(read<Asked>('parley'))('$question', ({ documents, answers }) => {
    for (const id of documents) expect(byId.has(id) ? id : `${id} is gone`).toBe(id)
    const text = documents
      .map((id) => Object.values(byId.get(id)!).join(' '))
      .join(' ')
      .toLowerCase()
    expect(answers.some((answer) => text.includes(answer.toLowerCase()))).toBe(true)
  })
})

it('has a hundred questions and forty that nothing answers, each once', () => {
  const asked = ['parley', 'hono', 'northwind'].flatMap((name) => read<Asked>(name))
  const unanswerable = read<Asked>('unanswerable')
  expect(asked.length).toBeGreaterThanOrEqual(100)
  expect(unanswerable.length).toBeGreaterThanOrEqual(40)
  const all = [...asked, ...unanswerable]
  expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
  expect(new Set(all.map(({ question }) => question)).size).toBe(all.length)
})
