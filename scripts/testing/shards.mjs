/** Halves of a project's files that take about as long: Vitest deals them out by hashes of their names. */
import { BaseSequencer } from 'vitest/node'

/**
 * Seconds of the longest files, measured in one whole run. They need not be exact: they only weigh.
 * @type {Record<string, number>}
 */
const SECONDS = {
  'deploy-accounts': 296,
  'deploy-places': 234,
  'deploy-destroy': 196,
  deploy: 93,
  docs: 86,
  'collection.worker': 81,
  conformance: 66,
  start: 66,
  'console-pages': 63,
  console: 62,
  'console-collections': 59,
  faults: 56,
  matrix: 51,
  page: 51,
  'widget-access': 50,
  'deploy-operating': 49,
  'command-line': 49,
  widget: 47,
  guides: 43,
  moving: 41,
  'console-search': 41,
  'console-states': 40,
  'owners.worker': 38,
  examples: 37,
  'differential.worker': 34,
  kill: 34,
  'console-compare': 34,
  vectorize: 33,
  tutorials: 30,
  'console-engines': 29,
  'seven-protocols': 27,
  'hostile-models': 26,
  'costs.worker': 26,
  visitors: 26,
  'running-answer': 25,
  'joins.worker': 25,
  'named-hops.worker': 25,
  'labelled-search.worker': 25,
  'curl-commands': 24,
  'hang-up': 23,
  'backup-bucket': 22,
  reference: 22,
  'failure.worker': 22,
  'engines-opensearch-move': 21,
  interrupted: 21,
  frames: 20,
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
