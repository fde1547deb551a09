/**
 * Gzip, inflated no faster than it is read.
 *
 * workerd's DecompressionStream has no back-pressure: it inflates whatever it is given, which may be a thousand times
 * as large, in one step that nothing interrupts, and keeps all of it. `node:zlib` stops after each piece of its
 * output until that has been read. It is part of the runtime too, and weighs nothing in the bundle.
 */
import type { Gunzip } from 'node:zlib'
import type { ByteReader } from '../../lib/byte-reader'

/** Bytes of a piece of output. Two of them at most are inflated before they are read. */
const PIECE_BYTES = 64 * 1024

/**
 * Inflates a body whose first bytes have been read.
 *
 * @param head the bytes that have been read
 * @param reader the rest. No read of it is under way any more when the generator has ended
 * @throws whatever is wrong with the gzip, or with reading it
 */
export async function* inflate(
  head: Uint8Array,
  reader: ByteReader,
): AsyncGenerator<Uint8Array, void, undefined> {
  // Load this when the first body needs it. At the start of an isolate it would delay every request by some
  // milliseconds.
  const { createGunzip } = await import('node:zlib')
  const gunzip = createGunzip({
    chunkSize: PIECE_BYTES,
    readableHighWaterMark: PIECE_BYTES,
    // A piece of input waits until the piece before has been inflated completely.
    writableHighWaterMark: 1,
  })
  const fed = feed(gunzip, head, reader)
  try {
    yield* gunzip
  } finally {
    gunzip.destroy()
    await fed
  }
}

/** Writes the input as fast as it is taken. An error of the reader is passed on to the output. */
async function feed(gunzip: Gunzip, head: Uint8Array, reader: ByteReader): Promise<void> {
  const closed = new Promise<void>((resolve) => gunzip.once('close', resolve))
  try {
    for (let bytes: Uint8Array | undefined = head; bytes; bytes = (await reader.read()).value) {
      if (gunzip.destroyed) return
      const drained = new Promise<void>((resolve) => gunzip.once('drain', resolve))
      if (!gunzip.write(bytes)) await Promise.race([drained, closed])
    }
    gunzip.end()
  } catch (error) {
    gunzip.destroy(error as Error)
  }
}
