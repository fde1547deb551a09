/** Registers a source: checks that its place may be read, and that its collection takes what an import makes. */
import { ApiError, unwrap } from '../errors'
import { type Language, languageOf } from '../lib/grammar'
import { settlesWithin } from '../lib/waiting'
import { requireAllowed } from '../models/egress'
import { createCollection, lookUpAnew } from '../registry/collections'
import { documentsOf } from '../registry/engines'
import { loadReader } from './load-reader'
import { sourceObject } from './object'
import type { Origin } from './origin'
import { originOf } from './origin'
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
  const origin = originOf(env, { ...settings, name, kind }, use)
  const place = await lookUpAnew(env, collection)
  if (place === undefined) {
    const looking = languageAt(origin)
    const language = (await settlesWithin(LOOK_MS, looking)) ? await looking : {}
    const fields = articleFields(embedding, language)
    await createCollection(env, collectionOf(collection, fields))
  } else {
    const { fields } = unwrap(await documentsOf(env, place).schema())
    if (!fields.some((field) => field.name === PAGE))
      throw new ApiError(
        400,
        `Collection \`${collection}\` was not made by an import of pages. Name another one, which is made then.`,
      )
  }
  return putSource(env, name, { ...settings, ...(kind === 'website' && { url: normal(settings.url)! }) })
}

/** How texts of a source are searched, by its first page. A page that cannot be read now tells nothing: a run says why. */
async function languageAt(origin: Origin): Promise<Language> {
  try {
    return languageOf([(await origin.first())?.article?.text ?? ''])
  } catch {
    return {}
  }
}

/** Begins a run now, or goes on with the one that has begun, and reads some pages. @throws ApiError 404 @returns how it went */
export async function runNow(env: Cloudflare.Env, name: string): Promise<Source> {
  const { state, next_run_at } = await getSource(env, name)
  // A site that asked to be left alone for a while is.
  if (state === 'waiting' && next_run_at > Date.now()) await noteRun(env, name, { next_run_at: Date.now() })
  await sourceObject(env, name).read()
  return getSource(env, name)
}
