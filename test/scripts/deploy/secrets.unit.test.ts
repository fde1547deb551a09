import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeSecrets, secretsFile } from '../../../scripts/deploy/names.mjs'

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'parley-secrets-'))
  file = secretsFile('account', 'parley', { PARLEY_DEPLOY_FOLDER: folder })
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const BOTH = ['ADMIN_API_KEY', 'ENCRYPTION_KEY']

test('what is made is kept before it is used, and used again', () => {
  const first = makeSecrets(BOTH, {}, file)
  expect(first.made).toEqual(BOTH)
  expect(first.values.ADMIN_API_KEY).toMatch(/^[0-9a-f]{64}$/)
  expect(first.values.ADMIN_API_KEY).not.toBe(first.values.ENCRYPTION_KEY)
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(first.values)
  expect(makeSecrets(BOTH, {}, file)).toEqual(first)
})

test('only what is missing gets a value', () => {
  expect(makeSecrets([], {}, file)).toEqual({ values: {}, made: [] })
  expect(Object.keys(makeSecrets(['ENCRYPTION_KEY'], {}, file).values)).toEqual(['ENCRYPTION_KEY'])
})

test('a value of the environment goes first, and is not written down', () => {
  const given = 'a key of my very own'
  const { values, made } = makeSecrets(BOTH, { ADMIN_API_KEY: given }, file)
  expect(values.ADMIN_API_KEY).toBe(given)
  expect(made).toEqual(['ENCRYPTION_KEY'])
  expect(readFileSync(file, 'utf8')).not.toContain(given)
})

test('a value that anybody could guess is refused', () => {
  expect(() => makeSecrets(BOTH, { ADMIN_API_KEY: 'xyz' }, file)).toThrow('ADMIN_API_KEY has 3 characters')
})

test('a file that cannot be read is not written over', () => {
  writeFileSync(file, '{"ENCRYPTION_KEY": "the only co')
  expect(() => makeSecrets(BOTH, {}, file)).toThrow('cannot be read')
  expect(readFileSync(file, 'utf8')).toContain('the only co')
})
