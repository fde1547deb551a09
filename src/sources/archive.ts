/**
 * A Git archive by https as the origin of a source, such as GitHub's `https://github.com/OWNER/REPO/archive/refs/heads/main.tar.gz`, and
 * with `#docs` behind it the files of that folder. It is read once in a run, as it comes: files that changed wait in the source's object
 * until a step reads them.
 */
import { ApiError } from '../errors'
import type { Egress } from '../models/egress'
import { followed } from './fetch-page'
import { Files, type FilesPlace } from './files'
import type { Reader } from './load-reader'
import type { Listed, Origin } from './origin'
import type { Page } from './reader'
import { ARCHIVE, type Pages } from './source'
import { Staged } from './staged'

const TIMEOUT_MS = 120_000

export class Archive extends Files implements Origin {
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
    const bytes = this.#staged?.take(path)
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
    throw new ApiError(400, `\`${hash}\` names no folder: write a percent sign in it as %25.`)
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
