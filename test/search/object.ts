/** Collection objects for tests, addressed as the Worker addresses them. */
import { env } from 'cloudflare:workers'
import { unwrap } from '../../src/errors'
import type { CollectionRpc } from '../../src/search/collection/handle'
import { collectionObject } from '../../src/search/collection/handle'
import type { ImportOptions } from '../../src/search/types'

export const CREATE = { action: 'create', returnDocument: false, returnId: false } satisfies ImportOptions

/** An object that no name leads to. @returns the object and its id */
export function newObject(): { objectId: string; object: CollectionRpc } {
  const objectId = crypto.randomUUID()
  return { objectId, object: collectionObject(env, objectId) }
}

/** A collection with these fields, and whatever else `extra` says. */
export async function newCollection(
  fields: Record<string, unknown>[],
  extra: Record<string, unknown> = {},
): Promise<CollectionRpc> {
  const { object } = newObject()
  unwrap(await object.create({ name: 'things', fields, ...extra }, Math.floor(Date.now() / 1000)))
  return object
}

/** Imports documents and returns the parsed result lines. */
export async function importAll(
  object: CollectionRpc,
  documents: (Record<string, unknown> | string)[],
  options: Partial<ImportOptions> = {},
): Promise<Record<string, unknown>[]> {
  const lines = documents.map((document) =>
    typeof document === 'string' ? document : JSON.stringify(document),
  )
  const { results } = unwrap(await object.importLines(lines, { ...CREATE, ...options }))
  return results === '' ? [] : results.split('\n').map((line) => JSON.parse(line))
}

/** All documents of a collection, oldest first. */
export async function exportAll(object: CollectionRpc, filterBy = ''): Promise<Record<string, unknown>[]> {
  const documents: Record<string, unknown>[] = []
  for (let cursor = 0, done = false; !done; ) {
    const page = unwrap(await object.exportPage({ filterBy, include: '', exclude: '' }, cursor))
    if (page.lines !== '') documents.push(...page.lines.split('\n').map((line) => JSON.parse(line)))
    cursor = page.cursor
    done = page.done
  }
  return documents
}

/** Ids of the documents that a filter matches. */
export const idsWhere = async (object: CollectionRpc, filterBy: string): Promise<string[]> =>
  (await exportAll(object, filterBy)).map(({ id }) => id as string)
