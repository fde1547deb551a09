/**
 * A bucket of R2 as the origin of a source: `r2://docs/guide/` is what lies below `guide/` in the bucket that wrangler.toml binds as
 * BUCKET_DOCS. Only what has such a name can be read, so that a key which registers sources reaches no other bucket.
 */
import { ApiError } from '../errors'
import { outgoing } from '../lib/outgoing'
import { Files, type FilesPlace } from './files'
import type { Reader } from './load-reader'
import type { Listed, Origin } from './origin'
import type { Page } from './reader'
import type { Pages } from './source'

/** Objects of a list: as many as R2 gives at once. A list takes that many calls of a step. */
const AT_ONCE = 1_000
const MOST_LISTS = 20

export class Bucket extends Files implements Origin {
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
      throw new ApiError(400, `The deployment binds no bucket of R2 as ${binding}. Add it to wrangler.toml.`)
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
  if (host === undefined) throw new ApiError(400, `\`${url}\` names no bucket. Write r2://NAME/FOLDER.`)
  return { host, prefix: prefix === '' ? '' : `${prefix}/` }
}
