/** The records of searches and events that the Worker sends to a collection for its analytics rules. */

/** A query to count. Its document is in the collection that receives this record. */
export interface QueryRecord {
  kind: 'query'
  rule: string
  /** id of its document: equal queries have the same one */
  id: string
  /** the document without its id and count: `q`, and the rule's `meta_fields` */
  document: Record<string, string>
  /** the most documents that the rule keeps */
  limit: number
  /** present: a search that was captured */
  typed?: Typed
}

/** An event about documents of the collection that receives this record. */
export interface CounterRecord {
  kind: 'counter'
  rule: string
  field: string
  weight: number
  ids: string[]
}

/** An event to log, sent to the collection in which it happened. */
export interface LogRecord {
  kind: 'log'
  rule: string
  /** '' for nobody */
  user: string
  event: Record<string, unknown>
  /** present: a search that was captured */
  typed?: Typed
}

export type AnalyticsRecord = QueryRecord | CounterRecord | LogRecord

/** A captured search may be one keystroke of many. It waits until its user pauses. */
export interface Typed {
  /** identifies the user. It is kept only in memory */
  by: string
  /** false: the rule does not count it, but it replaces the keystroke before it */
  counts: boolean
}

/** Counts that wait in a collection. */
export interface AnalyticsStatus {
  /** captured searches whose users may still be typing, by rule */
  typed: Record<string, number>
  /** distinct queries, and documents, whose counts are not in documents yet */
  queries: number
  counters: number
}
