/**
 * What the engine of a collection offers: its documents, their search, and its schema. A collection of the engine `object` is one
 * Durable Object of Parley. The others live in a cluster, and an adapter in this folder translates.
 */
import { attempt, type Outcome, unwrap } from '../errors'
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

// =============================================================================
// The documents of a collection in its own Durable Object.

/** @param object a handle on the object */
export function objectDocuments(object: CollectionRpc): DocumentStore {
  return {
    summary: () => object.summary(),
    schema: () => object.schema(),
    alter: (body, origin) => object.alter(body, origin),
    reindex: (origin) => object.reindex(origin),
    write: (json, options) => object.write(json, options),
    patch: (id, json, dirtyValues, origin) => object.patch(id, json, dirtyValues, origin),
    get: (id, include, exclude, scope) => object.get(id, include, exclude, scope),
    remove: (id, ignoreNotFound, origin) => object.remove(id, ignoreNotFound, origin),
    updateWhere: (filterBy, json, after, scope, dirtyValues) =>
      object.updateWhere(filterBy, json, after, scope, dirtyValues),
    removeWhere: (filterBy, options, scope) => object.removeWhere(filterBy, options, scope),
    truncate: (origin) => object.truncate(origin),
    importLines: (lines, options) => object.importLines(lines, options),
    search: (params, scope, ticket) => object.search(params, scope, ticket),
    abandon: (ticket) => object.abandon(ticket),
    exportLines: (options, scope) =>
      attempt(async () => {
        const pages = exportedPages(object, options, scope)
        const first = await pages.next()
        return first.done ? nothing() : withFirst(first.value, pages)
      }),
  }
}

async function* exportedPages(
  object: CollectionRpc,
  options: ExportOptions,
  scope: SearchScope | undefined,
): AsyncGenerator<string, void, undefined> {
  let separator = ''
  let after = 0
  for (let done = false; !done; ) {
    const page = unwrap(await object.exportPage(options, after, scope))
    if (page.lines !== '') yield separator + page.lines
    if (page.lines !== '') separator = '\n'
    after = page.cursor
    done = page.done
  }
}

async function* withFirst(
  first: string,
  rest: AsyncIterable<string>,
): AsyncGenerator<string, void, undefined> {
  yield first
  yield* rest
}

async function* nothing(): AsyncGenerator<string, void, undefined> {}
