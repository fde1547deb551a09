/** `parley source`: websites, buckets of R2 and Git archives that the server reads again by itself. */
import { Option } from 'commander'
import { nameOf } from '../import/site.mjs'
import { progress, quoted } from '../progress.mjs'
import { EXIT, Failure } from '../server.mjs'
import { DEFAULT_NAME } from './init.mjs'

/** @param {string} name */
const pathOf = (name) => `/sources/${encodeURIComponent(name)}`

/**
 * @typedef {object} Run
 * @property {number} started_at
 * @property {number} pages
 * @property {number} changed
 * @property {number} unchanged
 * @property {number} gone
 * @property {number} failed
 * @property {{ url: string, error: string }[]} failures
 *
 * @typedef {object} Source
 * @property {string} name
 * @property {'website' | 'bucket' | 'archive'} kind
 * @property {string} url
 * @property {string} collection
 * @property {number} every_minutes
 * @property {number} max_pages
 * @property {'waiting' | 'reading'} state
 * @property {number} next_run_at
 * @property {Run} [run]
 * @property {Run} [last_run]
 */

/**
 * @param {import('../server.mjs').Server} server
 * @param {string} url
 * @param {{ name?: string, into: string, every: number, prune: boolean, maxPages: number, baseUrl?: string }} options
 * @returns {Promise<Source>}
 * @throws Failure
 */
function addSource(server, url, { name, into, every, prune, maxPages, baseUrl }) {
  if (!/^(?:https?|r2):\/\//i.test(url) || !URL.canParse(url)) {
    throw new Failure(
      EXIT.usage,
      `"${url}" is no address of a website, a Git archive or a bucket (r2://NAME). A source is one; \`import\` takes folders and files.`,
    )
  }
  return server.call('PUT', pathOf(name ?? nameOf(url)), {
    body: {
      ...{ url, collection: into, every_minutes: every, prune, max_pages: maxPages },
      ...(baseUrl !== undefined && { base_url: baseUrl }),
    },
  })
}

/**
 * Reads a source until its run has ended, or until its site asks to be left alone.
 * @param {import('../server.mjs').Server} server
 * @param {string} name
 * @param {(source: Source) => void} onStep
 * @returns {Promise<Source>}
 */
async function runSource(server, name, onStep) {
  for (;;) {
    const source = await server.call('POST', `${pathOf(name)}/run`)
    if (source.state === 'waiting' || source.next_run_at > Date.now() + 1_000) return source
    onStep(source)
  }
}

/** @param {Run} run */
const counts = ({ pages, changed, unchanged, gone, failed }) =>
  `${pages} ${pages === 1 ? 'page' : 'pages'}: ${changed} changed, ${unchanged} unchanged, ${gone} gone, ${failed} failed`

/** @param {number} at */
const moment = (at) => new Date(at).toISOString().slice(0, 16).replace('T', ' ')

/** @param {Source} source @returns {string[]} */
function sourceLines({ name, kind, url, collection, state, next_run_at, run, last_run }) {
  const last = last_run && `  ${moment(last_run.started_at)}  ${counts(last_run)}`
  return [
    `${name}  ${kind} ${url} into ${collection}`,
    ...(last ? [last] : []),
    ...(last_run?.failures ?? []).map(({ url, error }) => `    ${url}: ${error}`),
    state === 'reading' && run ? `  reading: ${counts(run)}` : `  next  ${moment(next_run_at)}`,
  ]
}

/**
 * What all commands are made with (cli.mjs).
 * @typedef {object} Ways
 * @property {(run: (run: { server: import('../server.mjs').Server, json: boolean, options: any }, ...names: any[]) => Promise<void>) => (...given: any[]) => Promise<void>} action
 * @property {(options: any, name: string, flags: Record<string, unknown>) => string} commandAs
 * @property {(text: string) => number} positive
 * @property {(value: unknown) => void} print
 * @property {(line: string) => void} say
 */

/**
 * Adds the commands.
 * @param {import('commander').Command} program
 * @param {Ways} ways
 */
export function sourceCommands(program, { action, commandAs, positive, print, say }) {
  const source = program
    .command('source')
    .description('websites, buckets and Git archives that the server reads again by itself')

  source
    .command('add')
    .description('register a website, a bucket of R2 or a Git archive, or change how it is read')
    .argument('<address>', 'where the site begins, r2://NAME/FOLDER/, or https://…/main.tar.gz#FOLDER')
    .option('--into <collection>', 'the collection; it is made where there is none', DEFAULT_NAME)
    .option('--name <name>', "what the source is called (default: the site's host and path)")
    .addOption(new Option('--every <minutes>', 'how often it is read').argParser(positive).default(1_440))
    .option('--base-url <url>', 'where the files of a bucket or an archive are read on the web')
    .option('--prune', 'remove pages that answer 404 or 410, and files that are gone', false)
    .addOption(new Option('--max-pages <n>', 'pages at most').argParser(positive).default(1_000))
    .action(
      action(async ({ server, json, options }, address) => {
        const added = await addSource(server, address, options)
        if (json) return print(added)
        for (const line of sourceLines(added)) print(line)
        say(`Read it now: ${commandAs(options, `source run ${quoted(added.name)}`, {})}`)
      }),
    )

  source
    .command('list')
    .description('show the sources, and how their last runs went')
    .action(
      action(async ({ server, json }) => {
        const { sources } = await server.call('GET', '/sources')
        if (json) return print(sources)
        for (const line of sources.flatMap(sourceLines)) print(line)
        if (sources.length === 0) print('There are no sources.')
      }),
    )

  source
    .command('run')
    .description('read a source now')
    .argument('<name>')
    .action(
      action(async ({ server, json }, name) => {
        const done = await progress('Reading', 0, 'pages', json, (to) =>
          runSource(server, name, ({ run, max_pages }) => to(run?.pages ?? 0, max_pages)),
        )
        if (json) print(done)
        else for (const line of sourceLines(done)) print(line)
        if ((done.last_run?.failed ?? 0) > 0) process.exitCode = EXIT.partial
      }),
    )

  source
    .command('remove')
    .description('read a source no more; its documents stay')
    .argument('<name>')
    .action(
      action(async ({ server, json }, name) => {
        const removed = await server.call('DELETE', pathOf(name))
        print(json ? removed : `Removed: ${removed.name}. Its documents stay in ${removed.collection}.`)
      }),
    )
}
