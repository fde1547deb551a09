/** Registers a source: checks that its place may be read, and that its collection takes what an import makes. */
import { badRequest, unwrap } from '../errors'
import { languageOf } from '../lib/grammar'
import { settlesWithin } from '../lib/waiting'
import { requireAllowed } from '../models/egress'
import { createCollection, lookUpAnew } from '../registry/collections'
import { documentsOf } from '../registry/engines'
import { loadReader } from './load-reader'
import { sourceObject } from './object'
import { type Origin, originOf } from './origin'
import type { Page } from './reader'
import { getSource, kindOf, noteRun, putSource, type Source, type SourceSettings } from './source'

/** A first page that is not there in so many milliseconds tells no language: whoever registers a source waits. */
const LOOK_MS = 5_000

/** The model that makes the vectors of a collection that is made for a source. */
const EMBEDDING = 'ts/all-MiniLM-L12-v2'

/** @throws ApiError 400 */
export async function register(
  env: Cloudflare.Env,
  name: string,
  { embedding = EMBEDDING, ...settings }: SourceSettings & { embedding?: string | undefined },
): Promise<Source> {
  const kind = kindOf(settings.url)
  if (kind !== 'bucket') requireAllowed(settings.url, env, 'The URL of the source')
  const use = await loadReader()
  const { articleFields, collectionOf, PAGE, normal } = use
  const { collection } = settings
  const at = (url: string) => originOf(env, { ...settings, url, name, kind }, use)
  at(settings.url)
  const place = await lookUpAnew(env, collection)
  const { url, first } =
    place === undefined || kind === 'website' ? await look(settings.url, at) : { url: settings.url }
  if (place === undefined) {
    const fields = articleFields(embedding, languageOf([first?.article?.text ?? '']))
    await createCollection(env, collectionOf(collection, fields))
  } else {
    const { fields } = unwrap(await documentsOf(env, place).schema())
    if (!fields.some((field) => field.name === PAGE))
      throw badRequest(
        `Collection \`${collection}\` was not made by an import of pages. Name another one, which is made then.`,
      )
  }
  const site = first?.site
  return putSource(env, name, {
    ...settings,
    ...(kind === 'website' && { url: normal(url)!, ...(site && { site }) }),
  })
}

/** Redirects from a site to its own other name, such as `https://www.example.com/` of `http://example.com/`. */
const MOST_MOVES = 2

/**
 * The first page of a source, which tells its language and its looks, and where the source is. One that cannot be read now tells
 * nothing: a run says why.
 */
async function look(url: string, at: (url: string) => Origin): Promise<{ url: string; first?: Page }> {
  const follow = async (from: string, moves: number): Promise<{ url: string; first?: Page }> => {
    const first = await at(from).first()
    const moved = first?.moved
    if (moved !== undefined && moves < MOST_MOVES && isSameSite(from, moved)) return follow(moved, moves + 1)
    return { url: from, ...(first && { first }) }
  }
  const looking = follow(url, 0).catch(() => ({ url }))
  return (await settlesWithin(LOOK_MS, looking)) ? looking : { url }
}

/** Whether a redirect leads to the same site with or without `www.`, and by https if it is by that already. */
function isSameSite(from: string, to: string): boolean {
  const [here, there] = [new URL(from), new URL(to)]
  const bare = ({ hostname }: URL) => hostname.replace(/^www\./, '')
  return bare(here) === bare(there) && (there.protocol === 'https:' || here.protocol === 'http:')
}

/** Begins a run now, or goes on with the one that has begun, and reads some pages. @throws ApiError 404 @returns how it went */
export async function runNow(env: Cloudflare.Env, name: string): Promise<Source> {
  const { state, next_run_at } = await getSource(env, name)
  // A site that asked to be left alone for a while is.
  if (state === 'waiting' && next_run_at > Date.now()) await noteRun(env, name, { next_run_at: Date.now() })
  await sourceObject(env, name).read()
  return getSource(env, name)
}
