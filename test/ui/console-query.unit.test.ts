/** A search of a collection in the console, as its address names it and as the server is asked. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  conditionOf,
  readQuery,
  searchParams,
  toggled,
  writtenQuery,
} from '../../ui/console/src/collections/query'
import type { Collection, Field } from '../../ui/console/src/collections/wire'

const field = (name: string, more: Partial<Field> = {}): Field => ({
  name,
  type: 'string',
  facet: false,
  optional: false,
  index: true,
  ...more,
})

const COLLECTION: Collection = {
  name: 'docs',
  num_documents: 1,
  created_at: 0,
  fields: [
    field('title'),
    field('text'),
    field('section', { facet: true }),
    field('vector', { type: 'float[]', embed: { from: ['text'], model_config: { model_name: 'local/a' } } }),
  ],
}

const asked = (address: string, collection = COLLECTION) =>
  Object.fromEntries(searchParams(collection, readQuery(new URLSearchParams(address))))

describe('a search of the console', () => {
  const name = fc.stringMatching(/^[a-zé_.][a-zé_.:0-9]{0,9}$/)
  const anyQuery = fc.record({
    q: fc.string(),
    filter: fc.string(),
    by: fc.constantFrom('both' as const, 'words' as const, 'meaning' as const),
    weights: fc
      .uniqueArray(fc.tuple(name, fc.integer({ min: 0, max: 127 })), { selector: ([key]) => key })
      .map((entries) => new Map(entries)),
    alpha: fc.constantFrom('', '0', '0.4', '1'),
  })

  test('is read from its address as it was written there', () => {
    fc.assert(
      fc.property(anyQuery, (query) => {
        expect(readQuery(new URLSearchParams(writtenQuery(query)))).toEqual(query)
      }),
    )
  })

  test('leaves fields and weights to the server as they are, unless they are set', () => {
    expect(asked('q=a')).toEqual({
      q: 'a',
      query_by: 'vector,title,text,section',
      per_page: '20',
      facet_by: 'section',
      exclude_fields: 'vector',
    })
  })

  test('weighs each field that it names, and leaves out one of weight 0', () => {
    const params = asked('q=a&weights=title:5,text:0&alpha=0.4')
    expect(params).toMatchObject({
      query_by: 'vector,title,section',
      query_by_weights: '1,5,1',
      vector_query: 'vector:([], alpha: 0.4)',
    })
  })

  test('weighs no meaning where only words are searched, or where nothing is asked', () => {
    expect(asked('q=a&by=words&alpha=0.4')).not.toHaveProperty('vector_query')
    expect(asked('alpha=0.4')).not.toHaveProperty('vector_query')
    expect(asked('q=a&by=meaning&weights=title:5')).toMatchObject({ query_by: 'vector' })
    expect(asked('q=a&by=meaning&weights=title:5')).not.toHaveProperty('query_by_weights')
  })

  test('takes nothing from an address that it does not know', () => {
    expect(asked('q=a&weights=title:999,:3,text&alpha=much&by=magic')).toEqual(asked('q=a'))
  })

  test('adds the value of a facet to a filter, and takes it away again', () => {
    const first = conditionOf('section', 'a `b`')
    expect(first).toBe('section:=`a b`')
    const both = toggled(toggled('', first), conditionOf('tag', 'x'))
    expect(both).toBe('section:=`a b` && tag:=`x`')
    expect(toggled(both, first)).toBe('tag:=`x`')
  })
})
