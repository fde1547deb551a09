/** Halves of a project's files that take about as long: Vitest deals them out by hashes of their names. */
import { BaseSequencer } from 'vitest/node'

/**
 * Seconds of the longest files, measured in one whole run. They need not be exact: they only weigh.
 * @type {Record<string, number>}
 */
const SECONDS = {
  'deploy-places': 220,
  'deploy-accounts': 200,
  'deploy-destroy': 150,
  deploy: 90,
  start: 76,
  'command-line': 73,
  'deploy-operating': 60,
  faults: 58,
  matrix: 55,
  vectorize: 53,
  guides: 48,
  tutorials: 48,
  conformance: 44,
  moving: 40,
  'hostile-models': 32,
  visitors: 31,
  'backup-bucket': 28,
  kill: 27,
}
/** of the others, on average */
const OTHERS = 7

/** @typedef {{ moduleId: string }} File `moduleId`: its path */

/** @param {File} file */
const nameOf = ({ moduleId }) => /([^/\\]*)\.test\.ts$/.exec(moduleId)?.[1] ?? moduleId

/** @param {File} file */
const secondsOf = (file) => SECONDS[nameOf(file)] ?? OTHERS

/**
 * Deals files out: the longest first, each to whoever has the least.
 * @template {File} F
 * @param {readonly F[]} files
 * @param {number} index of the shard, from 1
 * @param {number} count of shards
 * @returns {F[]}
 */
export function shardOf(files, index, count) {
  const shards = Array.from({ length: count }, () => ({ seconds: 0, files: /** @type {F[]} */ ([]) }))
  const sorted = [...files].sort(
    (a, b) => secondsOf(b) - secondsOf(a) || (a.moduleId < b.moduleId ? -1 : Number(a.moduleId > b.moduleId)),
  )
  for (const file of sorted) {
    const least = shards.reduce((best, shard) => (shard.seconds < best.seconds ? shard : best))
    least.seconds += secondsOf(file)
    least.files.push(file)
  }
  return shards[index - 1]?.files ?? []
}

export class BalancedShards extends BaseSequencer {
  /** @override @param {import('vitest/node').TestSpecification[]} files */
  async shard(files) {
    const { shard } = this.ctx.config
    return shard ? shardOf(files, shard.index, shard.count) : files
  }
}
