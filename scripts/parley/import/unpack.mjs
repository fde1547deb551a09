/** Unpacks gzip no faster than it is read, in Node and in a Worker (src/api/http/body.ts says why not with DecompressionStream). */
import { createGunzip } from 'node:zlib'

/** Bytes of a piece of output. */
const PIECE = 64 * 1024

/**
 * What a gzipped stream unpacks to.
 * @param {ReadableStream<Uint8Array>} packed cancelled when the reader of the other leaves
 * @param {number} most bytes
 * @returns {ReadableStream<Uint8Array>} errors with what is wrong with the gzip, and past `most`
 */
export function unpacked(packed, most) {
  // Node's types leave out what its streams take.
  const options = { chunkSize: PIECE, readableHighWaterMark: PIECE, writableHighWaterMark: 1 }
  const gunzip = createGunzip(options)
  const pieces = gunzip[Symbol.asyncIterator]()
  const reader = packed.getReader()
  let length = 0
  const leave = async (/** @type {unknown} */ reason) => {
    gunzip.destroy()
    await reader.cancel(reason).catch(() => {})
  }
  feed(gunzip, reader)
  return new ReadableStream(
    {
      async pull(controller) {
        try {
          const { done, value } = await pieces.next()
          if (done) return controller.close()
          length += value.length
          if (length > most) throw new Error(`it unpacks to more than ${most >> 20} MiB`)
          controller.enqueue(new Uint8Array(value))
        } catch (error) {
          await leave(error)
          const { code, message } = /** @type {NodeJS.ErrnoException} */ (error)
          throw code?.startsWith('Z_') ? new Error(`it is no whole gzip: ${message}`) : error
        }
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  )
}

/** @param {import('node:zlib').Gunzip} gunzip @param {ReadableStreamDefaultReader<Uint8Array>} reader */
async function feed(gunzip, reader) {
  const closed = new Promise((resolve) => gunzip.once('close', resolve))
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (gunzip.destroyed) return
      if (done) {
        gunzip.end()
        return
      }
      const drained = new Promise((resolve) => gunzip.once('drain', resolve))
      if (!gunzip.write(value)) await Promise.race([drained, closed])
    }
  } catch (error) {
    gunzip.destroy(/** @type {Error} */ (error))
  }
}
