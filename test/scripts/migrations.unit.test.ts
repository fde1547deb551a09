/** The database of a data folder is brought up to date as wrangler does it, and in wrangler's own table. */
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { migrate } from '../../scripts/migrations.mjs'
import { runWrangler } from '../../scripts/wrangler.mjs'

const MIGRATIONS = join(import.meta.dirname, '../../migrations')
const names = readdirSync(MIGRATIONS)
  .filter((name) => name.endsWith('.sql'))
  .sort()

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-migrations-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const wrangler = (...args: string[]) => runWrangler(['d1', ...args, '--local', '--persist-to', folder])
/** The only database of the folder that has migrations. */
const tableOfMigrations = () =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.sqlite'))
    .flatMap((name) => {
      using database = new DatabaseSync(join(folder, name), { readOnly: true })
      return database.prepare("SELECT sql FROM sqlite_master WHERE name = 'd1_migrations'").all()
    })

test('all migrations are applied once, and wrangler finds none that waits', {
  timeout: 120_000,
}, async () => {
  expect(await migrate(folder)).toEqual(names)
  expect(await migrate(folder)).toEqual([])
  expect(await wrangler('migrations', 'list', 'DB')).toContain('No migrations to apply')
})

test('it goes on where wrangler was', { timeout: 120_000 }, async () => {
  // As wrangler notes it: this one makes what the next ones need.
  const first = mkdtempSync(join(tmpdir(), 'parley-first-'))
  cpSync(join(MIGRATIONS, names[0]!), join(first, names[0]!))
  await migrate(folder, first)
  rmSync(first, { recursive: true })
  const created = expect.stringContaining('applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL')
  expect(tableOfMigrations()).toEqual([{ sql: created }])
  expect(await migrate(folder)).toEqual(names.slice(1))
})

test('a migration that fails leaves nothing behind, and is named', { timeout: 120_000 }, async () => {
  const own = join(folder, 'own')
  cpSync(MIGRATIONS, own, { recursive: true })
  writeFileSync(join(own, '9999_bad.sql'), 'CREATE TABLE left_behind (a);\nINSERT INTO nowhere VALUES (1);')
  await expect(migrate(folder, own)).rejects.toThrow(/9999_bad\.sql failed: .*nowhere/)
  writeFileSync(join(own, '9999_bad.sql'), 'CREATE TABLE left_behind (a);')
  expect(await migrate(folder, own)).toEqual(['9999_bad.sql'])
})
