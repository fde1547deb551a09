/**
 * Runs one command line after another in one process, as run-parley.ts asks: most of what a short command costs is to load its program.
 * Each has its own arguments, folder, environment and output. `cli.mjs` runs when it is imported, so it is imported anew.
 */
const CLI = new URL('../../scripts/parley/cli.mjs', import.meta.url)
const own = { ...process.env }
let runs = 0

process.on(
  'message',
  async (/** @type {{ args: string[], folder: string, env: Record<string, string> }} */ asked) => {
    const printed = { out: '', err: '' }
    const written = { stdout: process.stdout.write, stderr: process.stderr.write }
    process.stdout.write = (/** @type {any} */ text) => {
      printed.out += text
      return true
    }
    process.stderr.write = (/** @type {any} */ text) => {
      printed.err += text
      return true
    }
    process.argv.splice(2, Infinity, ...asked.args)
    process.env = { ...own, ...asked.env }
    process.chdir(asked.folder)
    process.exitCode = 0
    let code = 1
    try {
      await import(`${CLI}?run=${++runs}`)
      code = Number(process.exitCode)
    } catch (error) {
      printed.err += error
    }
    Object.assign(process.stdout, { write: written.stdout })
    Object.assign(process.stderr, { write: written.stderr })
    process.send?.({ code, ...printed })
  },
)
process.once('disconnect', () => process.exit())
