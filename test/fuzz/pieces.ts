/**
 * A body that comes in pieces.
 * @param cuts where its bytes are cut, of whatever size they are
 * @param broken ends it with an error
 */
export function inPieces(bytes: Uint8Array, cuts: number[], broken?: Error): ReadableStream<Uint8Array> {
  const edges = [...new Set([0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort(
    (a, b) => a - b,
  )
  const pieces = edges.slice(1).map((edge, index) => bytes.slice(edges[index], edge))
  return new ReadableStream({
    pull(controller) {
      const piece = pieces.shift()
      if (piece) controller.enqueue(piece)
      else if (broken) controller.error(broken)
      else controller.close()
    },
  })
}
