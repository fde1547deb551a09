/** Long plain-text answers, written piece by piece. */

const TEXT_HEADERS = { 'content-type': 'text/plain; charset=utf-8' }

export const plainText = (body: string | ReadableStream): Response =>
  new Response(body, { headers: TEXT_HEADERS })

/**
 * A body of pieces as they come. The first piece is awaited before there is a body, so that its error can
 * still be answered with a status.
 *
 * @param readAhead bytes produced before the reader takes any. A client that sends all of its body before it
 *   reads would otherwise wait for us to take its body while we wait for it to take our answer
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
