/**
 * One step of reading a source: a few pages, within what an invocation of the Free plan may do (50 requests, 50 queries of D1). What
 * is left waits for the next minute. Only pages that changed since they were last read become documents.
 */
import type { DocumentStore } from '../engines/port'
import { ApiError, logFailure, unwrap } from '../errors'
import { imported } from '../question-sets/run'
import { findCollection } from '../registry/collections'
import { documentsOf } from '../registry/engines'
import type { Fetched } from './fetch-page'
import { loadReader, type Reader } from './load-reader'
import { type Origin, originOf } from './origin'
import { findSource, noteRun, type Pages, type Run, readPages, type Source, writePages } from './source'

/** Pages and milliseconds of a step. */
const PAGES_A_STEP = 20
const STEP_MS = 20_000
/** Times in a row that a site may be busy before the page counts as failed. */
const MOST_BUSY = 5
const MOST_FAILURES = 20
/** After a run that read nothing, the next one begins that much later at most. */
const FAILED_MINUTES = 60
/** Documents that are imported, or removed, at once. */
const AT_ONCE = 100
const TOO_MUCH = 'takes more time or memory than there is here: `parley import` reads it'
/** The place of the object's storage that names the page that is being read. A page at which the object dies is left out. */
const READING = 'reading'
/** What stands there while a new run looks at what there is. */
const LISTING = 'list'

/** Reads some pages of a source, if a run is due. @param storage of the source's object */
export async function readStep(
  env: Cloudflare.Env,
  name: string,
  storage: DurableObjectStorage,
): Promise<void> {
  const source = await findSource(env, name)
  if (!source || source.next_run_at > Date.now()) return
  const run: Run = source.run ?? {
    ...{ started_at: Date.now(), pages: 0, changed: 0, unchanged: 0, gone: 0, failed: 0, failures: [] },
  }
  let again: number | undefined
  try {
    const use = await loadReader()
    const step = new Step(env, source, run, storage, use, originOf(env, source, use, storage))
    again = await step.read()
  } catch (error) {
    if (!(error instanceof ApiError)) logFailure(`source ${name} could not be read`, error)
    fail(run, source.url, error)
  }
  if (again !== undefined) return noteRun(env, name, { state: 'reading', next_run_at: again, run })
  const ended = { ...run, ended_at: Date.now() }
  const wait = run.pages === 0 ? Math.min(source.every_minutes, FAILED_MINUTES) : source.every_minutes
  const next = run.started_at + wait * 60_000
  // Told before it is noted: whoever dies in between tells it twice, and not never.
  if (run.changed > 0) await imported(env, source.collection, name)
  await noteRun(env, name, { state: 'waiting', next_run_at: next, run: null, last_run: ended })
}

function fail(run: Run, url: string, error: unknown): void {
  run.failed += 1
  const message = error instanceof Error ? error.message : String(error)
  if (run.failures.length < MOST_FAILURES) run.failures.push({ url, error: message })
}

class Step {
  readonly #until = Date.now() + STEP_MS
  #pages!: Pages
  #store!: DocumentStore
  readonly #env: Cloudflare.Env
  readonly #reader: Reader

  constructor(
    env: Cloudflare.Env,
    private readonly source: Source,
    private readonly run: Run,
    private readonly storage: DurableObjectStorage,
    use: Reader,
    private readonly origin: Origin,
  ) {
    this.#env = env
    this.#reader = use
  }

  /** @returns when the next step may begin; undefined: nothing is left @throws what keeps all of the source from being read */
  async read(): Promise<number | undefined> {
    const { collection, name } = this.source
    this.#store = documentsOf(this.#env, await findCollection(this.#env, collection))
    const left = await readPages(this.#env, name)
    if (left?.run === this.run.started_at) await this.#goOn(left)
    else await this.#begin(left)
    const again = await this.#visitAll()
    this.run.left = this.#pages.queue.length
    await writePages(this.#env, name, this.#pages)
    return again
  }

  async #goOn(left: Pages): Promise<void> {
    this.#pages = left
    await this.origin.open(left)
    const died = await this.storage.get<string>(READING)
    if (died !== undefined && left.queue.includes(died)) {
      left.queue = left.queue.filter((each) => each !== died)
      fail(this.run, died, TOO_MUCH)
    }
  }

  /** Begins a run with what there is. What an object died at as it looked is not looked at again at once. */
  async #begin(left: Pages | undefined): Promise<void> {
    if ((await this.storage.get(READING)) === LISTING) {
      await this.storage.delete(READING)
      throw new Error(TOO_MUCH)
    }
    await this.origin.open(undefined)
    await this.storage.put(READING, LISTING)
    const listed = this.origin.list(left).finally(() => this.storage.delete(READING))
    const { queue, unchanged, failures, ...rest } = await listed
    for (const { url, error } of failures) fail(this.run, url, error)
    this.run.pages += unchanged
    this.run.unchanged += unchanged
    const begun = { run: this.run.started_at, known: left?.known ?? {}, busy: 0 }
    this.#pages = { ...begun, ...rest, queue, seen: [...queue] }
  }

  async #visitAll(): Promise<number | undefined> {
    const { queue } = this.#pages
    for (let read = 0; queue.length > 0; read += 1) {
      const isOver = read === PAGES_A_STEP || this.origin.isSpent() || Date.now() >= this.#until
      if (isOver) return Date.now()
      const url = queue[0]!
      await this.storage.put(READING, url)
      const busy = await this.#visit(url)
      await this.storage.delete(READING)
      if (busy !== undefined) return Date.now() + busy
      queue.shift()
    }
    return undefined
  }

  /** @returns milliseconds for which the site wants to be left alone */
  async #visit(url: string): Promise<number | undefined> {
    const { BUSY, waitOf } = this.#reader
    try {
      const fetched = await this.origin.fetch(url, this.#pages.known[url])
      if (BUSY.has(fetched.status)) {
        this.#pages.busy += 1
        if (this.#pages.busy < MOST_BUSY) return waitOf(fetched.headers.get('retry-after'), this.#pages.busy)
      }
      this.#pages.busy = 0
      this.run.pages += 1
      await this.#take(url, fetched)
    } catch (error) {
      if (error instanceof ApiError && error.status >= 500) throw error
      fail(this.run, url, error)
      delete this.#pages.etag
    }
    return undefined
  }

  async #take(url: string, fetched: Fetched): Promise<void> {
    const { known, seen } = this.#pages
    const { status, headers, bytes } = fetched
    const before = known[url]
    if (status === 304) {
      this.run.unchanged += 1
      return
    }
    if ((status === 404 || status === 410) && before) return this.#leave(url)
    if (status >= 400) throw new Error(`answered with ${status}`)
    const address = this.#reader.normal(fetched.address) ?? url
    // What redirects is read where it leads to.
    if (url === this.source.url && !before && !this.origin.belongs(address))
      throw new Error(`leads to ${address}, which is not below it: register that address`)
    if (status === 204 || !this.origin.belongs(address)) return before && this.#leave(url)
    if (address !== url) {
      if (before) await this.#leave(url)
      if (seen.includes(address)) return
      seen.push(address)
    }
    const hash = await this.#reader.digestOf(bytes, 32)
    const [etag, modified] = [headers.get('etag'), headers.get('last-modified')]
    const now = { hash, ...(etag && { etag }), ...(modified && { modified }) }
    if (known[address]?.hash === hash) {
      known[address] = { ...known[address], ...now }
      this.run.unchanged += 1
      return
    }
    const page = this.origin.pageOf(fetched, address)
    this.#follow(page.links)
    if (page.article === undefined) {
      if (known[address]) await this.#leave(address)
      return
    }
    const own = page.canonical !== undefined && this.origin.belongs(page.canonical) ? page.canonical : address
    if (own !== address && seen.includes(own)) return
    const isCopy = Object.entries(known).some(([each, { hash: its }]) => each !== own && its === hash)
    if (isCopy) return
    if (own !== address) seen.push(own)
    const title = await this.#reader.titleDigest(page.article.title)
    await this.#import(own, page.article)
    known[own] = { ...now, title }
    this.run.changed += 1
  }

  /** Adds the addresses that a page links to, where the site has no sitemap. */
  #follow(links: string[]): void {
    const { queue, seen, follows } = this.#pages
    if (!follows) return
    const have = new Set(seen)
    for (const link of links) {
      const next = this.#reader.normal(link)
      if (next === undefined || have.has(next) || seen.length >= this.source.max_pages) continue
      if (!this.origin.belongs(next)) continue
      have.add(next)
      seen.push(next)
      queue.push(next)
    }
  }

  /** A page is gone, or asks not to be shown any more. Its documents go only where that was asked for. */
  async #leave(url: string): Promise<void> {
    this.run.gone += 1
    if (!this.source.prune) return
    await this.#remove([...(await this.#stored(this.#reader.pageIdOf(url))).keys()])
    delete this.#pages.known[url]
  }

  async #import(url: string, article: Parameters<Reader['documentsOfPage']>[1]): Promise<void> {
    const titles = Object.entries(this.#pages.known).flatMap(([each, { title }]) =>
      title !== undefined && each !== url ? [title] : [],
    )
    const { url: shown, ...where } = this.origin.whereOf(url)
    const read = { ...article, ...(shown !== undefined && { url: shown }) }
    const documents = await this.#reader.documentsOfPage(url, read, where, titles)
    const stored = await this.#stored(this.#reader.pageIdOf(url))
    const { changed, former } = this.#reader.planImport(documents, stored)
    for (let at = 0; at < changed.length; at += AT_ONCE) {
      const lines = changed.slice(at, at + AT_ONCE).map((each) => JSON.stringify(each))
      const options = { action: 'upsert', returnDocument: false, returnId: false } as const
      const { results } = unwrap(await this.#store.importLines(lines, options))
      const refused = results.split('\n').find((line) => line.includes('"success":false'))
      if (refused !== undefined) throw new Error(`was refused: ${refused}`)
    }
    await this.#remove(former)
  }

  /** What is stored of a page. */
  async #stored(page: string) {
    const { SOURCE, HASH, PAGE } = this.#reader
    const found = unwrap(
      await this.#store.exportLines({
        filterBy: `${PAGE}:=\`${page}\``,
        include: `id,${SOURCE},${HASH},${PAGE}`,
        exclude: '',
      }),
    )
    let text = ''
    for await (const piece of found) text += piece
    return this.#reader.storedIn(text)
  }

  async #remove(ids: string[]): Promise<void> {
    for (let at = 0; at < ids.length; at += AT_ONCE) {
      const some = ids.slice(at, at + AT_ONCE).map((id) => `\`${id}\``)
      const options = { batchSize: AT_ONCE, returnDocuments: false, returnIds: false }
      for (let done = false; !done; )
        done = unwrap(await this.#store.removeWhere(`id:=[${some.join(',')}]`, options)).done
    }
  }
}
