/**
 * Answers in JSON that may take long, with work that stops when the caller hangs up.
 *
 * On Cloudflare `request.signal` fires when the caller hangs up. Elsewhere only a body that nobody reads shows it. So
 * an answer that takes longer than a moment begins before its content is there, with a blank now and then, which JSON
 * allows.
 */
import { waitUntil } from 'cloudflare:workers'
import { jsonText } from './response'

/** An answer within this time can still be an error with its own status. */
const MOMENT_MS = 1_000
/** Between blanks. */
const BLANK_MS = 250
/** If a blank is not read for this long, the caller has gone. */
const STALLED_MS = 3_000

const BLANK = new Uint8Array([0x20])
const PIECE_BYTES = 64 * 1024

const HEADERS = {
  'content-type': 'application/json; charset=utf-8',
  // A proxy that compresses would hold the blanks back until the end.
  'content-encoding': 'identity',
}

/**
 * @param work makes the content. Its signal aborts when nobody waits any more
 * @param write the content as JSON
 * @throws what `work` throws within a moment. A later error breaks the answer off
 */
export async function slowAnswer<Content>(
  request: Request,
  work: (gone: AbortSignal) => Promise<Content>,
  write: (content: Content) => string = JSON.stringify,
): Promise<Response> {
  const gone = new AbortController()
  const leave = () => gone.abort()
  request.signal.addEventListener('abort', leave)
  const content = work(gone.signal)
  if (await settles(content, MOMENT_MS)) return jsonText(write(await content))
  // A pull source is only asked when the stream has room. Writes go out at once, and fail if the connection is closed.
  const { readable, writable } = new IdentityTransformStream()
  // Without `waitUntil` workerd ends the request when a write fails, and the work would not be stopped.
  waitUntil(
    writeSlowly(writable.getWriter(), content, write)
      .catch(leave)
      // Until the work has noticed the abort and has ended.
      .then(() => content)
      .catch(() => {}),
  )
  return new Response(readable, { headers: HEADERS })
}

/** Writes blanks until the content is there, then the content. @throws if nobody reads, or what `content` throws */
async function writeSlowly<Content>(
  writer: WritableStreamDefaultWriter<Uint8Array>,
  content: Promise<Content>,
  write: (content: Content) => string,
): Promise<void> {
  try {
    while (!(await settles(content, BLANK_MS))) {
      const written = writer.write(BLANK)
      if (!(await settles(written, STALLED_MS))) throw new Error('nobody takes the answer')
      await written
    }
    const bytes = new TextEncoder().encode(write(await content))
    for (let at = 0; at < bytes.length; at += PIECE_BYTES)
      await writer.write(bytes.subarray(at, at + PIECE_BYTES))
    await writer.close()
  } catch (error) {
    await writer.abort(error).catch(() => {})
    throw error
  }
}

/** Whether work settles within this time. */
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
