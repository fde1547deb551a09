/** Long replies in plain text, written piece by piece. */

const TEXT_HEADERS = { 'content-type': 'text/plain; charset=utf-8' }

export const plainText = (body: string | ReadableStream): Response =>
  new Response(body, { headers: TEXT_HEADERS })

/**
 * A body of pieces as they come. The first piece is awaited before the reply begins, so that its error can have its own
 * status.
 *
 * @param readAhead bytes to produce before the client reads any. Otherwise a client that sends its whole body before it reads
 *   would wait for us to read its body, while we wait for it to read our reply
 */
export async function streamText(
  pieces: AsyncGenerator<string, void, undefined>,
  readAhead = 0,
): Promise<ReadableStream<Uint8Array>> {
  const encoder = new TextEncoder()
  const first = await pieces.next()
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        if (first.done) controller.close()
        else controller.enqueue(encoder.encode(first.value))
      },
      async pull(controller) {
        const next = await pieces.next()
        if (next.done) controller.close()
        else controller.enqueue(encoder.encode(next.value))
      },
      async cancel() {
        await pieces.return()
      },
    },
    { highWaterMark: readAhead, size: (chunk) => chunk?.byteLength ?? 0 },
  )
}
