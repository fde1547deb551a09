/** Sequence numbers of documents, both ends included. */
export interface Range {
  low: number
  high: number
}

/** Every document. */
export const EVERYWHERE: Range = { low: 0, high: Number.MAX_SAFE_INTEGER }

/**
 * Limits what FTS5 reads to a range; bind its ends.
 *
 * SqlStorage binds every number as a double, and FTS5 takes limits from whole numbers only. Given doubles it reads the
 * whole index, and SQLite drops the rows that are not wanted: a range of 16,384 documents then costs as much as a million.
 */
export const ROWID_IN_RANGE = 'rowid BETWEEN CAST(? AS INTEGER) AND CAST(? AS INTEGER)'
