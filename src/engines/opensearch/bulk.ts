/** Documents as lines of `_bulk`, and its reply as the result lines of an import. */
import * as v from 'valibot'
import { parseExact } from '../../lib/exact-json'
import { once } from '../../lib/once'
import { isObject } from '../../search/schema/values'
import type { ImportOptions, WriteAction } from '../../search/types'

/** A line of an import: a document, or what is wrong with it. */
export type Line =
  | { id: string | undefined; source: Record<string, unknown>; text: string }
  | { error: string; text: string }

/** @param lines of JSON, each a document */
export const readLines = (lines: readonly string[], action: WriteAction): Line[] =>
  lines.map((text) => readLine(text, action))

export function readLine(text: string, action: WriteAction): Line {
  let parsed: unknown
  try {
    parsed = parseExact(text)
  } catch {
    return { error: 'Bad JSON.', text }
  }
  if (!isObject(parsed)) return { error: 'Document must be an object.', text }
  const { id, ...source } = parsed
  if (id !== undefined && (typeof id !== 'string' || id === '')) {
    return { error: 'Document `id` should be a string.', text }
  }
  if (id === undefined && (action === 'update' || action === 'emplace')) {
    return { error: 'For update, the `id` key must be provided.', text }
  }
  return { id, source, text }
}

/** Two lines for each document: what to do, and the document. */
export function bulkText(lines: readonly Line[], action: WriteAction): string {
  const written = lines.flatMap((line) => {
    if ('error' in line) return []
    const { id, source } = line
    const target = id === undefined ? {} : { _id: id }
    if (action === 'create') return [{ create: target }, source]
    if (action === 'upsert') return [{ index: target }, source]
    return [{ update: target }, { doc: source, ...(action === 'emplace' && { doc_as_upsert: true }) }]
  })
  return written.map((part) => `${JSON.stringify(part)}\n`).join('')
}

const BulkReply = once(() =>
  v.object({
    items: v.array(
      v.record(
        v.string(),
        v.object({
          _id: v.nullish(v.string()),
          status: v.number(),
          error: v.optional(v.looseObject({ type: v.optional(v.string()), reason: v.optional(v.string()) })),
        }),
      ),
    ),
  }),
)

/** A result for each line, in order. @param reply of `_bulk`; undefined if no line could be sent */
export function bulkResults(
  lines: readonly Line[],
  reply: unknown,
  { returnDocument, returnId }: Pick<ImportOptions, 'returnDocument' | 'returnId'>,
): Record<string, unknown>[] {
  const items = reply === undefined ? [] : v.parse(BulkReply(), reply).items
  let at = 0
  return lines.map((line) => {
    if ('error' in line) return { success: false, error: line.error, code: 400, document: line.text }
    const [item] = Object.values(items[at++] ?? {})
    if (!item)
      return { success: false, error: 'The cluster has not answered for it.', code: 503, document: line.text }
    const { _id: id, status, error } = item
    if (error) {
      const code = status === 429 ? 503 : status
      return { success: false, error: reasonOf(error.type, error.reason, line.id), code, document: line.text }
    }
    return {
      success: true,
      ...(returnId && { id }),
      ...(returnDocument && { document: { id, ...line.source } }),
    }
  })
}

/** The cluster's reason in Typesense's words, where it has any. */
export function reasonOf(type = '', reason = '', id = ''): string {
  if (type === 'version_conflict_engine_exception') return `A document with id ${id} already exists.`
  if (type === 'document_missing_exception') return `Could not find a document with id: ${id}`
  return reason || 'The cluster refused the document.'
}
