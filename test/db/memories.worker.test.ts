/** What a page of memories or messages costs, in rows that the database reads: the same however many there are. */
import { env } from 'cloudflare:test'
import { beforeAll, describe, expect, test } from 'vitest'
import type { Database } from '../../src/db/client'
import {
  listConversationRows,
  messagesBeforeTurns,
  pageOfConversations,
  pageOfTurns,
} from '../../src/db/conversations'
import { watched } from './watched'

const PAGE = { limit: 10, offset: 0, now: 0 }

const numbers = (many: number): string => JSON.stringify(Array.from({ length: many }, (_, at) => at))

/** @param some `owner`, `user` and how many conversations they have */
async function insert([owner, user, many]: readonly [string, string, number]): Promise<void> {
  const proof = user === '' ? '' : `user:${user}`
  await env.DB.prepare(
    `INSERT INTO conversations (id, history_id, model_id, owner, user_id, proof, protocol, title, turns, created_at, updated_at, expires_at)
      SELECT ?1 || ?2 || value, 'h', 'm', ?1, ?2, ?3, 'opensearch', 't', 0, value, -value, 9e15
      FROM json_each(?4)`,
  )
    .bind(owner, user, proof, numbers(many))
    .run()
}

async function insertTurns(id: string, many: number): Promise<void> {
  await env.DB.prepare(
    `INSERT INTO turns (conversation_id, turn, question, answer, finish_reason, citations, usage, timings, trace, created_at, expires_at)
      SELECT ?1, value, 'q', 'a', 'stop', '[]', '{}', '{}', '{}', 1e12 + value, 9e15 FROM json_each(?2)`,
  )
    .bind(id, numbers(many))
    .run()
}

/** Messages of a transcript that was there before the first turn. */
async function insertTranscript(id: string, many: number): Promise<void> {
  await env.DB.prepare(
    `INSERT INTO messages (history_id, document_id, conversation_id, model_id, role, message, timestamp)
      SELECT 'h', ?1 || value, ?1, 'm', iif(value % 2, 'assistant', 'user'), 'said', value FROM json_each(?2)`,
  )
    .bind(id, numbers(many))
    .run()
}

async function rowsRead(list: (db: Database) => Promise<unknown[]>, rows = 10): Promise<number> {
  const { db, seen } = watched()
  expect(await list(db)).toHaveLength(rows)
  return seen.read
}

const MANY = 20_000

describe('a page of ten', () => {
  beforeAll(async () => {
    const crowds = [
      ['few', '', 20],
      ['many', '', MANY],
      ['few', 'ann', 20],
      ['many', 'bob', MANY],
      // Of one key and one user there are few, but each of them has many with others.
      ['many', 'cat', 20],
      ['other', 'cat', MANY],
    ] as const
    for (const crowd of crowds) await insert(crowd)
    await insertTurns('few', 20)
    await insertTurns('many', MANY)
    await insertTurns('short', 1)
    await insertTurns('long', 1)
    await insertTranscript('short', 40)
    await insertTranscript('long', MANY)
  })

  const SCOPES = [
    ['everybody', {}],
    ['a key', { owner: 'many' }],
    ['a user', { userId: 'bob' }],
    ['a user of a key', { owner: 'many', userId: 'bob' }],
    ['a user of a key, both of whom have many others', { owner: 'many', userId: 'cat' }],
    ['a proven user', { owner: 'many', userId: 'bob', proof: 'user:bob' }],
    ['a proven user who has many others', { owner: 'many', userId: 'cat', proof: 'user:cat' }],
  ] as const

  describe.each(SCOPES)("of %s's memories", (_, scope) => {
    test.each(['createdAt', 'updatedAt'] as const)('by %s', async (by) => {
      const few = await rowsRead((db) => pageOfConversations(db, { owner: 'few' }, by, PAGE))
      expect(await rowsRead((db) => pageOfConversations(db, scope, by, PAGE))).toBe(few)
    })

    test("in Parley's own list", async () => {
      const few = await rowsRead((db) => listConversationRows(db, { owner: 'few', limit: 10, now: 0 }))
      // Conversations of the same millisecond are read together to be put in order.
      const read = await rowsRead((db) => listConversationRows(db, { ...scope, limit: 10, now: 0 }))
      expect(read).toBeLessThan(2 * few)
    })
  })

  test.each(['asc', 'desc'] as const)('of messages, %s', async (order) => {
    const few = await rowsRead((db) => pageOfTurns(db, 'few', order, PAGE))
    expect(await rowsRead((db) => pageOfTurns(db, 'many', order, PAGE))).toBe(few)
  })

  test('of messages from before the first turn', async () => {
    const few = await rowsRead((db) => messagesBeforeTurns(db, 'short', 10))
    expect(await rowsRead((db) => messagesBeforeTurns(db, 'long', 10))).toBe(few)
    expect(await rowsRead((db) => messagesBeforeTurns(db, 'short', 100), 40)).toBeLessThan(100)
  })
})
