/** The origin of a source, by its kind. */
import { Archive } from './archive'
import { Bucket } from './bucket'
import type { Reader } from './load-reader'
import type { Origin } from './origin'
import { Site } from './site'
import type { Source } from './source'

/** What of a source says where its pages are. */
export type Place = Pick<Source, 'name' | 'kind' | 'url' | 'base_url' | 'max_pages'>

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
