/** Reads documents of an index by id. */
import { ApiError, unwrap } from '../../errors'
import type { Document } from '../../search/types'
import type { Index } from './route'

/** There are no versions, so each document shows the first. */
export const FIRST = { _version: 1, _seq_no: 0, _primary_term: 1 }

/** Returns a document; undefined if there is none with that id. */
export async function read(index: Index, id: string): Promise<Document | undefined> {
  try {
    return unwrap(await index.object.get(id, '', ''))
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error
    // A deleted index also answers 404, so check that the index exists.
    unwrap(await index.object.schema())
    return undefined
  }
}
