/** Vectors that a model makes in the background: words are found at once, meaning when they are there. */

import { setTimeout as sleep } from 'node:timers/promises'
import { COMMAND, progress } from './progress.mjs'
import { EXIT, Failure } from './server.mjs'

const LOOK_MS = 500
/** Without any vector for this long, something is wrong with the model. */
const STANDSTILL_MS = 120_000

/** Vectors of a collection that are still to be made. @param {{ pending_embeddings?: number }} collection */
export const pendingVectors = ({ pending_embeddings: pending = 0 }) => pending

/**
 * Waits until all vectors of a collection are there.
 * @param {import('./server.mjs').Server} server
 * @param {string} name
 * @param {boolean} quiet
 * @throws Failure when nothing moves
 */
export async function embedsAll(server, name, quiet) {
  const path = `/collections/${encodeURIComponent(name)}`
  let collection = await server.call('GET', path)
  const total = pendingVectors(collection)
  if (total === 0) return
  let least = total
  let moved = Date.now()
  await progress('Embedding', total, 'documents', quiet, async (to) => {
    for (let pending = total; pending > 0; pending = pendingVectors(collection)) {
      if (pending < least) moved = Date.now()
      least = Math.min(least, pending)
      to(total - pending)
      if (Date.now() - moved > STANDSTILL_MS) {
        throw new Failure(
          EXIT.partial,
          `No vector was made for two minutes, ${pending} are missing: \`${COMMAND} doctor\` says why.`,
        )
      }
      await sleep(LOOK_MS)
      collection = await server.call('GET', path)
    }
    to(total)
  })
}
