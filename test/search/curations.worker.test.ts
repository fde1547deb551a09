/** Searches with curation sets. */
import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { describe, expect, it, vi } from 'vitest'
import { Alarm } from '../../src/durable/objects'
import { unwrap } from '../../src/errors'
import { CURATIONS, importDictionary, putSet, SYNONYMS } from '../../src/registry/named-sets'
import { openCollection } from '../../src/search/collection/open'
import { LongSearches } from '../../src/search/run/pace'
import { executeSearch } from '../../src/search/run/search'
import { readSchema } from '../../src/search/schema/plan'
import type { SearchParameters, SearchResult } from '../../src/search/types'
import { idsOf, makeCollection, refusal, type TestCollection } from './make-collection'
import { importAll } from './object'

const PHONES = [
  { id: '1', name: 'Phone One', brand: 'Apple', color: 'red', price: 900 },
  { id: '2', name: 'Phone Two', brand: 'Apple', color: 'blue', price: 800 },
  { id: '3', name: 'Phone Three', brand: 'Sony Ericsson', color: 'red', price: 300 },
  { id: '4', name: 'Camera', brand: 'Sony', color: 'blue', price: 400 },
  { id: '5', name: 'Apple pie', brand: 'Bakery', color: 'brown', price: 5 },
]

const FIELDS = [
  { name: 'name', type: 'string' },
  { name: 'brand', type: 'string', facet: true },
  { name: 'color', type: 'string', facet: true },
  { name: 'price', type: 'int32' },
]

type Item = Record<string, unknown>

let made = 0

async function curatedBy(items: Item[], extra: Record<string, unknown> = {}): Promise<TestCollection> {
  const set = `curations ${made++}`
  const numbered = items.map((item, at) => ({ id: `${at}`, ...item }))
  await putSet(env, CURATIONS, set, { items: numbered })
  return makeCollection(FIELDS, PHONES, { curation_sets: [set], ...extra })
}

const search = (collection: TestCollection, params: SearchParameters): Promise<SearchResult> =>
  collection.search({ query_by: 'name', sort_by: 'price:desc', drop_tokens_threshold: '0', ...params })

const ids = async (collection: TestCollection, params: SearchParameters): Promise<string[]> =>
  idsOf(await search(collection, params))

const exact = (query: string) => ({ query, match: 'exact' })
const contains = (query: string) => ({ query, match: 'contains' })

describe('what a curation does', () => {
  it.each<[string, Item, SearchParameters, string[]]>([
    ['puts documents in their places', { includes: [{ id: '4', position: 1 }] }, {}, ['4', '1', '2', '3']],
    ['hides documents', { excludes: [{ id: '1' }] }, {}, ['2', '3']],
    [
      'hides rather than shows',
      { includes: [{ id: '1', position: 1 }], excludes: [{ id: '1' }] },
      {},
      ['2', '3'],
    ],
    ['filters', { filter_by: 'price:<850', remove_matched_tokens: false }, {}, ['2', '3']],
    [
      'filters beside the filter of the search',
      { filter_by: 'price:<850', remove_matched_tokens: false },
      { filter_by: 'price:>500 || id:4' },
      ['2'],
    ],
    ['filters instead of the words', { filter_by: 'color:red' }, {}, ['1', '3']],
    ['sorts', { sort_by: 'price:asc' }, {}, ['3', '2', '1']],
    ['replaces the query', { replace_query: 'camera' }, {}, ['4']],
    ['takes its words out', { remove_matched_tokens: true }, {}, ['1', '2', '4', '3', '5']],
    [
      'filters what it pins',
      { includes: [{ id: '4', position: 1 }], filter_curated_hits: true },
      { filter_by: 'color:red' },
      ['1', '3'],
    ],
    [
      'shows what it pins whatever the filter',
      { includes: [{ id: '4', position: 1 }] },
      { filter_by: 'color:red' },
      ['4', '1', '3'],
    ],
    ['is off', { excludes: [{ id: '1' }] }, { enable_curations: 'false' }, ['1', '2', '3']],
    [
      'is off by the earlier name',
      { excludes: [{ id: '1' }] },
      { enable_overrides: 'false' },
      ['1', '2', '3'],
    ],
    ['a filter that does not fit: nothing', { filter_by: 'weight:3' }, {}, ['1', '2', '3']],
  ])('%s', async (_, effect, params, expected) => {
    const collection = await curatedBy([{ rule: exact('phone'), ...effect }])
    expect(await ids(collection, { q: 'phone', ...params })).toEqual(expected)
  })

  it.each([
    '$shops(open:true)',
    'color:red && !$shops(open:true)',
    '(brand:={brand} && $shops(id:1)) || price:3',
  ])('cannot filter by a join: %s', async (filter_by) => {
    const item = { id: 'a', rule: exact('{brand}'), filter_by }
    await expect(putSet(env, CURATIONS, `curations ${made++}`, { items: [item] })).rejects.toThrow(
      'The `filter_by` of a curation cannot join: `$shops(...)`',
    )
  })

  it('can filter by a value with a dollar sign', async () => {
    const collection = await curatedBy([
      { rule: exact('phone'), filter_by: 'color:=`$shops(x)` || color:=red' },
    ])
    expect(await ids(collection, { q: 'phone' })).toEqual(['1', '3'])
  })

  it('is no way around the limit of a query', async () => {
    const collection = await curatedBy([{ rule: contains('phone'), replace_query: 'camera' }])
    expect(await refusal(collection, { q: 'phone '.repeat(5000), query_by: 'name' })).toBe(
      '400 Parameter `q` exceeds the maximum of 16384 bytes.',
    )
  })

  it('its pins stand beside those of the search, and those of the search come first', async () => {
    const includes = [
      { id: '4', position: 1 },
      { id: '5', position: 3 },
    ]
    const collection = await curatedBy([{ rule: exact('phone'), includes }])
    const result = await search(collection, { q: 'phone', pinned_hits: '2:1,5:2', hidden_hits: '3' })
    expect(idsOf(result)).toEqual(['2', '4', '5', '1'])
    expect(result.hits!.map(({ curated }) => curated ?? false)).toEqual([true, true, true, false])
    expect(result.found).toBe(4)
  })

  it('its metadata come with the reply, and the query as it was asked', async () => {
    const metadata = { banner: 'sale', none: null }
    const collection = await curatedBy([
      { rule: exact('phone'), metadata, stop_processing: false },
      { rule: contains('phone'), metadata: { other: 1 }, replace_query: 'camera' },
    ])
    const result = await search(collection, { q: 'Phone' })
    expect(result).toMatchObject({ metadata, request_params: { q: 'Phone', first_q: 'Phone' } })
    expect(idsOf(result)).toEqual(['4'])
    expect((await search(collection, { q: 'pie' })).metadata).toBeUndefined()
  })
})

describe('when a rule is met', () => {
  const now = Math.floor(Date.now() / 1000)
  it.each<[string, Item, SearchParameters, boolean]>([
    ['its words are the query', { rule: exact('phone two') }, { q: 'Phone, Two!' }, true],
    ['more words are not', { rule: exact('phone') }, { q: 'phone two' }, false],
    ['its words are in the query', { rule: contains('phone two') }, { q: 'a phone two b' }, true],
    ['its words lie apart', { rule: contains('phone two') }, { q: 'phone a two' }, false],
    ['half of a word', { rule: contains('phon') }, { q: 'phone' }, false],
    ['all documents', { rule: exact('*') }, { q: '*' }, true],
    ['all documents are no word', { rule: contains('a') }, { q: '*' }, false],
    ['its filter', { rule: { filter_by: 'color:red' } }, { q: 'x', filter_by: 'color:red' }, true],
    ['another filter', { rule: { filter_by: 'color:red' } }, { q: 'x', filter_by: 'color:blue' }, false],
    [
      'query and filter',
      { rule: { ...exact('x'), filter_by: 'color:red' } },
      { q: 'x', filter_by: 'color:red' },
      true,
    ],
    ['the query without the filter', { rule: { ...exact('x'), filter_by: 'color:red' } }, { q: 'x' }, false],
    ['a tag', { rule: { tags: ['sale'] } }, { q: 'x', curation_tags: 'sale' }, true],
    ['a tag by the earlier name', { rule: { tags: ['sale'] } }, { q: 'x', override_tags: 'sale,b' }, true],
    ['another tag', { rule: { tags: ['sale'] } }, { q: 'x', curation_tags: 'b' }, false],
    ['no tag', { rule: { tags: ['sale'] } }, { q: 'x' }, false],
    ['a rule without tags, by a tag', { rule: exact('x') }, { q: 'x', curation_tags: 'sale' }, false],
    ['the tag of all searches', { rule: { tags: ['*'] } }, { q: 'anything' }, true],
    [
      'a tag and words',
      { rule: { ...exact('x'), tags: ['sale'] } },
      { q: 'y', curation_tags: 'sale' },
      false,
    ],
    ['before its time', { rule: exact('x'), effective_from_ts: now + 1000 }, { q: 'x' }, false],
    [
      'in its time',
      { rule: exact('x'), effective_from_ts: now - 1000, effective_to_ts: now + 1000 },
      { q: 'x' },
      true,
    ],
    ['after its time', { rule: exact('x'), effective_to_ts: now - 1000 }, { q: 'x' }, false],
    ['another form of a word', { rule: exact('phones') }, { q: 'phone' }, false],
    ['the same stem', { rule: { ...exact('phones'), stem: true } }, { q: 'phone' }, true],
    ['the same root', { rule: { ...exact('people'), stemming_dictionary: 'roots' } }, { q: 'person' }, true],
    ['a synonym', { rule: { ...exact('mobile phone'), synonyms: true } }, { q: 'cell' }, true],
    ['a synonym, not asked for', { rule: exact('mobile phone') }, { q: 'cell' }, false],
  ])('%s', async (_, item, params, met) => {
    await importDictionary(env, 'roots', '{"word":"people","root":"person"}')
    await putSet(env, SYNONYMS, 'cells', { items: [{ id: 'a', synonyms: ['mobile phone', 'cell'] }] })
    const collection = await curatedBy([{ ...item, metadata: { met: true } }], { synonym_sets: ['cells'] })
    expect((await search(collection, params)).metadata).toEqual(met ? { met: true } : undefined)
  })

  it('the first one that is met ends it, unless it says otherwise', async () => {
    const hiding = (id: string, stop_processing: boolean) => ({
      rule: contains('phone'),
      excludes: [{ id }],
      stop_processing,
    })
    expect(await ids(await curatedBy([hiding('1', true), hiding('2', true)]), { q: 'phone' })).toEqual([
      '2',
      '3',
    ])
    expect(await ids(await curatedBy([hiding('1', false), hiding('2', true)]), { q: 'phone' })).toEqual(['3'])
  })

  it('several tags mean those with all of them first', async () => {
    const collection = await curatedBy([
      { rule: { tags: ['a'] }, metadata: { met: 'a' } },
      { rule: { tags: ['b', 'a'] }, metadata: { met: 'a and b' } },
    ])
    const met = async (curation_tags: string) =>
      (await search(collection, { q: 'x', curation_tags })).metadata
    expect(await met('a,b')).toEqual({ met: 'a and b' })
    expect(await met('a')).toEqual({ met: 'a' })
    expect(await met('a,c')).toEqual({ met: 'a' })
  })
})

describe('placeholders', () => {
  const brand = { rule: contains('{brand} phone'), filter_by: 'brand:={brand}', remove_matched_tokens: true }

  it.each<[string, Item, string, string[]]>([
    ['a value of the field', brand, 'apple phone', ['1', '2']],
    ['of several words', brand, 'sony ericsson phone', ['3']],
    ['within other words', brand, 'the best apple phone three', []],
    ['no value', brand, 'nokia phone', []],
    ['part of a value', brand, 'ericsson phone', []],
    ['a value elsewhere', brand, 'phone apple', []],
    [
      'two of them',
      { rule: exact('{color} {brand}'), filter_by: 'color:={color} && brand:={brand}' },
      'red apple',
      ['1'],
    ],
    ['exact leaves no word over', { rule: exact('{color}'), filter_by: 'color:={color}' }, 'red phone', []],
    ['a field that is not there', { rule: exact('{size}'), filter_by: 'size:={size}' }, 'red', []],
    ['a number', { rule: contains('{price}'), filter_by: 'price:={price}' }, 'phone 300', ['3']],
  ])('%s', async (_, item, q, expected) => {
    expect(await ids(await curatedBy([item]), { q })).toEqual(expected)
  })

  it.each<[string, Item, Item, Item]>([
    ['strings by words alone', { type: 'string' }, { of: 'Sony Ericsson' }, { of: 'Apple' }],
    ['lists', { type: 'string[]', facet: true }, { of: ['x', 'Sony: Ericsson'] }, { of: ['Apple', 'x'] }],
    ['lists by words alone', { type: 'string[]' }, { of: ['x', 'Sony Ericsson'] }, { of: ['Apple'] }],
    [
      'fields that are not stored',
      { type: 'string', store: false },
      { of: 'Sony ericsson' },
      { of: 'apple' },
    ],
    ['stems', { type: 'string', facet: true, stem: true }, { of: 'Sonies Ericssons' }, { of: 'apples' }],
    ['numbers in lists', { type: 'int64[]' }, { of: [5, 9] }, { of: [-2, 7] }],
  ])('stand for values of %s, as they are now', async (_, field, one, other) => {
    const set = `curations ${made++}`
    const rule = { rule: contains('{of} phone'), filter_by: 'of:={of}' }
    await putSet(env, CURATIONS, set, { items: [{ id: 'a', ...rule }] })
    const fields = [
      { name: 'name', type: 'string' },
      { name: 'of', optional: true, ...field },
    ]
    const rest = Array.from({ length: 20 }, (_, n) => ({ id: `r${n}`, name: 'phone' }))
    const documents = [{ id: '1', name: 'phone', ...one }, ...rest]
    const collection = await makeCollection(fields, documents, { curation_sets: [set] })
    const found = async (q: string) => (await collection.search({ q, query_by: 'name', per_page: '0' })).found
    const [isOne, isOther] =
      field.type === 'int64[]' ? ['9 phone', '7 phone'] : ['sony ericsson phone', 'apple phone']
    expect([await found(isOne), await found(isOther), await found('ericsson phone')]).toEqual([1, 21, 21])
    await importAll(collection.object, [{ id: '1', name: 'phone', ...other }], { action: 'upsert' })
    expect([await found(isOne), await found(isOther)]).toEqual([21, 1])
    unwrap(await collection.object.remove('1', false))
    expect([await found(isOne), await found(isOther)]).toEqual([20, 20])
  })

  it('read all values once, in turns with others, and end when the caller leaves', async () => {
    const set = `curations ${made++}`
    const items = ['brand', 'name'].map((of) => ({
      id: of,
      rule: contains(`{${of}} phone`),
      filter_by: 'brand:=x',
      stop_processing: false,
    }))
    await putSet(env, CURATIONS, set, { items })
    const documents = Array.from({ length: 20_000 }, (_, n) => ({ name: `n${n % 7_000} y`, brand: `b${n}` }))
    const fields = [
      { name: 'name', type: 'string' },
      { name: 'brand', type: 'string', facet: true },
    ]
    const { objectId } = await makeCollection(fields, documents, { curation_sets: [set] })
    const stub = env.COLLECTION.get(env.COLLECTION.idFromName(objectId))
    await runInDurableObject(stub, async (_, { storage }: DurableObjectState) => {
      const around = { storage, env, objectId, alarm: new Alarm(storage) }
      const { context } = openCollection(around, readSchema(storage.sql)!)
      const asked = async (leavesAt = Number.POSITIVE_INFINITY) => {
        const others = new LongSearches({ ms: 1e9, rows: 20_000, width: 1e9 })
        const turn = vi.spyOn(others, 'turn')
        turn.mockImplementation(() => {
          if (turn.mock.calls.length === leavesAt) others.abandon('it')
          return LongSearches.prototype.turn.call(others)
        })
        const params = { q: 'nothing phone', query_by: 'brand', num_typos: '0' }
        const sharing = { others, ticket: 'it' }
        const result = await executeSearch(context, params, {}, sharing).catch(({ status }) => ({
          found: status,
        }))
        return [turn.mock.calls.length, result.found]
      }
      expect(await asked(3)).toEqual([3, 499])
      const [turns, found] = await asked()
      expect([turns! > 20, found]).toEqual([true, 0])
      expect(await asked()).toEqual([0, 0])
      context.columns.forget([5])
      const [again] = await asked()
      expect([again! > 0, again! < 15]).toEqual([true, true])
    })
  })

  it('stand in a sort', async () => {
    const collection = await curatedBy([
      {
        rule: exact('{brand}'),
        filter_by: 'brand:={brand}',
        sort_by: '_eval(brand:={brand}):desc,price:asc',
      },
    ])
    expect(await ids(collection, { q: 'apple' })).toEqual(['2', '1'])
  })

  it('in the filter of a rule stand for any text', async () => {
    const rule = { filter_by: 'color:={color}' }
    const collection = await curatedBy([{ rule, filter_by: 'color:={color} && price:<500' }])
    expect(await ids(collection, { q: '*', filter_by: 'color:=blue' })).toEqual(['4'])
    // What a caller writes there cannot open what else the filter holds shut.
    const shut = await curatedBy([{ rule: { filter_by: '(id:=1) && {any}' }, filter_by: 'color:={any}' }])
    const opening = ['color:=blue) || (id:!=0', '(color:=blue) || (id:!=0)', 'color:=blue || id:!=0']
    for (const any of opening) {
      const outcome = await shut.object.search({ q: '*', query_by: 'name', filter_by: `(id:=1) && ${any}` })
      const plain = await (await curatedBy([])).object.search({
        q: '*',
        query_by: 'name',
        filter_by: `(id:=1) && ${any}`,
      })
      const found = [outcome, plain].map((each) => (each.ok ? idsOf(each.value) : each.error.message))
      expect(found[0]).toEqual(found[1])
    }
  })
})

describe('together with', () => {
  it('synonyms, which the changed query has', async () => {
    await putSet(env, SYNONYMS, 'cameras', { items: [{ id: 'a', synonyms: ['camera', 'cam'] }] })
    const collection = await curatedBy([{ rule: exact('photo'), replace_query: 'cam' }], {
      synonym_sets: ['cameras'],
    })
    expect(await ids(collection, { q: 'photo' })).toEqual(['4'])
  })

  it('sets that the search names', async () => {
    await putSet(env, CURATIONS, 'sale', {
      items: [{ id: 'a', rule: exact('phone'), excludes: [{ id: '1' }] }],
    })
    const collection = await makeCollection(FIELDS, PHONES)
    expect(await ids(collection, { q: 'phone', curation_sets: 'sale' })).toEqual(['2', '3'])
  })
})
