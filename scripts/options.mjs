/** The options of `npm start`. */
import { parseArgs } from 'node:util'

export const DEFAULT_PORT = 8108
export const DEFAULT_FOLDER = '.parley'

export const usage = `Usage: npm start -- [options]

  --port N          the port to listen on (default ${DEFAULT_PORT})
  --persist-to DIR  where the data lives (default ${DEFAULT_FOLDER})
  --no-sample       do not load the sample collection (or PARLEY_SAMPLE=off)
  --help            this text

  PARLEY_API_KEY    the admin key (default xyz)`

/**
 * @param {string[]} args
 * @param {Record<string, string | undefined>} env
 * @returns {{ help: boolean, port: number, folder: string | undefined, sample: boolean, apiKey: string }}
 *   `folder` is undefined when none was named
 * @throws Error saying what is wrong with them
 */
export function readOptions(args, env) {
  const { values } = parseArgs({
    args,
    options: {
      port: { type: 'string', default: String(DEFAULT_PORT) },
      'persist-to': { type: 'string' },
      'no-sample': { type: 'boolean', default: false },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  const port = Number(values.port)
  if (!Number.isInteger(port) || port < 1 || port > 65535) {
    throw new Error(`--port takes a number from 1 to 65535, not "${values.port}".`)
  }
  if (values['persist-to'] === '') throw new Error('--persist-to takes the name of a folder.')
  const apiKey = env.PARLEY_API_KEY || 'xyz'
  if (/[\s"'`#$\\]/.test(apiKey)) {
    throw new Error('PARLEY_API_KEY may not contain spaces, quotes, #, $ or backslashes.')
  }
  return {
    help: values.help,
    port,
    folder: values['persist-to'],
    sample: !values['no-sample'] && env.PARLEY_SAMPLE !== 'off',
    apiKey,
  }
}
