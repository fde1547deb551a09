/** Random histories of a collection, and random expressions for its index. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import fc from 'fast-check'
import { Alarm } from '../../src/alarm'
import { type Open, openCollection } from '../../src/search/collection/open'
import { removeAll } from '../../src/search/documents/bulk'
import { writeMeta } from '../../src/search/meta'
import { readSchema } from '../../src/search/schema/stored'
import { makeCollection } from './make-collection'

const FIELDS = [
  { name: 'title', type: 'string' },
  { name: 'text', type: 'string' },
  { name: 'number', type: 'int32', optional: true },
]
/** Common words first. Several begin alike, and some share a stem. */
export const WORDS = [
  'star',
  'stars',
  'start',
  'moon',
  'stare',
  'more',
  'moor',
  'lake',
  'sty',
  '\u6708',
  'oak',
  'oaks',
]

const word = fc
  .double({ min: 0, max: 0.999, noNaN: true })
  .map((at) => WORDS[Math.floor(at * at * WORDS.length)]!)
export const words = (least: number, most: number) =>
  fc.array(word, { minLength: least, maxLength: most }).map((drawn) => drawn.join(' '))

/** A long text has its places on several pages of the index. */
const texts = fc.record({
  title: words(1, 3),
  text: fc.oneof({ weight: 6, arbitrary: words(0, 8) }, { weight: 1, arbitrary: words(100, 300) }),
})

export type Step =
  | { put: number; doc: { title: string; text: string } }
  | { remove: number }
  | { command: string }

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ put: fc.nat({ max: 60 }), doc: texts }) },
  { weight: 3, arbitrary: fc.nat({ max: 60 }).map((remove) => ({ remove })) },
  { weight: 1, arbitrary: fc.constantFrom({ command: 'optimize' }, { command: 'merge' }) },
)

export interface Asked {
  text: string
  /** each of its words counts in every document that has it */
  isSimple: boolean
  /** some words count only beside others */
  isNested?: boolean
}

const columns = fc.constantFrom('{t0 t1}', '{t0}', '{t1}')
const quoted = fc.tuple(word, fc.constantFrom('', '', '*')).map(([text, star]) => `"${text}"${star}`)
const either = fc.array(quoted, { minLength: 1, maxLength: 8 }).map((some) => some.join(' OR '))
const every = fc.array(quoted, { minLength: 1, maxLength: 3 }).map((some) => some.join(' AND '))
const star = fc.constantFrom('', ' *')
const together = fc.oneof(
  fc.tuple(words(2, 3), star).map(([phrase, end]) => `"${phrase}"${end}`),
  fc.tuple(words(1, 3), star).map(([phrase, end]) => `^ "${phrase}"${end}`),
  fc
    .tuple(fc.array(word, { minLength: 1, maxLength: 3 }), fc.integer({ min: 0, max: 9 }))
    .map(([some, most]) => `NEAR(${some.map((each) => `"${each}"`).join(' ')}, ${most})`),
)
export const expression: fc.Arbitrary<Asked> = fc.oneof(
  fc
    .tuple(columns, fc.oneof(either, every))
    .map(([names, some]) => ({ text: `${names} : (${some})`, isSimple: true })),
  fc
    .tuple(columns, columns, quoted, either)
    .map(([one, other, a, b]) => ({ text: `(${one} : (${a}) OR ${other} : (${b}))`, isSimple: true })),
  fc
    .tuple(columns, either, either)
    .map(([names, some, unwanted]) => ({ text: `${names} : ((${some}) NOT (${unwanted}))`, isSimple: true })),
  fc.tuple(columns, every, columns, every, either).map(([one, a, other, b, c]) => ({
    text: `${one} : (${a}) OR ${other} : ((${b}) NOT (${c}))`,
    isSimple: false,
  })),
  fc.tuple(columns, every, columns, every, either).map(([one, a, other, b, c]) => ({
    text: `${one} : (${a}) OR ${other} : (${b}) OR ${one} : (${c})`,
    isSimple: !`${a}${b}`.includes(' AND '),
    isNested: true,
  })),
  fc.tuple(columns, together).map(([names, some]) => ({ text: `${names} : ${some}`, isSimple: false })),
  fc.tuple(columns, together, columns, together, either).map(([one, a, other, b, c]) => ({
    text: `((${one} : ${a}) OR ((${other} : ${b}) NOT ({t0 t1} : (${c}))))`,
    isSimple: false,
  })),
)

/**
 * Makes a collection whose index has small pages.
 * @param gap between the numbers of two documents
 */
export async function withHistory<Result>(
  steps: readonly Step[],
  gap: number,
  work: (open: Open, sql: SqlStorage) => Promise<Result>,
): Promise<Result> {
  const { objectId } = await makeCollection(FIELDS, [])
  return runInDurableObject(
    env.COLLECTION.get(env.COLLECTION.idFromName(objectId)),
    (_, { storage, id }: DurableObjectState) => {
      const around = { storage, env, objectId: String(id), alarm: new Alarm(storage) }
      const open = openCollection(around, readSchema(storage.sql)!)
      const { writer, store } = open
      for (const table of ['word_index', 'text_index']) {
        storage.sql.exec(`INSERT INTO ${table} (${table}, rank) VALUES ('pgsz', 64)`)
      }
      for (const each of steps) {
        if ('put' in each) {
          writer.write([
            {
              document: JSON.stringify({ ...each.doc, number: each.put, id: `d${each.put}` }),
              action: 'upsert',
            },
          ])
          writeMeta(storage.sql, 'counters', { nextSeq: store.nextSeq + gap, count: store.count })
          store.reset()
        } else if ('remove' in each) {
          const seq = store.find([`d${each.remove}`]).get(`d${each.remove}`)
          if (seq !== undefined) removeAll(storage, store, [[seq, `d${each.remove}`]])
        } else {
          const rank = each.command === 'merge' ? 4 : null
          storage.sql.exec(`INSERT INTO word_index (word_index, rank) VALUES (?, ?)`, each.command, rank)
        }
      }
      return work(open, storage.sql)
    },
  )
}

export const steps = fc.array(step, { minLength: 20, maxLength: 90 })
