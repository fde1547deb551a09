/**
 * fast-check with the seed and the share of this run. vitest.config.ts puts it in the place of `fast-check`, so that `npm test` draws
 * the same cases each time and a red run is red again: a quarter of those that a property asks for. `npm run test:all` draws all
 * of them, new ones each time, and a failure names its seed.
 */
import { inject } from 'vitest'
import fc from '../node_modules/fast-check/lib/fast-check.js'

const seed = inject('randomSeed')
if (seed !== '') fc.configureGlobal({ seed: Number(seed) })

declare module 'vitest' {
  interface ProvidedContext {
    /** '' for new cases each time */
    randomSeed: string
    /** how many of the cases that a property asks for it is given; 1: all of them */
    randomShare: number
  }
}

/** Cases of a property that says nothing, as fast-check has it. */
const USUAL_RUNS = 100

/** As fast-check's own, with this run's share of the cases. */
export const assert = ((property: fc.IRawProperty<unknown>, parameters: fc.Parameters<unknown> = {}) => {
  const numRuns = Math.ceil((parameters.numRuns ?? USUAL_RUNS) * inject('randomShare'))
  return fc.assert(property, { ...parameters, numRuns })
}) as typeof fc.assert

export * from '../node_modules/fast-check/lib/fast-check.js'
export default { ...fc, assert }
