/**
 * POST /collections/:collection/documents/import: JSONL in, a result line for every document out, in order.
 *
 * The body is never in memory as a whole. While the collection writes one batch, the next one is read. A batch is one
 * transaction, which delays searches, so batches shrink while somebody searches.
 */
import { ApiError, unwrap } from '../../errors'
import { pause } from '../../lib/pause'
import { documentsOf } from '../../registry/engines'
import { findCollection } from '../../registry/names'
import type { CollectionRpc } from '../../search/collection/rpc'
import type { ImportOptions } from '../../search/types'
import { bodyBytes } from '../http/body'
import { isTrue } from '../http/parameters'
import { originOf } from '../http/request-log'
import { type FailedRequest, failureOf } from '../http/response'
import type { Call } from '../http/route'
import { type Batch, type BatchSize, batches, LINE_LIMIT, splitLines } from './lines'
import { plainText, streamText } from './text-stream'
import { writeOptions } from './write-options'

const FULL_SIZE: BatchSize = { lines: 500, characters: 512 * 1024 }
const SMALL_SIZE: BatchSize = { lines: 50, characters: 24 * 1024 }

/**
 * For a cluster: each batch is a request, of which a Worker may make only so many. A batch is kept until it is answered, so that
 * another node can be asked.
 */
const CLUSTER_SIZE: BatchSize = { lines: 10_000, characters: 2 * 1024 * 1024, inBytes: true }

/** Bytes of results kept for a client that sends everything before it reads: some two million lines without documents. */
const READ_AHEAD = 32 * 1024 * 1024

export async function importDocuments({ env, request, path, query, record }: Call): Promise<Response> {
  const options: ImportOptions = {
    ...writeOptions(query),
    ...originOf(record),
    returnDocument: isTrue(query.return_doc),
    returnId: isTrue(query.return_id),
  }
  // Checked because callers send it, but not used: the size of a batch depends on bytes and on who is waiting.
  if (query.batch_size !== undefined && !/^0*[1-9]\d*$/.test(query.batch_size)) {
    throw new ApiError(400, 'Parameter `batch_size` must be a positive integer.')
  }
  const place = await findCollection(env, path.collection!)
  const size = place.engine === 'object' ? FULL_SIZE : CLUSTER_SIZE
  const results = importResults(documentsOf(env, place), bodyBytes(request), options, record, size)
  return plainText(await streamText(results, READ_AHEAD))
}

/** Result lines, a few at a time. Joined they are the body of the reply. */
export async function* importResults(
  collection: Pick<CollectionRpc, 'importLines'>,
  body: AsyncIterable<Uint8Array>,
  options: ImportOptions,
  record?: FailedRequest,
  full = FULL_SIZE,
): AsyncGenerator<string, void, undefined> {
  let size = full
  let separator = ''
  const send = async (batch: Batch): Promise<string> => {
    if ('tooLong' in batch) return failure(`Document exceeds the maximum of ${LINE_LIMIT} characters.`, 413)
    try {
      const { results, busy } = unwrap(await collection.importLines(batch.lines, options))
      size = busy ? SMALL_SIZE : full
      return results
    } catch (error) {
      // The first batch decides the status. After it the reply has begun, and every document gets a line.
      if (separator === '') throw error
      const { status, message } = failureOf(error, record)
      return batch.lines.map(() => failure(message, status)).join('\n')
    }
  }

  let sent: Promise<string> | undefined
  try {
    for await (const batch of batches(splitLines(body), () => size)) {
      if (sent) {
        yield separator + (await sent)
        separator = '\n'
        // If the body arrives faster than it is written, every read is ready at once, and so is every call inside one
        // process: without a pause the event loop would serve nobody else.
        await pause()
      }
      sent = send(batch)
      // If reading the next batch fails first, ignore this batch's own failure.
      sent.catch(() => {})
    }
    if (sent) yield separator + (await sent)
  } catch (error) {
    if (separator === '') throw error
    const { status, message } = failureOf(error, record)
    yield separator + failure(message, status)
  }
}

const failure = (error: string, code: number): string => JSON.stringify({ success: false, error, code })
