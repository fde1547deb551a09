/**
 * Filters by SQL find the same in a collection with old normal forms, some of which have been written again, as in one with new
 * forms alone.
 */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { compileFilter } from '../../../src/search/filter/compile'
import { readSchema, writeSchema } from '../../../src/search/schema/stored'
import { makeCollection } from '../make-collection'
import { putOldForms } from '../old-forms'

const FIELDS = [
  { name: 'one', type: 'string', facet: true },
  { name: 'many', type: 'string[]', facet: true },
  // Letters and blanks as symbols are strange, and allowed.
  { name: 'apart', type: 'string', facet: true, token_separators: ['-'], symbols_to_index: ['+'] },
  { name: 'strange', type: 'string[]', facet: true, token_separators: ['x', '|'], symbols_to_index: [' '] },
  { name: 'stemmed', type: 'string', facet: true, stem: true },
  { name: 'thai', type: 'string', facet: true, locale: 'th' },
]

const PIECES = [
  'a',
  'x',
  'fox',
  'Fox',
  'foxes',
  '1',
  '22',
  '-',
  "'",
  '+',
  '|',
  '.',
  '_',
  ' ',
  ' ',
  '\t',
  '\0',
]
const OTHERS = ['é', 'Æ', 'ß', 'Ł', 'ｆ', '東', '京都', 'ที่', 'ม้า', '가다', '👍', '’', '\u200b', 'ـ']

const text = (pieces: string[], most: number) =>
  fc.array(fc.constantFrom(...pieces), { minLength: 1, maxLength: most }).map((some) => some.join(''))
const anyText = (most: number) =>
  fc.oneof({ weight: 3, arbitrary: text(PIECES, most) }, text([...PIECES, ...OTHERS], most))
const list = fc.array(anyText(5), { maxLength: 4 })
const someDocument = fc.record({
  one: anyText(5),
  many: list,
  apart: anyText(5),
  strange: list,
  stemmed: anyText(5),
  thai: anyText(5),
})

const value = fc.tuple(anyText(3), fc.constantFrom('', '*', '`', '"')).map(([given, sign]) => {
  const plain = given.replace(/[`"*\\]/g, '').trim() || 'a'
  return sign === '`' || sign === '"' ? sign + plain + sign : `\`${plain}\`${sign}`
})
const someFilter = fc
  .tuple(
    fc.constantFrom(...FIELDS.map(({ name }) => name)),
    fc.constantFrom(':', ':=', ':!='),
    fc.oneof(
      value,
      fc.array(value, { minLength: 1, maxLength: 3 }).map((some) => `[${some.join(',')}]`),
    ),
  )
  .map((parts) => parts.join(''))

const documents = fc
  .sample(someDocument, { numRuns: 120, seed: 13 })
  .map((doc, n) => ({ id: String(n), ...doc }))

it('finds by the old forms what it finds by the new ones', async () => {
  const { objectId } = await makeCollection(FIELDS, documents)
  const filters = fc.sample(someFilter, 1_200)
  await runInDurableObject(
    env.COLLECTION.get(env.COLLECTION.idFromName(objectId)),
    (_, { storage: { sql } }) => {
      const found = () =>
        filters.map((filter) => {
          const { where, bindings } = compileFilter(sql, readSchema(sql)!, filter)
          const rows = sql.exec<{ seq: number }>(
            `SELECT seq FROM documents d WHERE ${where} ORDER BY seq`,
            ...bindings,
          )
          return [filter, rows.toArray().map(({ seq }) => seq)]
        })
      const now = found()
      expect(now.filter(([, seqs]) => seqs!.length % documents.length > 0).length).toBeGreaterThan(600)
      for (const from of [80, 30, 0]) {
        putOldForms(sql, from)
        const schema = readSchema(sql)!
        for (const slot of Object.values(schema.slots)) if (slot.parted) slot.parted = { seq: from, pos: -1 }
        writeSchema(sql, schema)
        expect(found()).toEqual(now)
      }
    },
  )
})
