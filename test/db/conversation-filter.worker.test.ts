/** What a narrowed list of conversations costs, in rows that the database reads, of many conversations. */
import { env } from 'cloudflare:test'
import { beforeAll, describe, expect, test } from 'vitest'
import type { ConversationFilter } from '../../src/db/conversations'
import { listConversationRows } from '../../src/db/conversations'
import { watched } from './watched'

const MANY = 20_000
const numbers = JSON.stringify(Array.from({ length: MANY }, (_, at) => at))

async function run(sql: string): Promise<void> {
  await env.DB.prepare(sql)
    .bind(...(sql.includes('?1') ? [numbers] : []))
    .run()
}

async function list(filter: ConversationFilter, scope: { owner?: string } = {}) {
  const { db, seen } = watched()
  const rows = await listConversationRows(db, { ...scope, filter, limit: 10, now: 0 })
  return { ids: rows.map(({ id }) => id), read: seen.read }
}

beforeAll(async () => {
  await run(
    `INSERT INTO conversations (id, history_id, model_id, owner, user_id, protocol, title, turns, created_at, updated_at, expires_at, failed_at)
      SELECT 'c' || value, 'h', 'm', value % 7, '', 'parley', 't', 1, value, value, 9e15, iif(value % 5000 = 1, value, NULL)
      FROM json_each(?1)`,
  )
  await run(
    `INSERT INTO turns (conversation_id, turn, question, answer, finish_reason, citations, usage, timings, trace, created_at, expires_at)
      SELECT 'c' || value, 1, 'What is number ' || value || '?', iif(value % 5000 = 3, 'A quokka', 'Common words') || ' 数字です。',
        'stop', iif(value % 5 = 4, '[]', '[1]'), '{}', '{"finished":1}', '{}', value, 9e15
      FROM json_each(?1)`,
  )
  await run(
    `INSERT INTO feedback (conversation_id, turn, giver, rating, comment, reasons, created_at, updated_at)
      SELECT 'c' || value, 1, 'g', iif(value % 5000 = 2, 'down', 'up'), '', '[]', value, value
      FROM json_each(?1) WHERE value % 100 = 2`,
  )
})

const words = (...given: string[]) => ({ words: { words: given, parts: [] } })

describe('of 20,000 conversations', () => {
  test.each<[string, ConversationFilter, string[], number]>([
    ['a rare word', words('quokka'), ['c15003', 'c10003', 'c5003', 'c3'], 100],
    ['two words', words('quokka', 'number'), ['c15003', 'c10003', 'c5003', 'c3'], 100],
    ['the beginning of a word', words('quok'), ['c15003', 'c10003', 'c5003', 'c3'], 100],
    ['a rare rating', { rating: 'down' }, ['c15002', 'c10002', 'c5002', 'c2'], 100],
    ['failures', { failed: true }, ['c15001', 'c10001', 'c5001', 'c1'], 100],
    ['a word and a rating', { ...words('number'), rating: 'down' }, ['c15002'], 60_000],
  ])('%s leads to those that have it', async (_, filter, ids, most) => {
    const found = await list(filter)
    expect(found.ids).toEqual(ids)
    expect(found.read).toBeLessThan(most)
  })

  test('answers that cite nothing are found while the list is read', async () => {
    const { ids, read } = await list({ unanswered: true })
    expect(ids).toEqual(Array.from({ length: 10 }, (_, at) => `c${MANY - 1 - 5 * at}`))
    expect(read).toBeLessThan(400)
  })

  test('a window of time bounds what is read', async () => {
    const { ids, read } = await list({ from: 100, to: 105 })
    expect(ids).toEqual(['c104', 'c103', 'c102', 'c101', 'c100'])
    expect(read).toBeLessThan(50)
  })

  test('a word that is everywhere is looked for in the latest turns alone', async () => {
    const { ids, read } = await list(words('number'))
    expect(ids[0]).toBe(`c${MANY - 1}`)
    expect(read).toBeLessThan(6 * 5_000 + 1_000)
    expect((await list(words('number', '15'))).ids).toContain('c15999')
  })

  test('a run of a script without spaces is found anywhere', async () => {
    const { ids } = await list({ words: { words: [], parts: ['字で'] } })
    expect(ids).toHaveLength(10)
  })

  test("a key's list keeps to the key", async () => {
    expect((await list(words('quokka'), { owner: '3' })).ids).toEqual(['c3'])
  })
})
