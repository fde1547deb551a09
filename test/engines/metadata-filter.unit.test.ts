/** filter_by as AI Search's metadata filter. */
import { expect, test } from 'vitest'
import { metadataFilter } from '../../src/engines/ai-search/store'

test.each([
  ['folder:=docs', { folder: { $eq: 'docs' } }],
  ['year:>=2020 && year:<2024', { year: { $gte: 2020, $lt: 2024 } }],
  ['year:[2020..2024]', { year: { $gte: 2020, $lte: 2024 } }],
  ['year:2020..2024', { year: { $gte: 2020, $lte: 2024 } }],
  ['folder:[a, b]', { folder: { $in: ['a', 'b'] } }],
  ['folder:!=[a, b]', { folder: { $nin: ['a', 'b'] } }],
  ['draft:false', { draft: { $eq: false } }],
  ['code:=`42`', { code: { $eq: '42' } }],
])('%s', (filter, expected) => {
  expect(metadataFilter(filter)).toEqual(expected)
})

test('has none for blank filters', () => {
  expect(metadataFilter('', ' ')).toBeUndefined()
})

test('holds the filter of a key beside the asked one', () => {
  expect(metadataFilter('tenant:=a', 'year:>1')).toEqual({ tenant: { $eq: 'a' }, year: { $gt: 1 } })
  // The same condition with another value would replace the key's.
  expect(() => metadataFilter('tenant:=a', 'tenant:=b')).toThrow('second condition')
})

test.each(['__proto__', 'constructor', 'toString'])('takes a field %s for a field', (name) => {
  for (const round of [1, 2]) {
    expect(JSON.stringify(metadataFilter('tenant:=a', `${name}:=${round}`))).toBe(
      `{"tenant":{"$eq":"a"},"${name}":{"$eq":${round}}}`,
    )
  }
  expect('$eq' in {}).toBe(false)
})

test.each(['a:1 || b:2', '$other(id:*)', 'a:b*', 'a:!=>3', 'a:[1..3, 5]'])('refuses %s', (filter) => {
  expect(() => metadataFilter(filter)).toThrow('not available')
})
