/** What a terminal shows of a command: how it is typed, and how far it has come, with its rate. Nothing where a program reads the output. */
import { Presets, SingleBar } from 'cli-progress'

/** How the command line is typed where it was started (bin.mjs): `parley` is on nobody's path, unless it was linked. */
export const COMMAND = process.env.PARLEY_COMMAND ?? 'parley'

/**
 * An argument as somebody types it into a shell.
 * @param {string} argument
 * @returns {string} in quotes where it needs them
 */
export const quoted = (argument) =>
  /^[\w./:@%+=,-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`

/** @type {Set<SingleBar>} */
const shown = new Set()

/** Commands that go on, when they are run again, where they broke off. */
const RESUMED = new Set(['import', 'backup', 'restore', 'move'])

/** What was typed, without the key: a terminal keeps what it shows. */
function typedAgain() {
  const args = process.argv.slice(2)
  const shown = args.filter(
    (arg, at) => arg !== '--key' && !arg.startsWith('--key=') && args[at - 1] !== '--key',
  )
  return [COMMAND, ...shown.map(quoted)].join(' ')
}

/**
 * On Ctrl-C: gives the terminal its cursor back, and says how to go on.
 * @param {() => string[]} args of the command
 * @returns {() => void} ends that
 */
export function watchInterrupts(args) {
  const stop = () => {
    for (const bar of shown) bar.stop()
    const goOn = args().some((arg) => RESUMED.has(arg)) && `What is done stays. To go on: ${typedAgain()}`
    console.error(`\nStopped. ${goOn || ''}`.trimEnd())
    process.exit(130)
  }
  process.once('SIGINT', stop)
  return () => void process.removeListener('SIGINT', stop)
}

/**
 * Does something, and shows how far it has come.
 * @template Done
 * @param {string} what is done
 * @param {number} total 0: not known yet
 * @param {string} unit
 * @param {boolean} quiet
 * @param {(to: (done: number, total?: number) => void) => Promise<Done>} work
 * @returns {Promise<Done>}
 */
export async function progress(what, total, unit, quiet, work) {
  if (quiet || !process.stderr.isTTY) return work(() => {})
  const bar = new SingleBar(
    {
      format: `${what} {bar} {value}/{total} ${unit}, {rate} a second, {eta_formatted} left`,
      stream: process.stderr,
      hideCursor: true,
    },
    Presets.shades_classic,
  )
  const began = Date.now()
  shown.add(bar)
  bar.start(total, 0, { rate: '-' })
  try {
    return await work((done, of) => {
      if (of !== undefined) bar.setTotal(of)
      const seconds = (Date.now() - began) / 1000
      bar.update(done, { rate: seconds > 0.2 ? Math.round(done / seconds) : '-' })
    })
  } finally {
    shown.delete(bar)
    bar.stop()
  }
}
