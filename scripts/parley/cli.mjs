#!/usr/bin/env node
/** `parley`: documents in, questions asked, answers looked into, against a local or a deployed server. */
import { readFile, writeFile } from 'node:fs/promises'
import { Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import { ask, nameOf, search, sourceLines } from './commands/ask.mjs'
import { backup } from './commands/backup.mjs'
import { connect, ENGINES, SECRET_VARIABLE } from './commands/connect.mjs'
import { examine } from './commands/doctor.mjs'
import { comparison, evaluate, readQuestions, summaryLines, summaryOf } from './commands/eval.mjs'
import { DEFAULT_NAME, init } from './commands/init.mjs'
import { move } from './commands/move.mjs'
import { restore } from './commands/restore.mjs'
import { sourceCommands } from './commands/source.mjs'
import { traceLines, traceOf } from './commands/trace.mjs'
import { pricesFrom, usage, usageLines } from './commands/usage.mjs'
import { COMMAND, quoted, watchInterrupts } from './progress.mjs'
import { EXIT, Failure, Server } from './server.mjs'

const EMBEDDING = 'ts/all-MiniLM-L12-v2'
const MODEL = 'local/extractive'

/** @param {unknown} value */
const print = (value) => console.log(typeof value === 'string' ? value : JSON.stringify(value, null, 2))
/** What is said beside the result goes to stderr, so that --json can be piped. @param {string} line */
const say = (line) => console.error(line)

/** @param {string} text */
const positive = (text) => {
  const number = Number(text)
  if (Number.isFinite(number) && number > 0) return number
  throw new InvalidArgumentError('It takes a number above 0.')
}
/** @param {string} text @param {string[]} [before] */
const several = (text, before = []) => [...before, text]

const { version } = JSON.parse(await readFile(new URL('../../package.json', import.meta.url), 'utf8'))
const program = new Command('parley')
  .version(version)
  .description('Import documents, ask questions, inspect answers.')
  .option('--url <address>', 'the server (PARLEY_URL; http://localhost:8108)')
  .option('--key <key>', 'an API key (PARLEY_API_KEY; xyz)')
  .option('--json', 'one JSON object on stdout', false)
  .configureHelp({ showGlobalOptions: true })
  .showHelpAfterError('(--help shows what there is)')
  .exitOverride()

/** Who answers and from what, as far as it was named: a conversation goes on with the same. @param {any} options */
const picked = ({ assistant, collection, model }) => ({ assistant, collection, model })

/**
 * A command to type next, which reaches the same server. The key is left out: a terminal keeps what it shows.
 * @param {{ url?: string }} options those of the command that suggests it
 * @param {string} name
 * @param {Record<string, unknown>} flags undefined ones are left out
 */
const commandAs = ({ url }, name, flags) =>
  [COMMAND, name]
    .concat(
      Object.entries({ url, ...flags }).flatMap(([flag, value]) =>
        value === undefined ? [] : [`--${flag}`, quoted(String(value))],
      ),
    )
    .join(' ')

// Commands that bring large packages with them (readers of files, XML) are loaded when they are called.
const bucket = () => import('./commands/bucket.mjs')

/** @param {string} place @returns {boolean} whether it names a bucket, and not a folder */
const isBucket = (place) => /^[a-z0-9]+:\/\//.test(place)

/** @typedef {{ server: Server, json: boolean, options: any }} Run */

/**
 * A command's action, with what all of them take.
 * @param {(run: Run, ...names: any[]) => Promise<void>} run
 * @returns {(...given: any[]) => Promise<void>}
 */
const action =
  (run) =>
  async (...given) => {
    const command = /** @type {Command} */ (given.at(-1))
    const options = command.optsWithGlobals()
    await run({ server: new Server(options), json: options.json, options }, ...given.slice(0, -2))
  }

program
  .command('init')
  .description('make a collection, its history, a model, an assistant and a key for pages')
  .option('--name <name>', `what all of them are called (default: as the collection, else ${DEFAULT_NAME})`)
  .option(
    '--collection <collection>',
    'what it answers from (default: the one of its name, or the only one with documents)',
  )
  .option('--model <model>', 'the language model that answers', MODEL)
  .option(
    '--model-url <address>',
    "its server, if it speaks OpenAI's API: Ollama, LM Studio, vLLM and others",
  )
  .option('--model-key <key>', "the model provider's API key (PARLEY_MODEL_KEY)")
  .option('--embedding <model>', 'the model that makes vectors', EMBEDDING)
  .option('--origin <origin>', 'an origin whose pages may use the key, as https://example.com', several)
  .action(
    action(async ({ server, json, options }) => {
      const apiKey = options.modelKey ?? process.env.PARLEY_MODEL_KEY
      const chosen = { isModelChosen: options.model !== MODEL, ...(apiKey !== undefined && { apiKey }) }
      const made = await init(server, { ...options, ...chosen }, say)
      if (json) return print(made)
      if (made.snippet !== undefined) print(`\nOn a page:\n\n${made.snippet}\n`)
      print(
        made.documents === 0
          ? `Next: ${COMMAND} import <folder | file... | website> --into ${quoted(String(made.collection))}`
          : `Ask: ${commandAs(options, 'ask', { assistant: made.name })} ...`,
      )
    }),
  )

program
  .command('import')
  .description('import a folder, files or a website; what is unchanged is not sent again')
  .argument(
    '<from...>',
    'a folder, files (Markdown, HTML, text, PDF, DOCX, PPTX, EPUB, XLSX, CSV, JSON), or the address of a website',
  )
  .option('--into <collection>', 'the collection; it is made where there is none', DEFAULT_NAME)
  .option('--source <name>', "what this import goes by (default: the folder's, file's or host's name)")
  .option('--base-url <address>', 'where the files of a folder are read on the web')
  .option('--embedding <model>', 'the model that makes vectors, for a new collection', EMBEDDING)
  .option('--no-assistant', 'make no assistant for the collection')
  .option('--model <model>', 'the language model that answers, for a new assistant', MODEL)
  .option('--field <name:type>', 'the type of a column, in the place of the guessed one', several)
  .option('--schema <file>', 'JSON with `fields`, in the place of guessed ones')
  .option('--id-field <column>', 'the column with the id of a row (default: id, else its line)')
  .option('--whole', 'make one document of each page, in the place of passages', false)
  .option('--prune', 'remove what is gone since the last import', false)
  .option('--dry-run', 'show what would be done', false)
  .option('--no-wait', 'do not wait for vectors: words are found at once')
  .option('--errors <file>', 'where to write what could not be imported')
  .addOption(new Option('--max-pages <n>', 'pages of a website at most').argParser(positive).default(1_000))
  .option('--rate <n>', 'pages of a website a second (default 5; no limit on this machine)', positive)
  .action(
    action(async ({ server, json, options }, from) => {
      const { importInto } = await import('./commands/import.mjs')
      const summary = await importInto(server, from, options, say)
      if (json) print(summary)
      else if (!summary.dry_run) {
        print(
          `Done in ${summary.seconds} s: ${Number(summary.added) + Number(summary.changed) - Number(summary.failed)} sent, ` +
            `${summary.unchanged} unchanged, ${summary.removed} removed, ${Number(summary.failed) + Number(summary.unread)} failed.`,
        )
        if (summary.assistant !== undefined)
          say(`Ask: ${commandAs(options, 'ask', { assistant: summary.assistant })} ...`)
      }
      if (Number(summary.failed) + Number(summary.unread) > 0) process.exitCode = EXIT.partial
    }),
  )

sourceCommands(program, { action, commandAs, positive, print, say })

program
  .command('ask')
  .description('ask a question')
  .argument('<question...>')
  .option('--assistant <name>', `who answers (default: ${DEFAULT_NAME}, else the one named default)`)
  .option('--collection <name>', 'what is searched, in the place of what the assistant has')
  .option('--model <id>', 'the conversation model')
  .option('--conversation <id>', 'the conversation to go on with')
  .action(
    action(async ({ server, json, options }, question) => {
      const turn = await ask(
        server,
        question.join(' '),
        options,
        (text) => json || process.stdout.write(text),
      )
      if (json) return print(turn)
      print('')
      for (const line of sourceLines(turn, server.url)) print(line)
      say(
        `\nGo on: ${commandAs(options, 'ask', { ...picked(options), conversation: turn.conversation_id })} ...`,
      )
    }),
  )

program
  .command('search')
  .description('search a collection')
  .argument('<words...>')
  .option('--collection <name>', 'the collection', DEFAULT_NAME)
  .option('--filter <filter>', "Typesense's filter_by")
  .addOption(new Option('--limit <n>', 'hits').argParser(positive).default(10))
  .action(
    action(async ({ server, json, options }, words) => {
      const reply = await search(server, words.join(' '), { ...options, byPage: !json })
      if (json) return print(reply)
      print(`${reply.found} found in ${reply.search_time_ms} ms`)
      const first = reply.grouped_hits?.map((/** @type {any} */ { hits: [hit] }) => hit)
      for (const { document, highlights = [] } of first ?? reply.hits) {
        print(`\n${nameOf(document)}${document.url ? `  ${document.url}` : ''}`)
        const snippet = highlights[0]?.snippet ?? highlights[0]?.snippets?.[0]
        if (snippet) print(`  ${snippet.replace(/<\/?mark>/g, '').replace(/\s+/g, ' ')}`)
      }
    }),
  )

program
  .command('trace')
  .description('show how the answers of a conversation came about')
  .argument('<conversation>')
  .option('--turn <n>', 'this turn alone', positive)
  .option('--prompt', 'show prompts whole', false)
  .action(
    action(async ({ server, json, options }, id) => {
      const trace = await traceOf(server, id, options)
      if (json) print(trace)
      else for (const line of traceLines(trace, options)) print(line)
    }),
  )

program
  .command('usage')
  .description('show turns, tokens and money by day and model')
  .option('--from <day>', 'the first day, as 2026-01-31')
  .option('--to <day>', 'the last day')
  .option('--price <model=in,out>', 'dollars a million tokens of a model', several, [])
  .action(
    action(async ({ server, json, options }) => {
      const found = await usage(server, { ...options, price: pricesFrom(options.price) })
      if (json) print(found)
      else for (const line of usageLines(found)) print(line)
    }),
  )

program
  .command('eval')
  .description('ask a set of questions and measure the answers')
  .argument('<questions>', 'a file with a question a line, as text or as JSON')
  .option('--assistant <name>', `who answers (default: ${DEFAULT_NAME}, else the one named default)`)
  .option('--collection <name>', 'what is searched')
  .option('--model <id>', 'the conversation model')
  .option('--price <model=in,out>', 'dollars a million tokens of a model', several, [])
  .option('--save <file>', 'write the outcomes down, to compare with later')
  .option('--compare <file>', 'outcomes that were saved: show both, and what changed question by question')
  .action(
    action(async ({ server, json, options }, file) => {
      const before = options.compare === undefined ? undefined : await saved(options.compare)
      const price = pricesFrom(options.price)
      const outcomes = await evaluate(server, await readQuestions(file), { ...options, price })
      if (options.save !== undefined) await writeFile(options.save, `${JSON.stringify(outcomes, null, 1)}\n`)
      if (json) return print({ summary: summaryOf(outcomes), outcomes })
      for (const line of before ? comparison(before, outcomes) : summaryLines(outcomes)) print(line)
    }),
  )

program
  .command('doctor')
  .description('find what is missing, misconfigured or unreachable')
  .option('--ask', 'also put a question to each assistant, which may cost', false)
  .action(
    action(async ({ server, json, options }) => {
      const checks = await examine(server, options)
      if (json) print(checks)
      else
        for (const { what, ok, advice } of checks)
          print(`${ok ? 'ok  ' : 'FAIL'}  ${what}${ok || !advice ? '' : `\n      ${advice}`}`)
      if (checks.some(({ ok }) => !ok)) process.exitCode = EXIT.partial
    }),
  )

program
  .command('backup')
  .description('write collections, conversations, models, assistants and keys into a folder, or into R2')
  .argument('<place>', 'a folder or r2://BUCKET/NAME: a new one, or one whose backup broke off')
  .action(
    action(async ({ server, json, options }, place) => {
      const write = isBucket(place) ? (await bucket()).backupToBucket : backup
      const done = await write(server, place, options)
      if (json) return print(done)
      print(`${total(done.documents)} documents of ${Object.keys(done.documents).length} collections,`)
      print(`${total(done.rows)} rows: ${countsOf(done.rows)}`)
      if (done.clusters.length > 0)
        say(
          `\nIn clusters, so not in the backup. Connect them again after a restore: ${done.clusters.join(', ')}`,
        )
      if (done.secrets.length > 0)
        say(
          `\nNot in the backup, to be set again after a restore:\n${done.secrets.map((one) => `  ${one}`).join('\n')}`,
        )
    }),
  )

program
  .command('restore')
  .description('store a backup in a deployment')
  .argument('<place>', 'a folder, or r2://BUCKET/NAME')
  .option('--merge', 'also into a deployment that is not empty; what is there stays as it is', false)
  .option('--secrets <file>', 'JSON with secrets of models and collections, which a backup does not have')
  .action(
    action(async ({ server, json, options }, place) => {
      const store = isBucket(place) ? (await bucket()).restoreFromBucket : restore
      const done = await store(server, place, options, (keys) => {
        if (!json)
          for (const { id, description, value } of keys)
            print(`New value of key ${id} (${description}): ${value}`)
      })
      if (json) print(done)
      else {
        print(
          `${total(done.documents)} documents and ${total(done.rows)} rows stored: ${countsOf(done.rows)}`,
        )
        if (done.expired > 0) say(`${done.expired} rows had expired and were left out.`)
        for (const secret of done.unset) say(`Set again: ${secret}`)
        for (const { collection, id, error } of done.refused) say(`${collection}/${id} was refused: ${error}`)
        for (const difference of done.differences) say(`Differs: ${difference}`)
      }
      if (done.refused.length + done.differences.length > 0) process.exitCode = EXIT.partial
    }),
  )

/**
 * Adds the options that say where a cluster is. There is none for a secret itself: a shell keeps arguments.
 * @param {Command} command
 */
const withCluster = (command) =>
  command
    .option('--node <url>', 'a node of the cluster; several are tried in turn', several)
    .option('--collection <name>', 'the collection in Typesense')
    .option('--index <name>', 'the index in OpenSearch')
    .option('--instance <name>', 'the instance of AI Search')
    .option('--account <id>', 'the Cloudflare account of AI Search')
    .option('--user <name>', 'the user of an OpenSearch cluster; the secret is its password')
    .option('--secret-env <variable>', `the variable with the secret (default: ${SECRET_VARIABLE})`)
    .option('--secret-file <file>', 'a file with the secret')
    .option('--open', 'the cluster takes no credentials', false)
    .option('--timeout <ms>', 'how long a node may take', positive)

withCluster(
  program
    .command('connect')
    .description('connect a collection of a Typesense or OpenSearch cluster, or of AI Search')
    .argument('<name>', 'what it is called here; if it is connected already, its nodes and secret change')
    .addOption(new Option('--engine <type>', 'what the cluster is').choices(ENGINES)),
)
  .option('--schema <file>', 'JSON with `fields`: the cluster gets the collection if it does not have it')
  .action(
    action(async ({ server, json, options }, name) => {
      const done = await connect(server, name, options)
      if (json) return print(done)
      const { num_documents: count, fields, engine } = done.collection
      print(
        `${done.created ? 'Connected' : 'Changed'}: ${name}, ${count} documents in ${engine.type}, ${fields.length} fields.`,
      )
    }),
  )

withCluster(
  program
    .command('move')
    .description('copy a collection to another engine, then have its name lead there')
    .argument('<collection>')
    .addOption(
      new Option('--to <engine>', 'object: Parley itself')
        .choices(['object', ...ENGINES])
        .makeOptionMandatory(),
    ),
)
  .option('--schema <file>', 'JSON with the schema of the copy')
  .option('--drop-old', 'forget the old place afterwards; documents in Parley are deleted', false)
  .action(
    action(async ({ server, json, options }, name) => {
      const done = await move(server, name, options, say)
      if (json) return print(done)
      print(`Moved: ${done.documents} documents of ${name} are in ${done.engine}.`)
      if (done.old) print(`As they were, they are in ${done.old}.`)
    }),
  )

/** @param {Record<string, number>} counts */
const total = (counts) => Object.values(counts).reduce((sum, count) => sum + count, 0)
/** @param {Record<string, number>} counts */
const countsOf = (counts) =>
  Object.entries(counts)
    .map(([kind, count]) => `${count} ${kind}`)
    .join(', ')

/** @param {string} file */
async function saved(file) {
  try {
    return JSON.parse(await readFile(file, 'utf8'))
  } catch {
    throw new Failure(EXIT.usage, `${file} holds no outcomes: --save writes them.`)
  }
}

const done = watchInterrupts(() => program.args)
try {
  await program.parseAsync()
} catch (error) {
  if (error instanceof CommanderError) process.exitCode = error.exitCode === 0 ? 0 : EXIT.usage
  else if (error instanceof Failure) {
    say(error.message)
    process.exitCode = error.code
  } else {
    console.error(error)
    process.exitCode = EXIT.fault
  }
}
done()
