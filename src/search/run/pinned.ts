/** Documents that a search, or a curation, puts in their places. */
import { compileFilter } from '../filter/compile'
import type { SearchRequest } from '../request/request'
import type { SearchContext } from './context'
import type { Found } from './page'

/** The documents that a search pins, by position. Of two at one position, the one named first comes first. */
export function pinnedDocuments(
  { sql, schema, joins }: SearchContext,
  request: SearchRequest,
): Found['pinned'] {
  // In a grouped search only groups have positions, so no hit can be pinned.
  if (request.pinnedHits.length === 0 || request.groupBy.length > 0) return []
  const seqs = sequenceNumbers(
    sql,
    request.pinnedHits.map(({ id }) => id),
  )
  if (request.filterPinned) {
    for (const [id, seq] of seqs) {
      const { where, bindings } = compileFilter(
        sql,
        schema,
        request.filterBy,
        { low: seq, high: seq },
        joins?.documents,
      )
      const passes = sql.exec(`SELECT 1 FROM documents d WHERE d.seq = ? AND (${where})`, seq, ...bindings)
      if (passes.toArray().length === 0) seqs.delete(id)
    }
  }
  return request.pinnedHits
    .filter(({ id }) => seqs.has(id) && !request.hiddenHits.includes(id))
    .map(({ id, position }) => ({ seq: seqs.get(id)!, position }))
    .sort((a, b) => a.position - b.position)
}

/** The sequence numbers of documents, by id. */
export const sequenceNumbers = (sql: SqlStorage, ids: string[]): Map<string, number> =>
  new Map(
    sql
      .exec<{ id: string; seq: number }>(
        'SELECT d.id, d.seq FROM documents d WHERE d.id IN (SELECT value FROM json_each(?))',
        JSON.stringify(ids),
      )
      .toArray()
      .map(({ id, seq }) => [id, seq]),
  )
