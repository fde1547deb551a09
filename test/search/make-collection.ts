/** Collections for tests of searching, asked through the object's RPC as the Worker does it. */
import { unwrap } from '../../src/errors'
import type { CollectionRpc } from '../../src/search/collection/handle'
import type { SearchParameters, SearchResult } from '../../src/search/types'
import { importAll, newObject } from './object'

export interface TestCollection {
  objectId: string
  object: CollectionRpc
  /** @throws ApiError as the API would answer it */
  search(params: SearchParameters): Promise<SearchResult>
}

const BATCH = 500

export async function makeCollection(
  fields: Record<string, unknown>[],
  documents: Record<string, unknown>[],
  extra: Record<string, unknown> = {},
): Promise<TestCollection> {
  const { object, objectId } = newObject()
  unwrap(await object.create({ name: 'things', fields, ...extra }, Math.floor(Date.now() / 1000)))
  for (let start = 0; start < documents.length; start += BATCH) {
    const results = await importAll(object, documents.slice(start, start + BATCH))
    const failed = results.find(({ success }) => success !== true)
    if (failed !== undefined) throw new Error(`a test document was refused: ${failed.error}`)
  }
  return { object, objectId, search: async (params) => unwrap(await object.search(params)) }
}

export const idsOf = (result: SearchResult): string[] => result.hits!.map(({ document }) => document.id)

/** The status and message that a search is refused with. */
export async function refusal(collection: TestCollection, params: SearchParameters): Promise<string> {
  const outcome = await collection.object.search(params)
  return outcome.ok ? 'accepted' : `${outcome.error.status} ${outcome.error.message}`
}
