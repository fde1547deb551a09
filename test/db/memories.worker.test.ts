/** What a page of memories or messages costs, in rows that the database reads: the same however many there are. */
import { env } from 'cloudflare:test'
import { beforeAll, describe, expect, test } from 'vitest'
import { database } from '../../src/db/client'
import { pageOfConversations, pageOfTurns } from '../../src/db/memories'

const db = database(env)
const PAGE = { limit: 10, offset: 0, now: 0 }

const insert = async (owner: string, many: number): Promise<void> => {
  await env.DB.prepare(
    `INSERT INTO conversations (id, history_id, model_id, owner, user_id, proof, protocol, title, turns, created_at, updated_at, expires_at)
      SELECT ?1 || value, 'h', 'm', ?1, '', '', 'opensearch', 't', 0, value, -value, 9e15
      FROM json_each(?2)`,
  )
    .bind(owner, JSON.stringify(Array.from({ length: many }, (_, at) => at)))
    .run()
  await env.DB.prepare(
    `INSERT INTO turns (conversation_id, turn, question, answer, finish_reason, citations, usage, timings, trace, created_at, expires_at)
      SELECT ?1, value, 'q', 'a', 'stop', '[]', '{}', '{}', '{}', value, 9e15 FROM json_each(?2)`,
  )
    .bind(owner, JSON.stringify(Array.from({ length: many }, (_, at) => at)))
    .run()
}

async function rowsRead(query: { toSQL(): { sql: string; params: unknown[] } }): Promise<number> {
  const { sql, params } = query.toSQL()
  const { meta, results } = await env.DB.prepare(sql)
    .bind(...params)
    .all()
  expect(results).toHaveLength(10)
  return meta.rows_read
}

describe('a page of ten', () => {
  beforeAll(async () => {
    await insert('few', 20)
    await insert('many', 20_000)
  })

  test.each(['createdAt', 'updatedAt'] as const)('of memories by %s', async (by) => {
    const few = await rowsRead(pageOfConversations(db, { owner: 'few' }, by, PAGE))
    const many = await rowsRead(pageOfConversations(db, { owner: 'many' }, by, PAGE))
    const all = await rowsRead(pageOfConversations(db, {}, by, PAGE))
    expect([many, all]).toEqual([few, few])
  })

  test.each(['asc', 'desc'] as const)('of messages, %s', async (order) => {
    const few = await rowsRead(pageOfTurns(db, 'few', order, PAGE))
    expect(await rowsRead(pageOfTurns(db, 'many', order, PAGE))).toBe(few)
  })
})
