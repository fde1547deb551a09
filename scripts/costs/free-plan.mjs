/**
 * What the Workers Free plan allows in a day, as turns of conversations: docs/free-plan.md shows it, and a test compares
 * the two. A turn takes what scripts/costs/model.mjs says.
 */
import {
  CONVERSATION,
  GIGABYTES,
  rowsATurn,
  rowsReadByConversation,
  secondsATurn,
  sum,
  times,
  whole,
} from './model.mjs'
import { markdown } from './table.mjs'
import { WORKERS_AI_MODELS } from './workers-ai.mjs'

/**
 * Of a day, which begins at 00:00 UTC.
 * https://developers.cloudflare.com/workers/platform/limits/
 * https://developers.cloudflare.com/durable-objects/platform/pricing/
 * https://developers.cloudflare.com/d1/platform/pricing/
 * https://developers.cloudflare.com/workers-ai/platform/pricing/
 */
export const FREE = {
  requests: 100_000,
  objectRequests: 100_000,
  /** gigabyte-seconds */
  objectDuration: 13_000,
  objectRowsWritten: 100_000,
  databaseRowsWritten: 100_000,
  /** of each kind of database */
  rowsRead: 5_000_000,
  neurons: 10_000,
  /** https://developers.cloudflare.com/workers/observability/logs/workers-logs/#limits */
  logLines: 200_000,
}

/** The cron trigger fires each minute. */
const CRON = 1_440
/** What a thousand neurons cost on the Paid plan, which is how prices of tokens become neurons. */
const THOUSAND_NEURONS = 0.011

/**
 * Neurons of an average turn.
 * @param {{ in: number, out: number }} price dollars by a million tokens
 */
export function neuronsOf(price) {
  const { turns, tokens } = CONVERSATION
  const read = tokens.answerIn + (tokens.rewriteIn * (turns - 1)) / turns
  const written = tokens.answerOut + (tokens.rewriteOut * (turns - 1)) / turns
  const dollars = (read * price.in + written * price.out) / 1e6
  return { read, written, neurons: (dollars / THOUSAND_NEURONS) * 1_000 }
}

/**
 * @returns {{ what: string, day: number, each: import('./model.mjs').Amount, turns: number }[]} `each`: of a turn
 */
export function freeTurns() {
  const { turns, objectCalls, logLines } = CONVERSATION
  const read = rowsReadByConversation()
  const calls = sum(objectCalls.first, times(turns - 1, objectCalls.followUp))
  /** @type {[string, number, import('./model.mjs').Amount][]} */
  const limits = [
    ['Worker requests, less 1,440 of the cron trigger', FREE.requests - CRON, times(1)],
    [
      'Durable Object requests',
      FREE.objectRequests,
      { value: calls.value / turns, working: `${calls.working} / ${turns}` },
    ],
    ['Durable Object duration, GB-s', FREE.objectDuration, times(secondsATurn(), GIGABYTES)],
    ['Durable Object rows written', FREE.objectRowsWritten, rowsATurn('objects')],
    ['D1 rows written', FREE.databaseRowsWritten, rowsATurn('database')],
    ['Rows read', FREE.rowsRead, { value: read.value / turns, working: `${read.working} / ${turns}` }],
    ['Lines of Workers Logs', FREE.logLines, times(logLines)],
    ...Object.entries(WORKERS_AI_MODELS)
      .filter(([, { paid }]) => !paid)
      .map(([name, price]) => {
        const { read, written, neurons } = neuronsOf(price)
        const working = `(${whole(read)} × $${price.in} + ${whole(written)} × $${price.out}) / $11`
        return /** @type {[string, number, import('./model.mjs').Amount]} */ ([
          `Neurons, ${name.split('/').at(-1)}`,
          FREE.neurons,
          { value: neurons, working },
        ])
      }),
  ]
  return limits.map(([what, day, each]) => ({ what, day, each, turns: Math.floor(day / each.value) }))
}

/** In Markdown. */
export const freeTable = () =>
  markdown([
    ['What', 'A day', 'A turn', 'Turns a day'],
    ...freeTurns().map(({ what, day, each, turns }) => {
      const value = Number(each.value.toFixed(each.value < 100 ? 2 : 0))
      const shown = each.working === String(value) ? whole(value) : `${each.working} = ${whole(value)}`
      return [what, whole(day), shown, whole(turns)]
    }),
  ])

/** Which limit ends a day first, without Workers AI and with it. */
export function freeSentence() {
  const all = freeTurns()
  const least = (/** @type {typeof all} */ some) => some.reduce((a, b) => (b.turns < a.turns ? b : a))
  const platform = least(all.filter(({ what }) => !what.startsWith('Neurons')))
  const flash = all.find(({ what }) => what === 'Neurons, glm-4.7-flash')
  return `A day of the Free plan has room for ${whole(flash?.turns ?? 0)} turns with glm-4.7-flash, and for ${whole(platform.turns)} with a model of another provider.`
}
