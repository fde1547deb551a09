/** The options of `npm start`, and how programs take theirs. */
import { isIP } from 'node:net'
import { createInterface } from 'node:readline/promises'
import { parseArgs } from 'node:util'

export const DEFAULT_HOST = 'localhost'
const DEFAULT_PORT = 8108
const DEFAULT_FOLDER = '.parley'

/** Every public name over https, and servers on this machine. */
export const DEFAULT_HOSTS = '*, localhost, 127.0.0.1, [::1], host.docker.internal'

export const usage = `Usage: npm start -- [options]

  --port N               the port to listen on (default ${DEFAULT_PORT})
  --persist-to DIR       where the data lives (default ${DEFAULT_FOLDER})
  --no-sample            do not load the sample collection (or PARLEY_SAMPLE=off)
  --host ADDRESS         the address to listen on (default localhost, which only this machine reaches);
                         0.0.0.0 opens it to every machine that reaches this one
  --allow-host NAME      answer requests to this name too, such as parley.lan or *.app.github.dev: any page
                         under that name can then use this Parley
  --allow-origin ORIGIN  let pages of this origin use this Parley with the key, such as https://shop.example;
                         pages of this machine may without it. Both options can be given several times
  --help                 this text

  PARLEY_API_KEY    the admin key (default xyz)
  PARLEY_HOSTS      hosts that models may be called on besides the providers' own, separated by commas
                    (default ${DEFAULT_HOSTS})
  PARLEY_LOG        on: a line of JSON for each request`

const HOST_NAME = /^(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*$/i
const ORIGIN = /^[a-z][a-z0-9+.-]*:\/\/(?:\*\.)?(?:[\w-]+(?:\.[\w-]+)*|\[[0-9a-f:]+\])(?::\d+)?$/i

/** Whether only this machine can reach what listens there. @param {string} host */
export const isLoopback = (host) => host === DEFAULT_HOST || host === '::1' || /^127\./.test(host)

/** Where this machine itself reaches what listens there. @param {string} host @param {number} port */
export function urlOf(host, port) {
  const name = host === '0.0.0.0' || host === '::' ? DEFAULT_HOST : host
  return `http://${isIP(name) === 6 ? `[${name}]` : name}:${port}`
}

/**
 * @param {string[]} args
 * @param {Record<string, string | undefined>} env
 * @returns {{ help: boolean, port: number, folder: string, sample: boolean, apiKey: string, allowedHosts: string,
 *   log: boolean, host: string, servedHosts: string, origins: string }}
 *   `servedHosts` and `origins` as the variables SERVED_HOSTS and CORS_ORIGINS take them
 * @throws Error saying what is wrong with them
 */
export function readOptions(args, env) {
  const { values } = parseArgs({
    args,
    options: {
      port: { type: 'string', default: String(DEFAULT_PORT) },
      'persist-to': { type: 'string' },
      'no-sample': { type: 'boolean', default: false },
      host: { type: 'string', default: DEFAULT_HOST },
      'allow-host': { type: 'string', multiple: true, default: [] },
      'allow-origin': { type: 'string', multiple: true, default: [] },
      help: { type: 'boolean', short: 'h', default: false },
    },
  })
  const port = Number(values.port)
  if (!Number.isInteger(port) || port < 1 || port > 65535) {
    throw new Error(`--port takes a number from 1 to 65535, not "${values.port}".`)
  }
  if (values['persist-to'] === '') throw new Error('--persist-to takes the name of a folder.')
  const { host } = values
  if (host !== DEFAULT_HOST && !isIP(host)) {
    throw new Error(
      `--host takes an address such as 0.0.0.0, not "${host}". A name to answer to is an --allow-host.`,
    )
  }
  for (const name of values['allow-host']) {
    if (!HOST_NAME.test(name)) {
      throw new Error(
        `--allow-host takes a name such as parley.lan or *.app.github.dev, without a port, not "${name}".`,
      )
    }
  }
  for (const origin of values['allow-origin']) {
    if (!ORIGIN.test(origin)) {
      throw new Error(
        `--allow-origin takes an origin such as https://shop.example or https://*.shop.example, not "${origin}".`,
      )
    }
  }
  const apiKey = env.PARLEY_API_KEY || 'xyz'
  if (/[\s"'`#$\\]/.test(apiKey)) {
    throw new Error('PARLEY_API_KEY may not contain spaces, quotes, #, $ or backslashes.')
  }
  return {
    help: values.help,
    port,
    folder: values['persist-to'] ?? DEFAULT_FOLDER,
    sample: !values['no-sample'] && env.PARLEY_SAMPLE !== 'off',
    apiKey,
    allowedHosts: env.PARLEY_HOSTS || DEFAULT_HOSTS,
    log: env.PARLEY_LOG === 'on',
    host,
    // A page of another site can have its own name point here, but no address: listening on others, answer to all.
    servedHosts: ['loopback', ...(isLoopback(host) ? [] : ['addresses']), ...values['allow-host']].join(', '),
    origins: ['loopback', ...values['allow-origin']].join(', '),
  }
}

/** What somebody at a terminal answers. @param {string} question */
export async function answerTo(question) {
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  const answer = await terminal.question(question)
  terminal.close()
  return answer.trim()
}

/**
 * The options of the command line, or the end of the program: with what is wrong with them, or with the help.
 * @template {{ help?: boolean }} Options
 * @param {(args: string[]) => Options} read
 * @param {string} usage
 * @returns {Options}
 */
export function optionsOf(read, usage) {
  try {
    const options = read(process.argv.slice(2))
    if (!options.help) return options
  } catch (error) {
    console.error(`${/** @type {Error} */ (error).message}\n\n${usage}`)
    process.exit(1)
  }
  console.log(usage)
  process.exit(0)
}
