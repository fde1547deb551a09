/**
 * fast-check with the seed of this run. vitest.config.ts puts it in the place of `fast-check`, so that `npm test` draws
 * the same cases each time and a red run is red again. `npm run test:all` draws new cases, and a failure names its seed.
 */
import { inject } from 'vitest'
import fc from '../node_modules/fast-check/lib/fast-check.js'

const seed = inject('randomSeed')
if (seed !== '') fc.configureGlobal({ seed: Number(seed) })

declare module 'vitest' {
  interface ProvidedContext {
    /** '' for new cases each time */
    randomSeed: string
  }
}

export * from '../node_modules/fast-check/lib/fast-check.js'
export default fc
