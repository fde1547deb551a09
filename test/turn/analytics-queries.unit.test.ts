/** The queries of docs/operating.md, beside the data points that turns write. Analytics Engine names columns by their places. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Turn } from '../../src/turn/fold'
import { logTurn, type TurnClock } from '../../src/turn/turn-line'

const page = readFileSync(join(import.meta.dirname, '../../docs/operating.md'), 'utf8')
const section = page.split(/^## /m).find((each) => each.startsWith('How do I count turns'))!

/** What the page says of each column: `double4` -> `first_token_ms`. */
const columns = new Map(
  [...section.matchAll(/^\| (`(?:index|blob|double)\d+`.*?) \| (.*?) \|$/gm)].flatMap(([, left, right]) => {
    const named = [...left!.matchAll(/`(\w+)`/g)].map(([, name]) => name!)
    const fields = [...right!.matchAll(/`(\w+)`/g)].map(([, name]) => name!)
    return named.map((column, at): [string, string] => [column, fields[at] ?? fields[0]!])
  }),
)

const queries = [...section.matchAll(/```sql\n([\s\S]*?)```/g)].map(([, sql]) => sql!)

/** What Analytics Engine's SQL has: https://developers.cloudflare.com/analytics/analytics-engine/sql-reference/ */
const WORDS = [
  ...['AND', 'AS', 'BY', 'DAY', 'FROM', 'GROUP', 'HOUR', 'INTERVAL', 'ORDER', 'SELECT', 'WHERE'],
  ...['NOW', 'SUM', 'quantileExactWeighted', 'toStartOfInterval', 'timestamp', '_sample_interval'],
]

/** The point of a turn whose figures all differ. */
function written(): AnalyticsEngineDataPoint {
  const points: AnalyticsEngineDataPoint[] = []
  const env = {
    LOG_REQUESTS: 'off',
    CF_VERSION_METADATA: { id: 'a version' },
    TURNS: { writeDataPoint: (point: AnalyticsEngineDataPoint) => void points.push(point) },
  }
  const turn = {
    turn: 1,
    calls: [{ call: { purpose: 'answer', model: 'an answerer', input_tokens: 11, output_tokens: 12 } }],
    searches: [{ search: { took: 13 } }, { search: { took: 5, error: 'x' } }],
    passages: [{}, {}, {}],
    finishReason: 'a reason',
    error: { code: 'an outcome', status: 418 },
  }
  const clock = { times: { ms: 21, waited_ms: 22, first_token_ms: 23 } }
  logTurn(
    env as never,
    turn as never as Turn,
    { protocol: 'a protocol', model: { id: 'a model' } } as never,
    clock as never as TurnClock,
  )
  return points[0]!
}

test('the page names every column of a data point, by what is in it', () => {
  const { indexes, blobs, doubles } = written()
  const named = Object.fromEntries([
    ['index1', new TextDecoder().decode(indexes![0] as ArrayBuffer)],
    ...blobs!.map((text, at) => [`blob${at + 1}`, text]),
    ...doubles!.map((number, at) => [`double${at + 1}`, number]),
  ])
  expect([...columns.keys()].sort()).toEqual(Object.keys(named).sort())
  const values = {
    ...{ model: 'a model', outcome: 'an outcome', protocol: 'a protocol', answered_by: 'an answerer' },
    ...{
      version: 'a version',
      finish_reason: 'a reason',
      status: 418,
      hits: 3,
      searches: 2,
      failed_searches: 1,
    },
    ...{ ms: 21, waited_ms: 22, search_ms: 13, first_token_ms: 23, input_tokens: 11, output_tokens: 12 },
  }
  const documented = [...columns].map(([column, field]) => [column, values[field as keyof typeof values]])
  expect(Object.fromEntries(documented)).toEqual(named)
})

test('each query takes columns that there are, under their names, from the dataset of the page', () => {
  const [, dataset] = /^dataset = "(\w+)"$/m.exec(section)!
  expect(queries.length).toBeGreaterThanOrEqual(3)
  for (const query of queries) {
    expect(query).toContain(`FROM ${dataset} `)
    const aliases = [...query.matchAll(/ AS (\w+)/g)].map(([, alias]) => alias!)
    const words = query.replace(/'[^']*'/g, '').match(/[A-Za-z_]\w*/g)!
    const unknown = words.filter((word) => ![...WORDS, ...aliases, ...columns.keys(), dataset].includes(word))
    expect([query, unknown]).toEqual([query, []])
    for (const [, column, alias] of query.matchAll(/\b(blob\d+) AS (\w+)/g))
      expect(columns.get(column!)).toBe(alias)
  }
})

test('percentiles are of the time to the first words, and tokens of the tokens', () => {
  const [, percentiles, tokens] = queries
  const of = (query: string) => [...new Set(query.match(/double\d+/g))].map((column) => columns.get(column))
  expect(of(percentiles!)).toEqual(['first_token_ms'])
  expect(of(tokens!)).toEqual(['input_tokens', 'output_tokens'])
})
