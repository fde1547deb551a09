/**
 * Answers in JSON that may take long, for callers who may not wait that long.
 *
 * Where the runtime tells of a caller who hangs up, `request.signal` does. Elsewhere only a body that nobody takes
 * tells of it. So an answer that takes longer than a moment begins without waiting for its content: with blanks,
 * which JSON allows, now and then.
 */
import { waitUntil } from 'cloudflare:workers'
import { json } from './response'

/** An answer that takes no longer has its own status. */
const MOMENT_MS = 1_000
/** Between blanks. */
const BLANK_MS = 250
/** When nobody has taken a blank for so long, nobody is there. */
const STALLED_MS = 3_000

const BLANK = new Uint8Array([0x20])
const PIECE_BYTES = 64 * 1024

const HEADERS = {
  'content-type': 'application/json; charset=utf-8',
  // What compresses the answer on its way would keep blanks to itself until the end.
  'content-encoding': 'identity',
}

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
  // A stream whose source is asked for more keeps what it has until then: only writes go out at once, and fail.
  const { readable, writable } = new IdentityTransformStream()
  // Without it workerd ends the request when a write fails, and nobody stops what it has begun.
  waitUntil(
    writeSlowly(writable.getWriter(), content)
      .catch(leave)
      // Until what was begun has been told, and has ended.
      .then(() => content)
      .catch(() => {}),
  )
  return new Response(readable, { headers: HEADERS })
}

/** Writes blanks until there is the content, and then that. @throws when nobody takes them, or what `content` throws */
async function writeSlowly(
  writer: WritableStreamDefaultWriter<Uint8Array>,
  content: Promise<unknown>,
): Promise<void> {
  try {
    while (!(await settles(content, BLANK_MS))) {
      const written = writer.write(BLANK)
      if (!(await settles(written, STALLED_MS))) throw new Error('nobody takes the answer')
      await written
    }
    const bytes = new TextEncoder().encode(JSON.stringify(await content))
    for (let at = 0; at < bytes.length; at += PIECE_BYTES)
      await writer.write(bytes.subarray(at, at + PIECE_BYTES))
    await writer.close()
  } catch (error) {
    await writer.abort(error).catch(() => {})
    throw error
  }
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
