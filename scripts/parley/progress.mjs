/** How far something has come, with its rate: a bar in a terminal, nothing where the output is read by a program. */
import { Presets, SingleBar } from 'cli-progress'

/**
 * @param {string} what is done
 * @param {number} total 0: not known yet
 * @param {string} unit
 * @param {boolean} quiet
 * @returns {{ to: (done: number, total?: number) => void, stop: () => void }}
 */
export function progress(what, total, unit, quiet) {
  if (quiet || !process.stderr.isTTY) return { to: () => {}, stop: () => {} }
  const bar = new SingleBar(
    {
      format: `${what} {bar} {value}/{total} ${unit}, {rate} a second, {eta_formatted} left`,
      stream: process.stderr,
      hideCursor: true,
    },
    Presets.shades_classic,
  )
  const began = Date.now()
  bar.start(total, 0, { rate: '-' })
  return {
    to(done, of) {
      if (of !== undefined) bar.setTotal(of)
      const seconds = (Date.now() - began) / 1000
      bar.update(done, { rate: seconds > 0.2 ? Math.round(done / seconds) : '-' })
    },
    stop: () => bar.stop(),
  }
}
