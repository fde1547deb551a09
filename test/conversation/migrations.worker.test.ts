/** A new object creates its tables at once. They are those that the migrations make step by step. */
import { runInDurableObject } from 'cloudflare:test'
import { expect, it } from 'vitest'
import { migrate, upgradeTables } from '../../src/conversation/migrations'
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
    const rowless = sql
      .exec<Row>("SELECT name FROM sqlite_master WHERE sql LIKE '%WITHOUT ROWID' ORDER BY name")
      .toArray()
    const versions = sql.exec<Row>('SELECT version FROM migrations ORDER BY version').toArray()
    return { tables, rowless, versions }
  })

it('a new object has the tables that the migrations make', async () => {
  const { tables, rowless, versions } = await tablesAfter(migrate)
  expect(tables.map(([name]) => name)).toEqual(
    expect.arrayContaining([
      'log',
      'meta',
      'migrations',
      'outbox',
      'records',
      'results',
      'sqlite_sequence',
      'turns',
    ]),
  )
  expect(tables.find(([name]) => name === 'turns')?.[1].length).toBeGreaterThan(5)
  expect({ tables, rowless, versions }).toEqual(await tablesAfter(upgradeTables))
})

it('an object that has its tables keeps them as they are', async () => {
  const once = await tablesAfter(migrate)
  const twice = await tablesAfter((sql) => {
    migrate(sql)
    migrate(sql)
  })
  expect(twice).toEqual(once)
})
