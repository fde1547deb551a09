/** The tables of a conversation: those of storage format 1 stay as they are, and what is older is refused with what to do. */
import { runInDurableObject } from 'cloudflare:test'
import { expect, it } from 'vitest'
import { migrate, TurnLog } from '../../src/conversation/turn-log'
import { stub } from './stage'

type Row = Record<string, SqlStorageValue>

/** Every table with its columns in order, and the version. */
const tablesAfter = (make: (sql: SqlStorage) => void) =>
  runInDurableObject(stub(crypto.randomUUID()), (_, { storage: { sql } }) => {
    make(sql)
    const tables = sql
      .exec<{ name: string }>(
        "SELECT name FROM sqlite_master WHERE name NOT LIKE '\\_cf%' ESCAPE '\\' ORDER BY name",
      )
      .toArray()
      .map(({ name }): [string, Row[]] => [name, sql.exec<Row>(`PRAGMA table_info(${name})`).toArray()])
    const versions = sql.exec<Row>('SELECT version FROM migrations ORDER BY version').toArray()
    return { tables, versions }
  })

it('an object that has its tables keeps them as they are', async () => {
  const once = await tablesAfter(migrate)
  expect(once.tables.map(([name]) => name)).toEqual([
    'log',
    'meta',
    'migrations',
    'outbox',
    'records',
    'results',
    'sqlite_sequence',
    'turns',
  ])
  const twice = await tablesAfter((sql) => {
    migrate(sql)
    migrate(sql)
  })
  expect(twice).toEqual(once)
})

it.each([
  ['with tables from before format 1', 'DELETE FROM migrations WHERE version >= 6'],
  [
    'with a log from before format 1',
    "INSERT INTO turns (status, started_at, version) VALUES ('done', 0, 2); INSERT INTO log VALUES (1, 0, '')",
  ],
])('a conversation %s is refused', async (_, older) => {
  await runInDurableObject(stub(crypto.randomUUID()), (_object, { storage: { sql } }) => {
    migrate(sql)
    sql.exec(older)
    expect(() => migrate(sql)).toThrow('from before storage format 1')
  })
})

it('a turn that came from a backup, which has no log, is of no older format', async () => {
  await runInDurableObject(stub(crypto.randomUUID()), (_object, { storage: { sql } }) => {
    migrate(sql)
    new TurnLog(sql, 'c').continueAfter(3, 0, 1)
    expect(() => migrate(sql)).not.toThrow()
  })
})

it('the questions of turns from before their column come from the logs', async () => {
  await runInDurableObject(stub(crypto.randomUUID()), (_object, { storage: { sql } }) => {
    migrate(sql)
    sql.exec(
      'ALTER TABLE turns DROP COLUMN question; ALTER TABLE turns DROP COLUMN request; ALTER TABLE turns DROP COLUMN runs; DELETE FROM migrations WHERE version >= 7',
    )
    const begin = { type: 'begin', question: [{ type: 'text', text: 'What is "x"?' }] }
    const lines = [
      `${JSON.stringify(begin)}\n{"type":"delta","te`,
      '{"type":"begin","question":[{"ty',
      undefined,
    ]
    for (const [at, line] of lines.entries()) {
      sql.exec("INSERT INTO turns (status, started_at, version) VALUES ('done', 0, 3)")
      if (line !== undefined) sql.exec('INSERT INTO log VALUES (?, 0, ?)', at + 1, line)
    }
    migrate(sql)
    const questions = sql.exec('SELECT question FROM turns ORDER BY turn').toArray()
    expect(questions.map(({ question }) => question)).toEqual(['What is "x"?', null, null])
  })
})
