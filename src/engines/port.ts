/**
 * What the engine of a collection offers: its documents, their search, and its schema. A collection of the engine `object` is one
 * Durable Object of Parley. The others live in a cluster, and an adapter in this folder translates.
 */
import type { Outcome } from '../errors'
import type { CollectionRpc } from '../search/collection/rpc'
import type { ExportOptions, SearchScope } from '../search/types'

export interface DocumentStore
  extends Pick<
    CollectionRpc,
    | 'summary'
    | 'schema'
    | 'alter'
    | 'reindex'
    | 'write'
    | 'patch'
    | 'get'
    | 'remove'
    | 'updateWhere'
    | 'removeWhere'
    | 'truncate'
    | 'importLines'
    | 'search'
    | 'abandon'
  > {
  /**
   * The documents as JSONL, in pieces of any length.
   * @returns an error before the first piece as an Outcome. A later one is thrown by the iterator.
   */
  exportLines(options: ExportOptions, scope?: SearchScope): Promise<Outcome<AsyncIterable<string>>>
}
