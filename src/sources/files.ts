/**
 * Files as the origin of a source: those of a bucket and of a Git archive, which differ in how they are listed and where their bytes
 * are. An address within the source is its place's and the file's path. Where people read the file is another one.
 */
import { type Fetched, LONGEST_PAGE } from './fetch-page'
import type { Reader } from './load-reader'
import type { Listed } from './origin'
import { fileOf, type Page } from './reader'
import type { KnownPage, Pages, Source } from './source'

/** What of a source says where its files are. */
export type FilesPlace = Pick<Source, 'name' | 'url' | 'base_url' | 'max_pages'>

export abstract class Files {
  protected readonly place: FilesPlace
  protected readonly use: Reader
  /** what all addresses within the source begin with, up to and with a slash */
  readonly #root: string

  constructor(place: FilesPlace, use: Reader, root: string) {
    this.place = place
    this.use = use
    this.#root = root
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
    return address.startsWith(this.#root)
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
    return this.#root + path.split('/').map(encodeURIComponent).join('/')
  }

  protected pathOf(address: string): string {
    return decodeURIComponent(address.slice(this.#root.length))
  }

  /** Begins a list of what there is. */
  protected listing(left: Pages | undefined): Listing {
    return new Listing(this.use, this.place.max_pages, left?.known ?? {})
  }
}

/** What becomes of the files of a place: which are read, which are as they were, which are told of, and what is gone. */
export class Listing implements Listed {
  readonly queue: string[] = []
  readonly failures: Listed['failures'] = []
  unchanged = 0
  readonly #there = new Set<string>()
  readonly #use: Reader
  readonly #most: number
  readonly #known: Pages['known']

  constructor(use: Reader, most: number, known: Pages['known']) {
    this.#use = use
    this.#most = most
    this.#known = known
  }

  /** Whether a file is read, as far as its path and its size say. What is too much is told of. */
  takes(url: string, path: string, size: number): boolean {
    const { isRead, error } = this.#use.fateOf(path)
    if (error !== undefined) this.tell(url, error)
    if (!isRead || this.#there.has(url)) return false
    this.#there.add(url)
    if (size > LONGEST_PAGE) this.tell(url, `is longer than ${LONGEST_PAGE >> 20} MiB`)
    else if (this.#there.size === this.#most + 1)
      this.tell(url, `is past the ${this.#most} files of \`max_pages\`, with all that follow`)
    return size <= LONGEST_PAGE && this.#there.size <= this.#most
  }

  /** Notes a file that is to be read. @param mark tells that it is as it was @returns whether it is to be read now */
  add(url: string, mark: KnownPage): boolean {
    const { etag, hash } = this.#known[url] ?? {}
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
    this.queue.push(...Object.keys(this.#known).filter((address) => !this.#there.has(address)))
  }
}
