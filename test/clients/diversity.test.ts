/** `diversity` of curations, through the official client. */
import { expect, test } from 'vitest'
import { client, unique } from './harness'

test('a curation keeps similar hits apart', async () => {
  const name = unique('diverse')
  const item = {
    id: 'mix',
    rule: { tags: ['mixed'] },
    diversity: {
      similarity_metric: [
        { field: 'brand', method: 'equality', weight: 0.7 },
        { field: 'size', method: 'equality', weight: 1 },
      ],
    },
  }
  await client()
    .curationSets(name)
    .upsert({ items: [item as never] })
  expect(await client().curationSets(name).items('mix').retrieve()).toMatchObject(item)
  const fields = [
    { name: 'brand', type: 'string' as const, facet: true },
    { name: 'size', type: 'int32' as const },
  ]
  await client()
    .collections()
    .create({ name, fields, curation_sets: [name] })
  await client()
    .collections(name)
    .documents()
    .import(['A', 'A', 'B', 'A'].map((brand, id) => ({ id: `${id}`, brand, size: id })))
  const ids = async (params: object) => {
    const { hits } = await client()
      .collections<{ id: string }>(name)
      .documents()
      .search({ q: '*', query_by: '', ...params })
    return hits!.map(({ document }) => document.id)
  }
  expect(await ids({})).toEqual(['3', '2', '1', '0'])
  expect(await ids({ sort_by: 'size:asc', curation_tags: 'mixed' })).toEqual(['0', '2', '1', '3'])
  const whole = { sort_by: 'size:asc', curation_tags: 'mixed', diversity_lambda: 1 }
  expect(await ids(whole)).toEqual(['0', '1', '2', '3'])
  await expect(ids({ curation_tags: 'mixed', group_by: 'brand' })).rejects.toMatchObject({
    httpStatus: 400,
    message: expect.stringContaining('Diversity is not supported along with group_by.'),
  })
})
