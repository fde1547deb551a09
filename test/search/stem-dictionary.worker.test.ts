/** `stem_dictionary`: a field finds words by the roots that a dictionary gives them. */
import { evictDurableObject, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, describe, expect, it } from 'vitest'
import { unwrap } from '../../src/errors'
import { importDictionary } from '../../src/registry/named-sets'
import { readSchema } from '../../src/search/schema/plan'
import { parseSchema } from '../../src/search/schema/schema'
import { loadStemWords } from '../../src/search/schema/tables'
import { stemmerOf } from '../../src/search/text/analyzer'
import { idsOf, makeCollection } from './make-collection'
import { importAll, newObject } from './object'

const lines = (words: Record<string, string>) =>
  Object.entries(words)
    .map(([word, root]) => JSON.stringify({ word, root }))
    .join('\n')

const FIELDS = [
  { name: 'text', type: 'string', stem_dictionary: 'irregular' },
  { name: 'plain', type: 'string', optional: true },
]
const WHOLE = { query_by: 'text', num_typos: '0', prefix: 'false', drop_tokens_threshold: '0' }

beforeAll(async () => {
  await importDictionary(
    env,
    'irregular',
    lines({ People: 'person', went: 'go', geese: 'goose', of: 'two words' }),
  )
})

describe('a field with a dictionary', () => {
  it('finds words that have the same root', async () => {
    const things = await makeCollection(FIELDS, [
      { id: 'people', text: 'PEOPLE of the sea', plain: 'people' },
      { id: 'person', text: 'A person swims', plain: 'person' },
      { id: 'geese', text: 'They went to the geese' },
      { id: 'running', text: 'Running water' },
    ])
    const find = async (q: string, more = {}) => idsOf(await things.search({ ...WHOLE, q, ...more })).sort()
    expect(await find('people')).toEqual(['people', 'person'])
    expect(await find('person')).toEqual(['people', 'person'])
    expect(await find('go goose')).toEqual(['geese'])
    // Words that the dictionary does not have stay as they are, and roots are single words.
    expect(await find('run')).toEqual([])
    expect(await find('of')).toEqual(['people'])
    expect(await find('people', { query_by: 'plain' })).toEqual(['people'])
    const { hits } = await things.search({ ...WHOLE, q: 'person' })
    expect(hits!.map(({ highlights }) => highlights[0]!.snippet).sort()).toEqual([
      '<mark>PEOPLE</mark> of the sea',
      'A <mark>person</mark> swims',
    ])
  })

  it('keeps its words through a restart and a change of the dictionary, and takes the new ones when it is added again', async () => {
    await importDictionary(env, 'changing', lines({ mice: 'mouse' }))
    const { object, objectId } = newObject()
    const field = { name: 'text', type: 'string', stem_dictionary: 'changing' }
    unwrap(await object.create({ name: 'x', fields: [field] }, 1))
    await importAll(object, [{ id: '1', text: 'three mice and two oxen' }])
    const find = async (q: string) => idsOf(unwrap(await object.search({ ...WHOLE, q })))
    await importDictionary(env, 'changing', lines({ oxen: 'ox' }))
    await evictDurableObject(env.COLLECTION.get(env.COLLECTION.idFromName(objectId)))
    expect([await find('mouse'), await find('ox'), await find('oxen')]).toEqual([['1'], [], ['1']])
    const summary = unwrap(await object.summary())
    const fields = summary.fields as object[]
    expect(fields).toMatchObject([{ name: 'text', stem: false, stem_dictionary: 'changing' }])
    expect(fields[0]).not.toHaveProperty('stem_words')
    unwrap(await object.alter({ fields: [{ name: 'text', drop: true }, field] }))
    await expect.poll(() => find('ox'), { timeout: 30_000 }).toEqual(['1'])
    expect(await find('mouse')).toEqual(['1'])
  })

  it('reads its words from storage when its object wakes', async () => {
    const { objectId } = await makeCollection(FIELDS, [])
    const stub = env.COLLECTION.get(env.COLLECTION.idFromName(objectId))
    await runInDurableObject(stub, (_, { storage: { sql } }) => {
      const [field] = readSchema(sql)!.fields
      const words = sql.exec('SELECT value FROM meta WHERE key = ?', field!.stem_words).one().value
      // As in an isolate that has never seen them.
      sql.exec('INSERT INTO meta (key, value) VALUES (?, ?)', 'unseen', words)
      loadStemWords(sql, [{ ...field!, stem_words: 'unseen' }])
    })
    expect(['people', 'went', 'other'].map(stemmerOf('unseen')!)).toEqual(['person', 'go', 'other'])
  })

  it('comes before the stemmer of its language, and takes any language', async () => {
    const things = await makeCollection(
      [{ name: 'text', type: 'string', stem: true, locale: 'el', stem_dictionary: 'irregular' }],
      [{ id: '1', text: 'people running' }],
    )
    const find = async (q: string) => idsOf(await things.search({ ...WHOLE, q }))
    expect([await find('person'), await find('run')]).toEqual([['1'], []])
  })

  it('is refused where it cannot be', async () => {
    const { object } = newObject()
    const make = (field: object) =>
      object.create({ name: 'x', fields: [{ name: 'a', type: 'string', ...field }] }, 1)
    expect(await make({ stem_dictionary: 'nowhere' })).toMatchObject({
      ok: false,
      error: { status: 404, message: 'Stemming dictionary `nowhere` not found.' },
    })
    const schema = (field: object) => parseSchema({ name: 'x', fields: [{ name: 'a', ...field }] })
    expect(() => schema({ type: 'int32', stem_dictionary: 'x' })).toThrow('only allowed for string')
    expect(() => schema({ type: 'string', stem_dictionary: 5 })).toThrow('should be a string')
  })
})
