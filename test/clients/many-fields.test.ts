/** Collections with hundreds of string fields, through the official client. */
import { expect, test } from 'vitest'
import { client, unique } from './harness'

const names = Array.from({ length: 300 }, (_, at) => `attribute_${at}`)

test('a collection of 300 string fields is searched, filtered and altered', async () => {
  const name = unique('wide')
  const fields = names.map((field, at) => ({ name: field, type: 'string' as const, facet: at % 50 === 0 }))
  await client().collections().create({ name, fields })
  const wide = (id: string) => ({
    id,
    ...Object.fromEntries(names.map((field, at) => [field, `${id} value ${at}`])),
  })
  const documents = client().collections<Record<string, string>>(name).documents()
  await documents.import([wide('north'), wide('south')])
  const ids = async (params: object) => {
    const { hits } = await documents.search({ q: '*', query_by: '', ...params })
    return hits!.map(({ document }) => document.id)
  }
  expect(await ids({ q: 'north', query_by: 'attribute_299' })).toEqual(['north'])
  expect(await ids({ q: 'suoth', query_by: 'attribute_1,attribute_250' })).toEqual(['south'])
  expect(
    await ids({ q: '"value 250"', query_by: 'attribute_250', sort_by: 'attribute_250:asc' }).catch(String),
  ).toContain('Could not find a field named `attribute_250` in the schema for sorting.')
  expect(await ids({ q: '"value 250"', query_by: 'attribute_250' })).toEqual(['south', 'north'])
  expect(await ids({ q: '"value 251"', query_by: 'attribute_250', drop_tokens_threshold: 0 })).toEqual([])
  expect(await ids({ filter_by: 'attribute_200:=north value 200' })).toEqual(['north'])
  const { facet_counts: facets } = await documents.search({ q: '*', query_by: '', facet_by: 'attribute_250' })
  expect(facets![0]!.counts.map(({ value }) => value).toSorted()).toEqual([
    'north value 250',
    'south value 250',
  ])
  await client()
    .collections(name)
    .update({
      fields: [
        { name: 'attribute_299', drop: true },
        { name: 'added', type: 'string', optional: true },
      ],
    })
  await documents.upsert({ ...wide('east'), added: 'lately' })
  expect(await ids({ q: 'lately', query_by: 'added' })).toEqual(['east'])
  expect(await ids({ q: 'north', query_by: 'attribute_298' })).toEqual(['north'])
  await client().collections(name).documents('south').delete()
  expect(await ids({ q: 'south', query_by: 'attribute_298' })).toEqual([])
})
