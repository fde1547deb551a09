/** Calls that read fields which are being indexed again (schema/filling.ts): they wait for a while, and then are refused. */
import { StillFilling } from '../schema/filling'
import type { Open } from './open'

/**
 * Runs work that reads indexes. It changes nothing before it has found out that a field is incomplete, so it can begin again.
 * @throws ApiError 503 when the fields take too long
 */
export async function whole<T>(open: () => Open, work: () => T | Promise<T>): Promise<T> {
  for (let patient = true; ; patient = false) {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof StillFilling)) throw error
      const { reindex, reindexing, background } = open()
      // Whoever began the job may be gone.
      background.kick(reindexing)
      if (!patient || !(await reindex.settled())) throw error.refusal
    }
  }
}
