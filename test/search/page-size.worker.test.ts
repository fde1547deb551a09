/** Pages of hits that would be too large for a call between objects. */
import { expect, it } from 'vitest'
import { MAX_PAGE_CHARACTERS } from '../../src/search/limits'
import { idsOf, makeCollection, refusal } from './make-collection'

const LENGTH = 1_400_000

it('a page whose hits are too large is refused with what to do, and smaller ones are not', async () => {
  const documents = Array.from({ length: 10 }, (_, n) => ({
    id: `${n}`,
    title: 'large',
    // No field of the schema: stored, and not searched.
    body: `${n}`.repeat(LENGTH),
  }))
  expect(documents.length * LENGTH).toBeGreaterThan(MAX_PAGE_CHARACTERS)
  const { object, objectId, search } = await makeCollection([{ name: 'title', type: 'string' }], [])
  const collection = { object, objectId, search }
  for (const document of documents) {
    expect(await object.write(JSON.stringify(document), { action: 'create' })).toMatchObject({ ok: true })
  }
  const params = { q: 'large', query_by: 'title' }
  expect(await refusal(collection, params)).toBe(
    `422 The hits of this page have more than ${MAX_PAGE_CHARACTERS} characters. Ask for fewer with \`per_page\`, or for less of each with \`include_fields\`.`,
  )
  const half = await search({ ...params, per_page: '5' })
  expect(half.hits!.map(({ document }) => (document.body as string).length)).toEqual(Array(5).fill(LENGTH))
  expect(idsOf(await search({ ...params, include_fields: 'id,title' }))).toHaveLength(10)
}, 60_000)
