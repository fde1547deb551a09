/** Registers a source: checks that its site may be called, and that its collection takes what an import makes. */
import { ApiError, unwrap } from '../errors'
import { requireAllowed } from '../models/egress'
import { createCollection } from '../registry/collections'
import { documentsOf } from '../registry/engines'
import { lookUpAnew } from '../registry/names'
import { loadReader } from './load-reader'
import { sourceObject } from './object'
import { getSource, noteRun, putSource, type Source, type SourceSettings } from './source'

/** The model that makes the vectors of a collection that is made for a source. */
const EMBEDDING = 'ts/all-MiniLM-L12-v2'

/** @throws ApiError 400 */
export async function register(
  env: Cloudflare.Env,
  name: string,
  { embedding = EMBEDDING, ...settings }: SourceSettings & { embedding?: string | undefined },
): Promise<Source> {
  requireAllowed(settings.url, env, 'The URL of the source')
  const { articleFields, collectionOf, PAGE, normal } = await loadReader()
  const { collection } = settings
  const place = await lookUpAnew(env, collection)
  if (place === undefined) await createCollection(env, collectionOf(collection, articleFields(embedding)))
  else {
    const { fields } = unwrap(await documentsOf(env, place).schema())
    if (!fields.some((field) => field.name === PAGE))
      throw new ApiError(
        400,
        `Collection \`${collection}\` was not made by an import of pages. Name another one, which is made then.`,
      )
  }
  return putSource(env, name, { ...settings, url: normal(settings.url)! })
}

/** Begins a run now, or goes on with the one that has begun, and reads some pages. @throws ApiError 404 @returns how it went */
export async function runNow(env: Cloudflare.Env, name: string): Promise<Source> {
  const { state, next_run_at } = await getSource(env, name)
  // A site that asked to be left alone for a while is.
  if (state === 'waiting' && next_run_at > Date.now()) await noteRun(env, name, { next_run_at: Date.now() })
  await sourceObject(env, name).read()
  return getSource(env, name)
}
