/** Where the pages of a source come from: a website, a bucket of R2, or a Git archive. */

import { ApiError, badRequest } from '../errors'
import { outgoing } from '../lib/waiting'
import type { Egress } from '../models/egress'
import { type Fetched, fetchPage, followed, LONGEST_PAGE } from './fetch-page'
import type { Reader, Rules } from './load-reader'
import { articleOf, fileOf, type Page } from './reader'
import { ARCHIVE, type KnownPage, type Pages, type Source } from './source'

/** What a new run finds. */
interface Listed {
  /** addresses of pages to read, in order */
  queue: string[]
  /** of pages that are as they were */
  unchanged: number
  failures: { url: string; error: string }[]
  /** what else is kept of the run (source.ts) */
  follows?: boolean
  is_list?: boolean
  etag?: string
}

export interface Origin {
  /** Makes ready for a step. @param left of a run that goes on @throws what keeps all of it from being read */
  open(left: Pages | undefined): Promise<void>
  /** @param left of the last run @throws what keeps all of it from being read */
  list(left: Pages | undefined): Promise<Listed>
  /** Whether this step has asked for as much as it may. */
  isSpent(): boolean
  belongs(address: string): boolean
  /** What is there: 304 as it was known, 404 nothing. @throws Error in words for whoever runs the source */
  fetch(address: string, known?: KnownPage): Promise<Fetched>
  /** @throws Error for a page without text */
  pageOf(fetched: Fetched, address: string): Page
  /** What its documents say of where they come from. `url`: where people read it, if no page says so itself. */
  whereOf(address: string): { source: string; section: string; path?: string; url?: string }
  /** A page that tells what language its texts have. */
  first(): Promise<Page | undefined>
}

// =============================================================================
// Files as the origin of a source: those of a bucket and of a Git archive, which differ in how they are listed and where their bytes
// are. An address within the source is its place's and the file's path. Where people read the file is another one.

/** What of a source says where its files are. */
type FilesPlace = Pick<Source, 'name' | 'url' | 'base_url' | 'max_pages'>

abstract class Files {
  protected readonly place: FilesPlace
  protected readonly use: Reader

  constructor(
    place: FilesPlace,
    use: Reader,
    /** what all addresses within the source begin with, up to and with a slash */
    private readonly root: string,
  ) {
    this.place = place
    this.use = use
  }

  abstract list(left: Pages | undefined): Promise<Listed>
  protected abstract bytesAt(path: string): Promise<{ bytes: Uint8Array; etag?: string } | undefined>
  /** Where people read a file. */
  protected abstract shown(path: string): string | undefined

  async open(): Promise<void> {}

  /** Files take no requests of anybody's server. */
  isSpent(): boolean {
    return false
  }

  belongs(address: string): boolean {
    return address.startsWith(this.root)
  }

  async fetch(address: string): Promise<Fetched> {
    const headers = new Headers()
    const found = this.belongs(address) ? await this.bytesAt(this.pathOf(address)) : undefined
    if (!found) return { status: 404, address, headers, bytes: new Uint8Array() }
    if (found.etag !== undefined) headers.set('etag', found.etag)
    return { status: 200, address, headers, bytes: found.bytes }
  }

  /** A page may say itself where it is read. */
  pageOf({ bytes }: Fetched, address: string): Page {
    const path = this.pathOf(address)
    const { article, links } = fileOf(this.use, bytes, path)
    const url = article?.url ?? this.shown(path)
    return { links, ...(article && { article: { ...article, ...(url !== undefined && { url }) } }) }
  }

  whereOf(address: string) {
    const path = this.pathOf(address)
    return { source: this.place.name, section: this.use.sectionOf(path), path }
  }

  protected addressOf(path: string): string {
    return this.root + path.split('/').map(encodeURIComponent).join('/')
  }

  protected pathOf(address: string): string {
    return decodeURIComponent(address.slice(this.root.length))
  }

  /** Begins a list of what there is. */
  protected listing(left: Pages | undefined): Listing {
    return new Listing(this.use, this.place.max_pages, left?.known ?? {})
  }
}

/** What becomes of the files of a place: which are read, which are as they were, which are told of, and what is gone. */
class Listing implements Listed {
  readonly queue: string[] = []
  readonly failures: Listed['failures'] = []
  unchanged = 0
  readonly #there = new Set<string>()

  constructor(
    private readonly use: Reader,
    private readonly most: number,
    private readonly known: Pages['known'],
  ) {}

  /** Whether a file is read, as far as its path and its size say. What is too much is told of. */
  takes(url: string, path: string, size: number): boolean {
    const { isRead, error } = this.use.fateOf(path)
    if (error !== undefined) this.tell(url, error)
    if (!isRead || this.#there.has(url)) return false
    this.#there.add(url)
    if (size > LONGEST_PAGE) this.tell(url, `is longer than ${LONGEST_PAGE >> 20} MiB`)
    else if (this.#there.size === this.most + 1)
      this.tell(url, `is past the ${this.most} files of \`max_pages\`, with all that follow`)
    return size <= LONGEST_PAGE && this.#there.size <= this.most
  }

  /** Notes a file that is to be read. @param mark tells that it is as it was @returns whether it is to be read now */
  add(url: string, mark: KnownPage): boolean {
    const { etag, hash } = this.known[url] ?? {}
    const isSame = (mark.etag ?? mark.hash) === (mark.etag === undefined ? hash : etag)
    if (isSame) this.unchanged += 1
    else this.queue.push(url)
    return !isSame
  }

  tell(url: string, error: string): void {
    this.failures.push({ url, error })
  }

  /** All was seen: known files that are not there are looked at again. */
  end(): void {
    this.queue.push(...Object.keys(this.known).filter((address) => !this.#there.has(address)))
  }
}

// =============================================================================
// Files of an archive that wait in the source's object until they are read.

/** Bytes of a row: SQLite in an object holds 2 MB in one. */
const PART = 1 << 20

class Staged {
  constructor(private readonly sql: SqlStorage) {
    sql.exec(
      'CREATE TABLE IF NOT EXISTS staged (path TEXT, part INTEGER, bytes BLOB, PRIMARY KEY (path, part))',
    )
  }

  clear(): void {
    this.sql.exec('DELETE FROM staged')
  }

  put(path: string, bytes: Uint8Array): void {
    for (let part = 0; part === 0 || part * PART < bytes.length; part += 1) {
      const some = bytes.slice(part * PART, (part + 1) * PART)
      this.sql.exec('INSERT INTO staged VALUES (?, ?, ?)', path, part, some.buffer)
    }
  }

  /** A file that waits, which does so no more. */
  async take(path: string): Promise<Uint8Array | undefined> {
    const rows = this.sql.exec<{ bytes: ArrayBuffer }>(
      'SELECT bytes FROM staged WHERE path = ? ORDER BY part',
      path,
    )
    const parts = rows.toArray().map(({ bytes }) => bytes)
    if (parts.length === 0) return undefined
    this.sql.exec('DELETE FROM staged WHERE path = ?', path)
    return new Uint8Array(await new Blob(parts).arrayBuffer())
  }
}

// =============================================================================
// A bucket of R2 as the origin of a source: `r2://docs/guide/` is what lies below `guide/` in the bucket that wrangler.toml binds as
// BUCKET_DOCS. Only what has such a name can be read, so that a key which registers sources reaches no other bucket.

/** Objects of a list: as many as R2 gives at once. A list takes that many calls of a step. */
const AT_ONCE = 1_000
const MOST_LISTS = 20

class Bucket extends Files implements Origin {
  readonly #env: Cloudflare.Env
  readonly #bucket: R2Bucket
  readonly #prefix: string

  /** @throws ApiError 400 without a binding */
  constructor(env: Cloudflare.Env, place: FilesPlace, use: Reader) {
    const { host, prefix } = bucketIn(place.url)
    super(place, use, `r2://${host}/${use.encodePath(prefix)}`)
    this.#env = env
    this.#prefix = prefix
    const binding = `BUCKET_${host.toUpperCase().replaceAll('-', '_')}`
    const bucket = env[binding as keyof typeof env] as R2Bucket | undefined
    if (bucket === undefined)
      throw badRequest(`The deployment binds no bucket of R2 as ${binding}. Add it to wrangler.toml.`)
    this.#bucket = bucket
  }

  async list(left: Pages | undefined): Promise<Listed> {
    const listing = this.listing(left)
    let cursor: string | undefined
    for (let lists = 0; lists < MOST_LISTS; lists += 1) {
      const some = await this.#objects(cursor)
      for (const { key, size, etag } of some.objects) {
        const path = key.slice(this.#prefix.length)
        const url = this.addressOf(path)
        if (listing.takes(url, path, size)) listing.add(url, { etag })
      }
      if (!some.truncated) {
        listing.end()
        return listing
      }
      cursor = some.cursor
    }
    listing.tell(this.place.url, `holds more than ${MOST_LISTS * AT_ONCE} objects: name a folder of it`)
    return listing
  }

  async first(): Promise<Page | undefined> {
    const { objects } = await this.#objects()
    const paths = objects.map(({ key }) => key.slice(this.#prefix.length))
    const path = paths.find((each) => this.use.fateOf(each).isRead)
    if (path === undefined) return undefined
    return this.pageOf(await this.fetch(this.addressOf(path)), this.addressOf(path))
  }

  protected async bytesAt(path: string) {
    const object = await outgoing(this.#env, () => this.#bucket.get(this.#prefix + path))
    return object ? { bytes: new Uint8Array(await object.arrayBuffer()), etag: object.etag } : undefined
  }

  /** A bucket's objects are served by their names. */
  protected shown(path: string): string | undefined {
    const base = this.place.base_url
    return base && `${base.endsWith('/') ? base : `${base}/`}${this.use.encodePath(path)}`
  }

  #objects(cursor?: string): Promise<R2Objects> {
    const options = { prefix: this.#prefix, limit: AT_ONCE, ...(cursor !== undefined && { cursor }) }
    return outgoing(this.#env, () => this.#bucket.list(options))
  }
}

/** @throws ApiError 400 for what names no bucket */
function bucketIn(url: string): { host: string; prefix: string } {
  const [, host, prefix = ''] = /^r2:\/\/([a-z0-9][\w-]*)(?:\/(.*?))?\/*$/i.exec(url) ?? []
  if (host === undefined) throw badRequest(`\`${url}\` names no bucket. Write r2://NAME/FOLDER.`)
  return { host, prefix: prefix === '' ? '' : `${prefix}/` }
}

// =============================================================================
// A Git archive by https as the origin of a source, such as GitHub's `https://github.com/OWNER/REPO/archive/refs/heads/main.tar.gz`, and
// with `#docs` behind it the files of that folder. It is read once in a run, as it comes: files that changed wait in the source's object
// until a step reads them.

const TIMEOUT_MS = 120_000

class Archive extends Files implements Origin {
  readonly #env: Cloudflare.Env & Egress
  /** the folder in the archive, with its slash */
  readonly #folder: string
  readonly #staged: Staged | undefined

  /** @param storage where files wait; without it only the first one can be read @throws ApiError 400 for a folder that is none */
  constructor(env: Cloudflare.Env, place: FilesPlace, use: Reader, storage?: DurableObjectStorage) {
    const { origin, pathname, hash } = new URL(place.url)
    const folder = folderIn(hash)
    const root = `${origin}${pathname.replace(ARCHIVE, '')}/`
    super(place, use, folder === '' ? root : `${root}${use.encodePath(folder)}/`)
    this.#env = env
    this.#folder = folder === '' ? '' : `${folder}/`
    this.#staged = storage && new Staged(storage.sql)
  }

  async list(left: Pages | undefined): Promise<Listed> {
    this.#staged?.clear()
    // A run that did not come to its end left files unread.
    const etag = left?.queue.length === 0 ? left.etag : undefined
    const response = await this.#answer(etag)
    if (response.status === 304)
      return { queue: [], unchanged: Object.keys(left?.known ?? {}).length, failures: [], etag: etag ?? '' }
    const listing = this.listing(left)
    try {
      for await (const { url, path, bytes } of this.#files(response, listing.takes.bind(listing))) {
        const hash = await this.use.digestOf(bytes, 32)
        if (listing.add(url, { hash })) this.#staged?.put(path, bytes)
      }
    } catch (error) {
      // What came is read, and nothing is taken for gone.
      listing.tell(this.place.url, error instanceof Error ? error.message : String(error))
      return listing
    }
    listing.end()
    const tag = response.headers.get('etag')
    return Object.assign(listing, tag !== null && { etag: tag })
  }

  async first(): Promise<Page | undefined> {
    const isRead = (_: string, path: string) => this.use.fateOf(path).isRead
    for await (const { url, path, bytes } of this.#files(await this.#answer(), isRead))
      return this.pageOf({ status: 200, address: url, headers: new Headers(), bytes }, this.addressOf(path))
    return undefined
  }

  protected async bytesAt(path: string) {
    const bytes = await this.#staged?.take(path)
    return bytes && { bytes }
  }

  /** The repository's page of the file, or where `base_url` says that a site made of it is. */
  protected shown(path: string): string | undefined {
    const { base_url: base, url } = this.place
    if (base !== undefined) return this.use.urlOf(path, base)
    const page = pagesOf(new URL(url))
    return page && `${page}/${this.use.encodePath(this.#folder + path)}`
  }

  /** @throws Error for what is no archive, in words for whoever runs the source */
  async #answer(etag?: string): Promise<Response> {
    const headers = { 'user-agent': this.use.AGENT, ...(etag !== undefined && { 'if-none-match': etag }) }
    const { response } = await followed(this.#env, this.place.url, headers, AbortSignal.timeout(TIMEOUT_MS))
    if (response.status === 304 && etag !== undefined) return response
    if (response.status === 200 && response.body !== null) return response
    await response.body?.cancel()
    throw new Error(`answered with ${response.status}`)
  }

  /** The files of the folder that are wanted. */
  async *#files({ body }: Response, wants: (url: string, path: string, size: number) => boolean) {
    const within = (path: string) =>
      path.startsWith(this.#folder) ? path.slice(this.#folder.length) : undefined
    const isWanted = (name: string, size: number) => {
      const path = within(name)
      return path !== undefined && wants(this.addressOf(path), path, size)
    }
    for await (const { path: name, bytes } of this.use.filesInArchive(body!, isWanted)) {
      const path = within(name)!
      yield { url: this.addressOf(path), path, bytes }
    }
  }
}

/** The folder that the fragment of an address names; '' for none. @throws ApiError 400 */
function folderIn(hash: string): string {
  try {
    return decodeURIComponent(hash.slice(1)).split('/').filter(Boolean).join('/')
  } catch {
    throw badRequest(`\`${hash}\` names no folder: write a percent sign in it as %25.`)
  }
}

/** Where the files of a repository of GitHub or GitLab are read, of whose revision the archive is. */
function pagesOf({ origin, hostname, pathname }: URL): string | undefined {
  const path = pathname.replace(ARCHIVE, '')
  const [, project, revision] =
    /^\/([^/]+\/[^/]+)\/archive\/(?:refs\/(?:heads|tags)\/)?(.+)$/.exec(path) ?? []
  if (hostname === 'github.com' && revision !== undefined) return `${origin}/${project}/blob/${revision}`
  const [, group, ref] = /^\/(.+)\/-\/archive\/(.+)\/[^/]+$/.exec(path) ?? []
  return ref === undefined ? undefined : `${origin}/${group}/-/blob/${ref}`
}

// =============================================================================
// A website as the origin of a source: what its robots.txt allows, one request after the other in time, by its sitemaps or its links.

/** Requests of a step, those for robots.txt and sitemaps included. */
const REQUESTS_A_STEP = 40
/** Pause between two requests, unless robots.txt asks for a longer one. */
const PAUSE_MS = 200

/** What of a source says where its pages are. */
type SitePlace = Pick<Source, 'url' | 'max_pages'>

class Site implements Origin {
  #requests = 0
  #next = 0
  #pause = PAUSE_MS
  #rules!: Rules
  #belongs!: (url: string) => boolean
  readonly #env: Cloudflare.Env
  readonly #reader: Reader

  constructor(
    env: Cloudflare.Env,
    private readonly source: SitePlace,
    use: Reader,
  ) {
    this.#env = env
    this.#reader = use
  }

  async open(left: Pages | undefined): Promise<void> {
    const { origin } = new URL(this.source.url)
    this.#rules = await this.#reader.robotsOf(origin, this.#reader.AGENT, this.#get)
    if (this.#rules.closed !== undefined) throw new ApiError(503, this.#rules.closed)
    this.#pause = Math.max(PAUSE_MS, this.#rules.delay * 1000)
    this.#bound(left?.is_list)
  }

  /** What sitemaps or a feed list, else the start, and every page that is known. */
  async list(left: Pages | undefined): Promise<Listed> {
    const { normal, listedPages } = this.#reader
    const { url, max_pages: most } = this.source
    const { pages: found, isList: is_list } = await listedPages(url, this.#rules, this.#get)
    this.#bound(is_list)
    const listed = found.flatMap((each) => normal(each) ?? []).filter(this.#belongs)
    const first = listed.length > 0 ? listed : [normal(url)!].filter(this.#belongs)
    if (first.length === 0) throw new ApiError(403, 'robots.txt does not allow it')
    const all = [...new Set([...first, ...Object.keys(left?.known ?? {})])]
    const past = all[most]
    const error = `is past the ${most} pages of \`max_pages\`, with all that follow`
    return {
      queue: all.slice(0, most),
      unchanged: 0,
      failures: past === undefined ? [] : [{ url: past, error }],
      follows: listed.length === 0,
      is_list,
    }
  }

  isSpent(): boolean {
    return this.#requests >= REQUESTS_A_STEP
  }

  belongs(address: string): boolean {
    return this.#belongs(address)
  }

  /** One request after the other in time. */
  async fetch(url: string, known?: KnownPage): Promise<Fetched> {
    const wait = this.#next - Date.now()
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait))
    this.#next = Date.now() + this.#pause
    this.#requests += 1
    return fetchPage(this.#env, url, this.#reader.AGENT, known)
  }

  pageOf(fetched: Fetched, address: string): Page {
    return articleOf(this.#reader, fetched, address)
  }

  whereOf(address: string) {
    const { host, pathname } = new URL(address)
    return { source: host, section: this.#reader.sectionOf(pathname.replace(/^\//, '')), url: address }
  }

  async first(): Promise<Page | undefined> {
    await this.open(undefined)
    const { url } = this.source
    const fetched = this.#rules.allows(url) ? await this.fetch(url) : undefined
    if (fetched && new URL(fetched.address).origin !== new URL(url).origin)
      return { links: [], moved: fetched.address }
    return fetched?.status === 200 ? this.pageOf(fetched, fetched.address) : undefined
  }

  /** Which pages belong to the source: of a list any of its site, else those below its address. */
  #bound(isList = false): void {
    const { url } = this.source
    const isBelow = this.#reader.belowOf(isList ? new URL(url).origin : url)
    this.#belongs = (each) => isBelow(each) && this.#rules.allows(each)
  }

  readonly #get = async (url: string) => {
    if (this.#requests >= REQUESTS_A_STEP / 2) return { reason: 'too many sitemaps' }
    try {
      const { status, bytes } = await this.fetch(url)
      return { status, bytes }
    } catch (error) {
      return { reason: error instanceof Error ? error.message : String(error) }
    }
  }
}

// =============================================================================
// The origin of a source, by its kind.

/** What of a source says where its pages are. */
type Place = Pick<Source, 'name' | 'kind' | 'url' | 'base_url' | 'max_pages'>

/** @param storage of the source's object, where what is unpacked waits; without it nothing can be unpacked */
export function originOf(
  env: Cloudflare.Env,
  place: Place,
  use: Reader,
  storage?: DurableObjectStorage,
): Origin {
  if (place.kind === 'bucket') return new Bucket(env, place, use)
  if (place.kind === 'archive') return new Archive(env, place, use, storage)
  return new Site(env, place, use)
}
