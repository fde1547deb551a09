/** POST /documents/import: takes a batch of lines, returns a result line for each. */
import { ApiError } from '../../errors'
import type { Document, ImportOptions } from '../types'
import { parseDocument } from './document'
import type { Store } from './store'
import type { Writer, Written } from './writer'

const SUCCESS = '{"success":true}'

/**
 * @param faults lines whose references are refused
 * @returns a line of JSON for each of `lines`, in order, joined by LF
 */
export function importLines(
  store: Store,
  writer: Writer,
  lines: string[],
  options: ImportOptions,
  faults: readonly (ApiError | undefined)[] = [],
): string {
  const { action, dirtyValues } = options
  const results = writer.write(
    lines.map((document, index) => ({ document, action, dirtyValues, fault: faults[index] })),
    options,
  )
  const documents = options.returnDocument
    ? store.read(results.flatMap((result) => (result instanceof ApiError ? [] : result.seq)))
    : undefined
  return results
    .map((result, number) =>
      result instanceof ApiError
        ? failure(result, lines[number]!, options)
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

/** @param line the refused line, which the reply contains as a string */
function failure(error: ApiError, line: string, { returnDocument, returnId }: ImportOptions): string {
  const id = returnId ? idIn(line) : undefined
  return JSON.stringify({
    success: false,
    error: error.message,
    code: error.status,
    ...(returnDocument ? { document: line } : {}),
    ...(id === undefined ? {} : { id }),
  })
}

/** The id that a line names, if it can be read. */
function idIn(line: string): string | undefined {
  try {
    const { id } = parseDocument(line)
    return typeof id === 'string' ? id : undefined
  } catch {
    return undefined
  }
}
