/** The mark that `POST /operations/cache/clear` leaves: no reply from before it is used. A row of D1's `resources`. */
import { database } from '../db/client'
import { findResource, putResource } from '../db/resources'
import { RowCache } from '../db/row-cache'

/** How long the mark is cached, in milliseconds. Another isolate uses earlier replies that much longer. */
const CACHE_MS = 3_000

const KIND = 'cache'
const ID = 'cleared'

const marks = new RowCache<string>('the mark of cleared replies', CACHE_MS)

/** The mark that replies are cached under; '' before the first one. */
export const cacheMark = (env: Cloudflare.Env): Promise<string> =>
  marks.find(ID, async () => (await findResource(database(env), KIND, ID))?.body ?? '') as Promise<string>

/** Makes every search run again instead of using a cached reply. */
export async function clearReplies(env: Cloudflare.Env): Promise<void> {
  await putResource(database(env), { kind: KIND, id: ID, body: JSON.stringify(crypto.randomUUID()) })
  marks.forget(ID)
}
