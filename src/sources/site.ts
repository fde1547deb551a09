/** A website as the origin of a source: what its robots.txt allows, one request after the other in time, by its sitemaps or its links. */
import { ApiError } from '../errors'
import { type Fetched, fetchPage } from './fetch-page'
import type { Reader, Rules } from './load-reader'
import type { Listed, Origin } from './origin'
import { articleOf, type Page } from './reader'
import type { KnownPage, Pages, Source } from './source'

/** Requests of a step, those for robots.txt and sitemaps included. */
const REQUESTS_A_STEP = 40
/** Pause between two requests, unless robots.txt asks for a longer one. */
const PAUSE_MS = 200

/** What of a source says where its pages are. */
type SitePlace = Pick<Source, 'url' | 'max_pages'>

export class Site implements Origin {
  #requests = 0
  #next = 0
  #pause = PAUSE_MS
  #rules!: Rules
  #belongs!: (url: string) => boolean
  readonly #env: Cloudflare.Env
  readonly #source: SitePlace
  readonly #reader: Reader

  constructor(env: Cloudflare.Env, source: SitePlace, use: Reader) {
    this.#env = env
    this.#source = source
    this.#reader = use
  }

  async open(left: Pages | undefined): Promise<void> {
    const { origin } = new URL(this.#source.url)
    this.#rules = await this.#reader.robotsOf(origin, this.#reader.AGENT, this.#get)
    if (this.#rules.closed !== undefined) throw new ApiError(503, this.#rules.closed)
    this.#pause = Math.max(PAUSE_MS, this.#rules.delay * 1000)
    this.#bound(left?.is_list)
  }

  /** What sitemaps or a feed list, else the start, and every page that is known. */
  async list(left: Pages | undefined): Promise<Listed> {
    const { normal, listedPages } = this.#reader
    const { url, max_pages: most } = this.#source
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
    const { url } = this.#source
    const fetched = this.#rules.allows(url) ? await this.fetch(url) : undefined
    return fetched?.status === 200 ? this.pageOf(fetched, fetched.address) : undefined
  }

  /** Which pages belong to the source: of a list any of its site, else those below its address. */
  #bound(isList = false): void {
    const { url } = this.#source
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
