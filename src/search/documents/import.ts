/** POST /documents/import: a batch of lines in, a result line each out. */
import { ApiError } from '../../errors'
import type { Document, ImportOptions } from '../types'
import type { Store } from './store'
import type { Writer, Written } from './writer'

const SUCCESS = '{"success":true}'

/** @returns one JSON line for each of `lines`, in order, joined by LF */
export function importLines(store: Store, writer: Writer, lines: string[], options: ImportOptions): string {
  const { action, dirtyValues } = options
  const results = writer.write(lines.map((document) => ({ document, action, dirtyValues })))
  const documents = options.returnDocument
    ? store.read(results.flatMap((result) => (result instanceof ApiError ? [] : result.seq)))
    : undefined
  return results
    .map((result, number) =>
      result instanceof ApiError
        ? failure(result, options.returnDocument ? lines[number] : undefined)
        : success(result, documents, options.returnId),
    )
    .join('\n')
}

function success(written: Written, documents: Map<number, Document> | undefined, returnId: boolean): string {
  if (documents === undefined && !returnId) return SUCCESS
  return JSON.stringify({
    success: true,
    ...(documents === undefined ? {} : { document: documents.get(written.seq) }),
    ...(returnId ? { id: written.id } : {}),
  })
}

/** @param line the line that was refused, which the reply carries as a string */
const failure = (error: ApiError, line: string | undefined): string =>
  JSON.stringify({
    success: false,
    error: error.message,
    code: error.status,
    ...(line === undefined ? {} : { document: line }),
  })
