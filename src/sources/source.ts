/**
 * Sources: websites, buckets of R2 and Git archives that are read again by themselves. A row of D1's `resources` holds what was asked for and how the last run went,
 * and a second one the pages that are known, which only a run reads.
 */
import * as v from 'valibot'
import { deleteResource, findResource, listResources, mergeResource, putResource } from '../db/resources'
import { ApiError, badRequest } from '../errors'
import { once } from '../lib/once'

const KIND = 'source'
const PAGES = 'source_pages'

/** Sources of a deployment. */
const MOST_SOURCES = 100
/** Characters of what is known of a source's pages: a row of D1 holds 2 MB. */
const LONGEST_PAGES = 1_500_000

const Run = once(() =>
  v.object({
    /** unix milliseconds */
    started_at: v.number(),
    ended_at: v.optional(v.number()),
    /** pages that were asked for, and what became of them */
    pages: v.number(),
    changed: v.number(),
    unchanged: v.number(),
    gone: v.number(),
    failed: v.number(),
    failures: v.array(v.object({ url: v.string(), error: v.string() })),
    /** addresses that are known and wait to be read */
    left: v.optional(v.number()),
  }),
)
export type Run = v.InferOutput<ReturnType<typeof Run>>

const Stored = once(() =>
  v.object({
    url: v.string(),
    /** where the files of a bucket or an archive are read on the web */
    base_url: v.optional(v.string()),
    collection: v.string(),
    every_minutes: v.number(),
    prune: v.boolean(),
    max_pages: v.number(),
    /** what the first page of a website says of it */
    site: v.optional(v.object({ name: v.optional(v.string()), color: v.optional(v.string()) })),
    state: v.picklist(['waiting', 'reading']),
    /** unix milliseconds */
    next_run_at: v.number(),
    run: v.optional(Run()),
    last_run: v.optional(Run()),
  }),
)
type Stored = v.InferOutput<ReturnType<typeof Stored>>
export type Kind = 'website' | 'bucket' | 'archive'
export type Source = Stored & { name: string; kind: Kind }
export type SourceSettings = Pick<
  Stored,
  'url' | 'base_url' | 'collection' | 'every_minutes' | 'prune' | 'max_pages' | 'site'
>

/** What a source is, by its address. */
export const kindOf = (url: string): Kind => {
  const { protocol, pathname } = new URL(url)
  if (protocol === 'r2:') return 'bucket'
  return ARCHIVE.test(pathname) ? 'archive' : 'website'
}

/** How the path of an archive ends. */
export const ARCHIVE = /\.(?:tar\.gz|tgz)$/i

/** What is known of a page that was read: how to ask whether it changed. */
const KnownPage = once(() =>
  v.object({
    etag: v.optional(v.string()),
    modified: v.optional(v.string()),
    hash: v.optional(v.string()),
    /** digest of its title */
    title: v.optional(v.string()),
  }),
)
const Pages = once(() =>
  v.object({
    /** the run that `queue` belongs to */
    run: v.number(),
    queue: v.array(v.string()),
    /** whether links are followed: the site has no sitemap */
    follows: v.optional(v.boolean()),
    /** whether the source is a sitemap or a feed, which may list any page of its site */
    is_list: v.optional(v.boolean()),
    /** of the archive that was read whole, all of its files included */
    etag: v.optional(v.string()),
    known: v.record(v.string(), KnownPage()),
    /** addresses that this run has seen */
    seen: v.array(v.string()),
    /** times in a row that the site had no time */
    busy: v.number(),
  }),
)
export type KnownPage = v.InferOutput<ReturnType<typeof KnownPage>>
export type Pages = v.InferOutput<ReturnType<typeof Pages>>

const shown = (name: string, stored: Stored): Source => ({ name, kind: kindOf(stored.url), ...stored })

const sourceIn = ({ id, body }: { id: string; body: string }): Source =>
  shown(id, v.parse(Stored(), JSON.parse(body)))

export const listSources = async (env: Cloudflare.Env): Promise<Source[]> =>
  (await listResources(env.DB, KIND)).map(sourceIn)

export async function findSource(env: Cloudflare.Env, name: string): Promise<Source | undefined> {
  const row = await findResource(env.DB, KIND, name)
  return row && sourceIn(row)
}

/** @throws ApiError 404 */
export async function getSource(env: Cloudflare.Env, name: string): Promise<Source> {
  const source = await findSource(env, name)
  if (!source) throw new ApiError(404, `There is no source \`${name}\`.`)
  return source
}

/** Stores a source, or changes the one of its name. Its pages are read at the next minute, all of them anew. @throws ApiError 400 */
export async function putSource(
  env: Cloudflare.Env,
  name: string,
  settings: SourceSettings,
): Promise<Source> {
  const db = env.DB
  const all = await listSources(env)
  if (all.length >= MOST_SOURCES && !all.some((each) => each.name === name))
    throw badRequest(`There are ${MOST_SOURCES} sources already. Remove one first.`)
  const last = all.find((each) => each.name === name)?.last_run
  const stored: Stored = {
    ...settings,
    state: 'waiting',
    next_run_at: Date.now(),
    ...(last && { last_run: last }),
  }
  const pages = await readPages(env, name)
  if (pages) {
    const known = Object.entries(pages.known).map(([url, { title }]) => [url, { ...(title && { title }) }])
    const { follows, busy } = pages
    await writePages(env, name, {
      run: 0,
      queue: [],
      seen: [],
      follows,
      busy,
      known: Object.fromEntries(known),
    })
  }
  await putResource(db, { kind: KIND, id: name, body: JSON.stringify(stored) })
  return shown(name, stored)
}

/** @throws ApiError 404 @returns the source that it was */
export async function removeSource(env: Cloudflare.Env, name: string): Promise<Source> {
  const source = await getSource(env, name)
  await deleteResource(env.DB, KIND, name)
  await deleteResource(env.DB, PAGES, name)
  return source
}

/** Notes how a run goes. A source that was removed meanwhile does not come back. @param changes null removes a key */
export async function noteRun(
  env: Cloudflare.Env,
  name: string,
  changes: { state?: Stored['state']; next_run_at?: number; run?: Run | null; last_run?: Run },
): Promise<void> {
  if (await findResource(env.DB, KIND, name)) await mergeResource(env.DB, KIND, name, changes)
}

export async function readPages(env: Cloudflare.Env, name: string): Promise<Pages | undefined> {
  const row = await findResource(env.DB, PAGES, name)
  return row && v.parse(Pages(), JSON.parse(row.body))
}

/** @throws ApiError 400 for more than a row holds */
export async function writePages(env: Cloudflare.Env, name: string, pages: Pages): Promise<void> {
  const body = JSON.stringify(pages)
  if (body.length > LONGEST_PAGES)
    throw badRequest('The site has more pages than one source can hold. Lower `max_pages`.')
  await putResource(env.DB, { kind: PAGES, id: name, body })
}
