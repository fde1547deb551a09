/** The embedder that is built in: found by meaning at once, named truthfully, and changed as a whole. */
import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, it } from 'vitest'
import { ApiError, unwrap } from '../../src/errors'
import { hashVector } from '../../src/models/embedders'
import type { CollectionRpc } from '../../src/search/collection/handle'
import { collectionObject } from '../../src/search/collection/handle'
import type { StoredSchema } from '../../src/search/schema/layout'
import { readSchema, writeSchema } from '../../src/search/schema/plan'
import { drained, found, newTitles, summaryOf } from './embedding-stage'
import { exportAll, importAll, newCollection } from './object'

const field = (model_name: string, extra: Record<string, unknown> = {}) => ({
  name: 'e',
  type: 'float[]',
  embed: { from: ['title'], model_config: { model_name }, ...extra },
})

const OURS = 'local/minilm-l6-static'
const TYPESENSES = 'ts/all-MiniLM-L12-v2'

const TITLES = [
  'A physician prescribes medicine for a sick child',
  'The stock market fell sharply on Monday',
  'Bake the bread in a hot oven for forty minutes',
  'Astronomers discovered a distant planet',
]

const documents = TITLES.map((title, number) => ({ id: `d${number}`, title }))

const fieldOf = async (object: CollectionRpc) =>
  (
    (await summaryOf(object)).fields as { name: string; num_dim: number; embed: Record<string, unknown> }[]
  ).find(({ name }) => name === 'e')!

const best = (object: CollectionRpc, q: string): Promise<string[]> =>
  found(object, { q, query_by: 'e', exclude_fields: 'e', per_page: '1' })

/** Why a collection with this embedding field is refused. */
async function refusal(model_name: string): Promise<string> {
  try {
    await newCollection([{ name: 'title', type: 'string' }, field(model_name)])
    return 'accepted'
  } catch (error) {
    if (error instanceof ApiError) return `${error.status} ${error.message}`
    throw error
  }
}

describe('the built-in embedder', () => {
  it.each([OURS, TYPESENSES])('finds under %s by meaning, at once, what shares no word', async (name) => {
    const { object } = await newTitles(field(name))
    await importAll(object, documents)
    expect(await summaryOf(object)).not.toHaveProperty('pending_embeddings')
    expect(await best(object, 'Which doctor treats ill kids?')).toEqual([TITLES[0]])
    expect(await best(object, 'financial crash of share prices')).toEqual([TITLES[1]])
    expect(await best(object, 'cooking recipe')).toEqual([TITLES[2]])
    expect(await best(object, 'outer space research')).toEqual([TITLES[3]])
  })

  it('is named by the schema where it serves a name of Typesense, whatever a caller says', async () => {
    const { object } = await newTitles(field(TYPESENSES, { served_by: 'openai/text-embedding-3-large' }))
    expect(await fieldOf(object)).toMatchObject({
      num_dim: 384,
      embed: { model_config: { model_name: TYPESENSES }, served_by: OURS },
    })
    const own = await newTitles(field(OURS))
    expect((await fieldOf(own.object)).embed).not.toHaveProperty('served_by')
  })

  it('makes as many dimensions as the model that it stands in for, or as a schema asks for', async () => {
    const large = await newTitles(field('ts/e5-large'))
    expect((await fieldOf(large.object)).num_dim).toBe(1024)
    const small = await newTitles({ ...field(OURS), num_dim: 128 } as never)
    await importAll(small.object, documents)
    expect((await exportAll(small.object)).map(({ e }) => (e as number[]).length)).toEqual([
      128, 128, 128, 128,
    ])
    expect(await best(small.object, 'Which doctor treats ill kids?')).toEqual([TITLES[0]])
  })
})

describe('a name of an embedding model', () => {
  it.each([
    ['text-embedding-3-small', '`openai/text-embedding-3-small`'],
    ['ts/text-embedding-3-small', '`openai/text-embedding-3-small`'],
    ['text-embedding-004', '`google/text-embedding-004`'],
    ['@cf/baai/bge-m3', '`cloudflare/@cf/baai/bge-m3`'],
    ['BAAI/bge-m3', '`cloudflare/@cf/baai/bge-m3`'],
    ['local/minilm', '`local/minilm-l6-static`'],
    ['ts/constructor', '`ts/all-MiniLM-L12-v2`'],
  ])('%s is refused, and the message says how to write it', async (name, hint) => {
    const message = await refusal(name)
    expect(message).toMatch(/^400 /)
    expect(message).toContain(hint)
  })

  it.each(['all-MiniLM-L12-v2', 'ts/e5-small', 'local/hash-64', OURS])('%s is taken', async (name) => {
    expect(await refusal(name)).toBe('accepted')
  })
})

describe('a collection of the version before, whose vectors are hashes of words', () => {
  /** A collection as that version left it: no word of who serves the name, and its vectors. */
  async function left(name: string) {
    const objectId = crypto.randomUUID()
    const again = () => collectionObject(env, objectId)
    const fields = [{ name: 'title', type: 'string' }, field(TYPESENSES)]
    unwrap(await again().create({ name: 'old', fields }, 1))
    await importAll(again(), documents)
    const stub = env.COLLECTION.get(env.COLLECTION.idFromName(objectId))
    await runInDurableObject(stub, (_, { storage: { sql } }) => {
      const schema = readSchema(sql) as StoredSchema
      const stored = schema.fields.find((other) => other.name === 'e')!
      delete stored.embed!.served_by
      stored.embed!.model_config.model_name = name
      writeSchema(sql, schema)
      for (const [index, title] of TITLES.entries()) {
        const vector = hashVector(`${title} `, 384).buffer as ArrayBuffer
        sql.exec(`UPDATE vectors_${schema.slots.e!.slot} SET vector = ? WHERE seq = ?`, vector, index)
      }
    })
    await abortAllDurableObjects()
    return again
  }

  it.each([TYPESENSES, 'text-embedding-3-small'])(
    'is searched, and embedded anew, under %s',
    async (name) => {
      const again = await left(name)
      // Found by the hash, or by the new model already: never by the one among vectors of the other.
      expect(await best(again(), TITLES[1]!)).toEqual([TITLES[1]])
      await drained(again())
      expect((await fieldOf(again())).embed).toEqual({
        from: ['title'],
        model_config: { model_name: name },
        served_by: OURS,
      })
      expect(await best(again(), 'Which doctor treats ill kids?')).toEqual([TITLES[0]])
      const fresh = await newTitles(field(TYPESENSES))
      await importAll(fresh.object, documents)
      const vectors = async (object: CollectionRpc) => (await exportAll(object)).map(({ e }) => e)
      expect(await vectors(again())).toEqual(await vectors(fresh.object))

      // Once is enough.
      await abortAllDurableObjects()
      expect(await summaryOf(again())).not.toHaveProperty('replacing_embeddings')
    },
  )
})
