/** What happens in a page, as an animated WebP. */
import sharp from 'sharp'

/** Nobody sees more of a chat, and each frame weighs. */
const FRAME_MS = 110
const LAST_MS = 4_000

/**
 * Records a page while something happens in it.
 * @param {import('playwright-core').Page} page
 * @param {() => Promise<void>} act
 * @param {{ width: number }} options pixels of the recording
 * @returns {Promise<Buffer>}
 */
export async function record(page, act, { width }) {
  const session = await page.context().newCDPSession(page)
  /** @type {{ data: Buffer, at: number }[]} */
  const frames = []
  session.on('Page.screencastFrame', ({ data, sessionId, metadata }) => {
    const at = (metadata.timestamp ?? 0) * 1000
    const last = frames.at(-1)
    const frame = { data: Buffer.from(data, 'base64'), at }
    if (last && at - last.at < FRAME_MS && frames.length > 1)
      frames[frames.length - 1] = { ...frame, at: last.at }
    else frames.push(frame)
    session.send('Page.screencastFrameAck', { sessionId }).catch(() => {})
  })
  await session.send('Page.startScreencast', { format: 'png', everyNthFrame: 1 })
  await act()
  await session.send('Page.stopScreencast')
  // Chromium can report a frame after a later one.
  frames.sort((one, other) => one.at - other.at)
  const delay = frames.map(({ at }, index) => {
    const next = frames[index + 1]
    return next ? Math.round(next.at - at) : LAST_MS
  })
  const drawn = await Promise.all(frames.map(({ data }) => sharp(data).resize({ width }).png().toBuffer()))
  return sharp(drawn, { join: { animated: true } })
    .webp({ delay, loop: 0, quality: 76, effort: 4, minSize: true, mixed: true })
    .toBuffer()
}
