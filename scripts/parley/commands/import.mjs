/** `parley import`: a folder, files or a website into a collection, sent and removed only as far as it changed. */
import { readFile, writeFile } from 'node:fs/promises'
import { languageOf } from '../../../src/lib/grammar.ts'
import { embedsAll } from '../embedding.mjs'
import { crawl } from '../import/crawl.mjs'
import {
  addContent,
  asDocuments,
  leaveOutCopies,
  leaveOutUnindexed,
  newRead,
  pageIdOf,
  sectionOf,
  tablesAsPages,
} from '../import/documents.mjs'
import { digests, localFiles } from '../import/folder.mjs'
import { planImport, sourcesByPlace, sourcesOf, storedBy, whence } from '../import/plan.mjs'
import { collectionOf, fieldsForMany, PAGE, SOURCE, storedTypes } from '../import/schema.mjs'
import { removeDocuments, sendDocuments } from '../import/send.mjs'
import { keepUnchanged, wholeFiles } from '../import/unchanged.mjs'
import { progress, quoted } from '../progress.mjs'
import { readContent } from '../read/index.mjs'
import { EXIT, Failure } from '../server.mjs'
import { readSchema } from './connect.mjs'
import { assistantNameFor, makeAssistant } from './init.mjs'

/** @typedef {import('../import/documents.mjs').Read} Read */
/** @typedef {import('../import/plan.mjs').Document} Document */
/** @typedef {import('../import/plan.mjs').Stored} Stored */

/**
 * @typedef {object} ImportOptions
 * @property {string} into the collection
 * @property {string} [source] what this import goes by, for the next one to find what it left
 * @property {string} [baseUrl] where the files of a folder are read on the web
 * @property {string} [idField]
 * @property {string[]} [field] `name:type`
 * @property {string} [schema] a file with fields
 * @property {string} embedding the model that makes the vectors
 * @property {boolean} whole whether each page is one document
 * @property {boolean} prune
 * @property {boolean} dryRun
 * @property {boolean} json
 * @property {boolean} assistant whether to make an assistant of the collection's name, if there is none
 * @property {string} model the language model that answers then
 * @property {boolean} wait whether to wait until all vectors are there
 * @property {string} [errors] a file for what could not be imported
 * @property {number} maxPages
 * @property {number} [rate]
 */

/**
 * @param {import('../server.mjs').Server} server
 * @param {string[]} from one folder, files, or one address
 * @param {ImportOptions} options
 * @param {(line: string) => void} say
 * @returns {Promise<Record<string, unknown>>} the summary
 * @throws Failure
 */
export async function importInto(server, from, options, say) {
  const began = Date.now()
  const given = options.schema === undefined ? undefined : (await readSchema(options.schema)).fields
  const path = `/collections/${encodeURIComponent(options.into)}`
  const present = await server.find(path)
  // What an import with --whole left stays as it is.
  const isOurs = present?.fields.some(isNamed(SOURCE)) ?? false
  const isWhole = isOurs && !present.fields.some(isNamed(PAGE))
  const wanted = typesIn(options.field ?? [])
  const making = {
    embedding: options.embedding,
    languageOf,
    whole: options.whole || isWhole,
    types: { ...storedTypes(present?.fields), ...wanted },
    ...(options.baseUrl !== undefined && { baseUrl: options.baseUrl }),
    ...(given && { fields: given }),
  }
  const read = /^https?:\/\//i.test(from[0] ?? '')
    ? {
        ...(await readSite(from, options, say)),
        kept: [],
        stored: undefined,
        around: undefined,
        converted: undefined,
      }
    : await readFiles(server, from, options, isOurs, say)
  const { unread } = read
  if (isWhole && !options.whole && read.articles.length > 0)
    say(`Collection ${options.into} holds whole pages, so these are imported whole.`)
  const made = await asDocuments(read, making)
  const documents = [...made.documents, ...read.kept]
  /** @type {import('../import/schema.mjs').Field[]} */
  const fields = present?.fields ?? given ?? fieldsForMany(made.fields, documents.length)
  if (!present && fields.length < made.fields.length)
    say(
      `${counted(documents.length)} are too many for vectors in memory, so they are found by words alone. Where Vectorize is bound, --schema FILE takes fields with \`embed\`.`,
    )
  const sources = sourcesOf(documents)
  const source = some(sources)
  const shown = fields.map(
    ({ name, type, facet, locale }) =>
      `${name}: ${type}${facet ? ' (facet)' : ''}${locale ? ` (${locale})` : ''}`,
  )

  if (present?.metadata?.sample !== undefined) {
    throw new Failure(
      EXIT.usage,
      `Collection ${options.into} holds the sample. Import into another one with --into.`,
    )
  }
  const stored = read.stored ?? (isOurs ? await storedBy(server, options.into, sources) : new Map())
  for (const each of options.source === undefined ? sources : [])
    requireSame(each, whence(each, documents, stored), options.into, say)
  const plan = planImport(documents, stored)
  // What could not be read today may still be there: only what is known to be gone is removed.
  const { around } = read
  const gone = read.complete
    ? plan.gone.filter((id) => around?.some((prefix) => id.startsWith(prefix)) ?? true)
    : []
  if (!present) say(`Collection ${options.into} will be made with ${shown.join(', ')}`)
  const pages = read.articles.length + read.others.length
  const inPages =
    pages > 0 && pages < documents.length ? `${pages} ${pages === 1 ? 'page' : 'pages'} in ` : ''
  say(
    `${inPages}${counted(documents.length)}: ${plan.added} new, ${plan.changed.length - plan.added} changed, ` +
      `${plan.unchanged} unchanged, ${gone.length} gone`,
  )
  const summary = {
    collection: options.into,
    source,
    documents: documents.length,
    added: plan.added,
    changed: plan.changed.length - plan.added,
    unchanged: plan.unchanged,
    gone: gone.length,
    removed: 0,
    failed: 0,
    unread: unread.length,
    ...(read.converted !== undefined && { converted: read.converted }),
    ...(present ? {} : { schema: fields }),
  }
  if (options.dryRun) return { ...summary, dry_run: true, seconds: secondsSince(began) }

  if (!present) await server.call('POST', '/collections', { body: collectionOf(options.into, fields) })
  const assistant = options.assistant ? await assistantNameFor(server, options.into) : undefined
  if (assistant !== undefined)
    await makeAssistant(server, {
      name: assistant,
      collection: options.into,
      model: options.model,
      titleField: fields.some(isNamed('heading')) ? 'heading' : 'title',
    })
  const rejected = await progress('Importing', plan.changed.length, 'documents', options.json, (to) =>
    sendDocuments(server, options.into, plan, to),
  )
  const ended = [...plan.former, ...(options.prune ? gone : [])]
  const removed = ended.length > 0 ? await removeDocuments(server, options.into, ended) : 0
  if (!options.prune && gone.length > 0)
    say(
      `${counted(gone.length)} ${gone.length === 1 ? 'is' : 'are'} gone from ${source}: --prune removes ${gone.length === 1 ? 'it' : 'them'}.`,
    )

  const failures = [...unread, ...rejected.map(({ id, error }) => ({ source: id, error }))]
  if (failures.length > 0) {
    const file = options.errors ?? `${options.into}-errors.jsonl`
    await writeFile(file, failures.map((each) => `${JSON.stringify(each)}\n`).join(''))
    say(`${failures.length} could not be imported. The reasons are in ${file}, the first one is:`)
    say(`  ${failures[0]?.source}: ${failures[0]?.error}`)
  }
  if (options.wait) await embedsAll(server, options.into, options.json)
  return {
    ...summary,
    removed,
    failed: rejected.length,
    ...(assistant !== undefined && { assistant }),
    seconds: secondsSince(began),
  }
}

/**
 * Refuses documents that would take the place of others, which a folder of the same name holds elsewhere.
 * @param {string} source
 * @param {ReturnType<typeof whence>} from
 * @param {string} collection
 * @param {(line: string) => void} say
 * @throws Failure
 */
function requireSame(source, from, collection, say) {
  if (from === 'other') {
    throw new Failure(
      EXIT.usage,
      `What an earlier import of "${source}" left in ${collection} says something else, and would be replaced. ` +
        `If this is another folder or file, give it a name of its own: --source NAME. ` +
        `If it is the same one, which has changed or moved: --source ${quoted(source)}.`,
    )
  }
  if (from === 'moved')
    say(`"${source}" was imported from another place before, with much the same documents: they are updated.`)
}

/** @param {number} count */
const counted = (count) => `${count} ${count === 1 ? 'document' : 'documents'}`

/** @param {string} name */
const isNamed = (name) => (/** @type {import('../import/schema.mjs').Field} */ field) => field.name === name

/** @param {number} began */
const secondsSince = (began) => Math.round((Date.now() - began) / 100) / 10

/**
 * @param {string[]} from
 * @param {ImportOptions} options
 * @param {(line: string) => void} say
 * @returns {Promise<Read>}
 */
async function readSite(from, { maxPages, rate, json, source: named }, say) {
  const [start = ''] = from
  if (from.length > 1) throw new Failure(EXIT.usage, 'Import one website at a time.')
  if (!URL.canParse(start)) throw new Failure(EXIT.usage, `"${start}" is no address of a website.`)
  const found = await progress('Reading', 0, 'pages', json, (onPage) =>
    crawl(start, { most: maxPages, ...(rate !== undefined && { rate }), onPage }),
  )
  const read = found.pages.filter(({ article }) => article).length
  if (read > 0)
    say(
      `Read ${read} ${read === 1 ? 'page' : 'pages'} of ${new URL(start).origin}` +
        (Number.isFinite(found.rate) ? `, ${found.rate} a second` : ''),
    )
  if (found.leftOut.length > 0) say(leavingOut(found.leftOut))
  if (found.disallowed.length > 0)
    say(`Left out, since robots.txt does not allow ${found.disallowed.length}: ${some(found.disallowed)}`)
  if (found.cut) say(`There are more: the first ${maxPages} were read. --max-pages raises that.`)
  const source = named ?? new URL(start).host
  const articles = found.pages.flatMap(({ url, article }) => {
    if (!article) return []
    const section = sectionOf(new URL(url).pathname.replace(/^\//, ''))
    return [{ id: pageIdOf(url), from: { source }, section, article }]
  })
  const unread = found.pages.flatMap(({ url, error }) =>
    error === undefined ? [] : [{ source: url, error }],
  )
  if (articles.length === 0) {
    throw new Failure(
      EXIT.partial,
      `Nothing could be read at ${start}: ${unread[0]?.error ?? 'it has no pages with text'}.`,
    )
  }
  return {
    ...newRead(),
    articles,
    unread,
    // A page that the site does not have any more can be removed.
    complete: !found.cut && found.pages.every(({ error, isGone }) => error === undefined || isGone),
  }
}

/**
 * @param {import('../server.mjs').Server} server
 * @param {string[]} from
 * @param {ImportOptions} options
 * @param {boolean} isOurs whether an import made the collection
 * @param {(line: string) => void} say
 * @returns {Promise<Read & { kept: Document[], stored: Map<string, Stored>, converted: number, around?: string[] }>}
 *   `kept`: documents of files that did not change; `converted`: files that were read and not only compared
 */
async function readFiles(server, from, options, isOurs, say) {
  const { idField, into, json, source, baseUrl, field, schema, whole } = options
  const places = isOurs ? await sourcesByPlace(server, into) : new Map()
  const { files, unreadable, around } = await localFiles(from, source, places)
  const sources = [...new Set(files.map((file) => file.source))]
  if (around) say(`This is part of "${some(sources)}", which was imported before: its documents are updated.`)
  const stored = isOurs ? await storedBy(server, into, sources) : new Map()
  const fields = schema === undefined ? undefined : (await readSchema(schema)).fields
  const digest = await digests([whole, baseUrl, idField, field, fields])
  const known = wholeFiles(stored)
  const read = { ...newRead(), ...(around && { partial: true }) }
  /** @param {import('../import/folder.mjs').Local['files'][number]} file @param {Uint8Array} bytes */
  const readOne = async (file, bytes) => {
    try {
      addContent(read, file, await readContent(bytes, file.name), idField)
    } catch (error) {
      read.unread.push({ source: file.name, error: /** @type {Error} */ (error).message })
    }
  }
  /** @type {(import('../import/folder.mjs').Local['files'][number] & { digest: string })[]} */
  const same = []
  await progress('Reading', files.length, 'files', json, async (to) => {
    for (const [at, file] of files.entries()) {
      try {
        const bytes = await readFile(file.path)
        const marked = { ...file, digest: digest(file, bytes) }
        if (known.has(marked.digest)) same.push(marked)
        else await readOne(marked, bytes)
      } catch (error) {
        read.unread.push({ source: file.name, error: /** @type {Error} */ (error).message })
      }
      to(at + 1)
    }
  })
  const { again, others, documents: kept } = await keepUnchanged(same, read, stored)
  for (const file of again) await readOne(file, await readFile(file.path))
  read.others = others
  leaveOutCopies(read)
  const unindexed = leaveOutUnindexed(read)
  if (unindexed.length > 0) say(leavingOut(unindexed))
  if (read.hidden.length > 0) say(`Left out, since they are hidden: ${some(read.hidden)}`)
  if (unreadable.length > 0) {
    say(`Left out: ${some(unreadable)}. Save such files as PDF, DOCX, XLSX or HTML, which can be read.`)
  }
  const data = tablesAsPages(read)
  if (data.length > 0)
    say(`Left out beside pages, since they are data: ${some(data)}. Import them by themselves.`)
  if (read.articles.length + read.rows.length + kept.length === 0) {
    throw new Failure(
      EXIT.partial,
      `Nothing could be read: ${read.unread[0]?.source}: ${read.unread[0]?.error}.`,
    )
  }
  return {
    ...read,
    complete: read.unread.length === 0,
    kept,
    stored,
    converted: files.length - same.length + again.length,
    ...(around && { around }),
  }
}

/** @param {string[]} names of pages */
const leavingOut = (names) =>
  `Left out, since they redirect or ask not to be indexed (noindex): ${some(names)}`

/** @param {string[]} names */
const some = (names) =>
  names.length > 4 ? `${names.slice(0, 3).join(', ')} and ${names.length - 3} more` : names.join(', ')

/**
 * @param {string[]} given `NAME:TYPE` each
 * @returns {Record<string, string>}
 * @throws Failure
 */
const typesIn = (given) =>
  Object.fromEntries(
    given.map((each) => {
      const [, name, type] = /^(.+):([\w[\]*]+)$/.exec(each) ?? []
      if (name === undefined || type === undefined)
        throw new Failure(EXIT.usage, `--field takes NAME:TYPE, not "${each}".`)
      return [name, type]
    }),
  )
