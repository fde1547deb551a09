/** Searches for one word rank matches by the places in the index, as if their texts were read. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, expect, it } from 'vitest'
import { Alarm } from '../../../src/alarm'
import { openCollection } from '../../../src/search/collection/open'
import type { SearchContext } from '../../../src/search/run/context'
import { executeSearch } from '../../../src/search/run/search'
import { readSchema } from '../../../src/search/schema/stored'
import type { SearchParameters } from '../../../src/search/types'
import { makeCollection, type TestCollection } from '../make-collection'

const WORDS = ['wolf', 'wolves', 'hare', 'wolfhound', "wolf's", 'Émile', 'emil', 'moss-green']

const fields = (text: 'string' | 'string[]') => [
  { name: 'title', type: 'string' },
  { name: 'text', type: text, optional: true },
  { name: 'points', type: 'int32' },
]
const documents = (list: boolean) =>
  Array.from({ length: 90 }, (_, n) => {
    const title = n % 3 === 0 ? WORDS[n % 8]! : `${WORDS[n % 7]} ${WORDS[(n * 5) % 8]}`
    const text = Array.from({ length: n % 5 }, (_, at) => WORDS[(n + at * 3) % 8]).join(' ')
    return { id: `d${n}`, title, points: (n * 37) % 11, ...(n % 5 > 0 && { text: list ? [text] : text }) }
  })

/** The texts of lists are always read. */
let [places, texts]: TestCollection[] = []

beforeAll(async () => {
  places = await makeCollection(fields('string'), documents(false))
  texts = await makeCollection(fields('string[]'), documents(true))
})

/**
 * @param inMemory whether words are read into memory, as in any small collection
 * @returns hits in order, and how many documents were read to rank them
 */
const search = (collection: TestCollection, params: SearchParameters, inMemory = false) =>
  runInDurableObject(
    env.COLLECTION.get(env.COLLECTION.idFromName(collection.objectId)),
    async (_, { storage, id }: DurableObjectState) => {
      const around = { storage, env, objectId: String(id), alarm: new Alarm(storage) }
      const { context } = openCollection(around, readSchema(storage.sql)!)
      let read = 0
      const exec: SqlStorage['exec'] = (query, ...bindings) => {
        if (query.includes('AS unstored')) read += JSON.parse(String(bindings[0])).length
        return context.sql.exec(query, ...bindings)
      }
      const watched: SearchContext = Object.create(context, {
        sql: { value: { exec } as SqlStorage },
        ...(!inMemory && { words: { value: undefined } }),
      })
      const { found, hits = [] } = await executeSearch(watched, params)
      const shown = hits.map(({ document, text_match_info }) => [document.id, text_match_info])
      return { found, shown, read }
    },
  )

it('ranks matches of one word as if their texts were read, and reads none', async () => {
  const variants: SearchParameters[] = [
    { query_by: 'title,text' },
    { query_by: 'text' },
    { query_by: 'text,title', page: '2' },
    { query_by: 'title,text', query_by_weights: '1,1', prefix: 'false' },
    { query_by: 'title,text', prioritize_exact_match: 'false', filter_by: 'points:>3' },
    { query_by: 'title,text', text_match_type: 'sum_score', prioritize_num_matching_fields: 'false' },
  ]
  for (const q of [
    'wolf',
    'wol',
    'wolves',
    'wolfs',
    'emil',
    'emile',
    'mossgreen',
    '"wolf"',
    'w',
    'wolf -hare',
  ]) {
    for (const variant of variants) {
      const params = { q, num_typos: '0', sort_by: '_text_match:desc,points:asc', per_page: '20', ...variant }
      const [own, reference] = [await search(places!, params), await search(texts!, params)]
      expect({ params, found: own.found, shown: own.shown }).toEqual({
        params,
        found: reference.found,
        shown: reference.shown,
      })
      if (own.found > 4) expect([params, own.read]).toEqual([params, 0])
      const { read, ...known } = await search(places!, params, true)
      expect({ params, ...known }).toEqual({ params, found: reference.found, shown: reference.shown })
      // Texts are read that begin with the word and do not repeat it: they may have no other.
      if (own.found > 4) expect(read).toBeLessThan(own.found)
      expect(reference.read).toBe(reference.found)
    }
  }
})

it('reads the texts where more than the places decides', async () => {
  const order = '_text_match:desc,points:asc'
  const others: SearchParameters[] = [
    { sort_by: '_text_match:desc' },
    { sort_by: order, prioritize_token_position: 'true' },
    { sort_by: order, q: 'wolf hare' },
  ]
  for (const params of others) {
    const asked = { q: 'wolf', query_by: 'title,text', num_typos: '0', drop_tokens_threshold: '0', ...params }
    const { read, found } = await search(places!, asked)
    expect([params, read]).toEqual([params, found])
  }
})
