/** The double of Workers AI as the Worker's own binding, in a test inside workerd. */
import { env } from 'cloudflare:workers'
import { vi } from 'vitest'
import type { WorkersAi } from './workers-ai'

/**
 * From here on the Worker, and each Durable Object that has not run yet, runs on Workers AI, played by the double.
 * `vi.restoreAllMocks()` does not undo it: test/setup.ts does, before the next file.
 */
export function bindWorkersAi(ai: WorkersAi): void {
  vi.spyOn(env.AI, 'run').mockImplementation(ai.run as never)
  Object.assign(env, { AI_BACKEND: 'workers-ai' })
}
