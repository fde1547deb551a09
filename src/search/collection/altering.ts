/** Runs one PATCH of a schema at a time. */
import { ApiError, collectionGone } from '../../errors'
import type { Surroundings } from '../work'
import { applyAlteration, prepareAlteration, readAlteration } from './alter'
import { ABANDONED_MS } from './life'
import type { Open } from './open'

/** How often a PATCH is read while imports change the schema. */
const MOST_ATTEMPTS = 5

const inProgress = (): ApiError => new ApiError(422, 'Another collection update operation is in progress.')

export class Altering {
  #running = false

  /**
   * Checks and applies a PATCH.
   * @returns its echo @throws ApiError 400, 422 while another one runs
   */
  async run(
    { store, reindex, embeddings, dropping, background, outline }: Open,
    { storage, env, alarm }: Surroundings,
    body: unknown,
  ): Promise<Record<string, unknown>> {
    let before = store.schema
    let alteration = await readAlteration(body, before, env)
    const isBusy = (): boolean => reindex.pending || embeddings.replacing
    if (this.#running || isBusy()) throw inProgress()
    this.#running = true
    try {
      for (let attempt = 1; ; attempt++) {
        if (store.schema === before) await prepareAlteration(alteration, store, env)
        if (store.closed) throw collectionGone()
        if (store.schema === before) break
        // Meanwhile an import has added fields, perhaps one of these. So the PATCH is read again.
        if (isBusy() || attempt === MOST_ATTEMPTS) throw inProgress()
        before = store.schema
        alteration = await readAlteration(body, before, env)
      }
      store.transact(storage, () => {
        const { carried, reindexing } = applyAlteration(store, alteration)
        if (reindexing) reindex.start(carried)
        embeddings.retry()
      })
    } finally {
      this.#running = false
    }
    if (reindex.pending) alarm.within(ABANDONED_MS)
    for (const work of [...embeddings.works(), dropping]) background.kick(work, true)
    // Update the outline now: the next question reads it. If D1 does not answer, the background retries.
    await outline.step().catch(() => {})
    return alteration.echo
  }
}
