/**
 * What the engine of a collection offers: its documents, their search, and its schema. A collection of the engine `object` is one
 * Durable Object of Parley. The others live in a cluster, and an adapter in this folder translates.
 */
import { attempt, type Outcome, unwrap } from '../errors'
import type { CollectionRpc } from '../search/collection/handle'
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

/** What an engine does in steps, until it is done. @param step goes on behind the last document that was done */
export async function* steps<Taken extends { done: boolean; cursor?: number }>(
  step: (after: number) => Promise<Taken>,
  from = 0,
): AsyncGenerator<Taken, void, undefined> {
  for (let after: number | undefined = from; after !== undefined; ) {
    const taken: Taken = await step(after)
    yield taken
    after = taken.done ? undefined : (taken.cursor ?? 0)
  }
}

// =============================================================================
// The documents of a collection in its own Durable Object.

/** @param object a handle on the object */
export const objectDocuments = (object: CollectionRpc): DocumentStore =>
  new Proxy(object as CollectionRpc & DocumentStore, {
    get: (own, name) => (name === 'exportLines' ? exporter(own) : Reflect.get(own, name)),
  })

const exporter =
  (object: CollectionRpc): DocumentStore['exportLines'] =>
  (options, scope) =>
    attempt(async () => {
      const pages = exportedPages(object, options, scope)
      return begun(await pages.next(), pages)
    })

async function* exportedPages(
  object: CollectionRpc,
  options: ExportOptions,
  scope: SearchScope | undefined,
): AsyncGenerator<string, void, undefined> {
  let separator = ''
  for await (const { lines } of steps((after) => object.exportPage(options, after, scope).then(unwrap))) {
    if (lines === '') continue
    yield separator + lines
    separator = '\n'
  }
}

async function* begun(
  first: IteratorResult<string, void>,
  rest: AsyncIterable<string>,
): AsyncGenerator<string, void, undefined> {
  if (!first.done) yield first.value
  yield* rest
}
