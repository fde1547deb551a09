/**
 * fast-check with the seed of this run. vitest.config.ts puts it in the place of `fast-check`, so that `npm test` draws
 * the same cases each time and a red run is red again. `npm run test:all` draws new cases, and a failure names its seed.
 */
import fc from '../node_modules/fast-check/lib/fast-check.js'

if (RANDOM_SEED !== '') fc.configureGlobal({ seed: Number(RANDOM_SEED) })

export * from '../node_modules/fast-check/lib/fast-check.js'
export default fc
