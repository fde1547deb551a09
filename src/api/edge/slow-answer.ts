/**
 * Answers in JSON that may take long, for callers who may not wait that long.
 *
 * Where the runtime tells of a caller who hangs up, `request.signal` does. Elsewhere only a body that nobody takes
 * tells of it. So an answer that takes longer than a moment begins without waiting for its content: with blanks,
 * which JSON allows, now and then.
 */
import { json } from './response'

/** An answer that takes no longer has its own status. */
const MOMENT_MS = 1_000
/** Between blanks. */
const BLANK_MS = 250
/** When nobody has taken a blank for so long, nobody is there. */
const STALLED_MS = 3_000

const BLANK = new Uint8Array([0x20])
const PIECE_BYTES = 64 * 1024

/**
 * @param work makes the content; its signal says when nobody waits for it any more
 * @throws what `work` throws within a moment; what it throws later breaks the answer off
 */
export async function slowAnswer(
  request: Request,
  work: (gone: AbortSignal) => Promise<unknown>,
): Promise<Response> {
  const gone = new AbortController()
  const leave = () => gone.abort()
  request.signal.addEventListener('abort', leave)
  const content = work(gone.signal)
  if (await settles(content, MOMENT_MS)) return json(await content)
  const stream = blanksThen(content, leave)
  return new Response(stream, { headers: { 'content-type': 'application/json; charset=utf-8' } })
}

function blanksThen(content: Promise<unknown>, leave: () => void): ReadableStream<Uint8Array> {
  let bytes: Uint8Array | undefined
  let at = 0
  let stalled: ReturnType<typeof setTimeout> | null = null
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      clearTimeout(stalled)
      if (bytes === undefined && (await settles(content, BLANK_MS))) {
        bytes = new TextEncoder().encode(JSON.stringify(await content))
      }
      if (bytes === undefined) {
        stalled = setTimeout(leave, STALLED_MS)
        controller.enqueue(BLANK)
      } else if (at < bytes.length) {
        controller.enqueue(bytes.subarray(at, at + PIECE_BYTES))
        at += PIECE_BYTES
      } else {
        controller.close()
      }
    },
    cancel() {
      clearTimeout(stalled)
      leave()
    },
  })
}

/** Whether work is settled within so many milliseconds. */
async function settles(work: Promise<unknown>, milliseconds: number): Promise<boolean> {
  let timer: ReturnType<typeof setTimeout> | null = null
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), milliseconds)
  })
  const settled = work.then(
    () => true,
    () => true,
  )
  const result = await Promise.race([settled, late])
  clearTimeout(timer)
  return result
}
