/**
 * Simulates how long a question waits for calls before its first words, from the calls that test/api/hops.worker.test.ts
 * and the tests beside it count (hops.json). The time that D1, objects and models need for their own work is left out.
 *
 * `node bench/first-token/simulate.mjs` prints the table of docs/benchmarks.md.
 */
import '../../scripts/installed.mjs'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { argv } from 'node:process'
import { fileURLToPath } from 'node:url'

/** @typedef {{ first: string[], followUp: string[] }} Hops */
/**
 * `embedded`: an embedder has to be called.
 *
 * @typedef {Record<'warm' | 'warmFollowUp' | 'embedded' | 'embeddedFollowUp', string[]>} Others
 */
/** @type {Record<string, { before: Hops, now: Hops & Others }>} */
export const HOPS = JSON.parse(readFileSync(join(import.meta.dirname, 'hops.json'), 'utf8'))

/** Milliseconds of a call there and back. */
export const NEARBY_MS = 25
export const OCEAN_MS = 100

/** Calls to what is near whoever calls it in any case: the conversation's object, the model, and the embedder. */
const NEAR = new Set(['ask', 'lookBack', 'recorded', 'isOpenTo', 'answer', 'rewrite', 'embed'])

/**
 * @param {string[]} hops each a list of the calls that it makes at once
 * @param {boolean} isFar whether D1 and the collections are across an ocean
 * @returns {number} milliseconds
 */
export function waitOf(hops, isFar) {
  let now = 0
  /** @type {number | undefined} when the conversation's object was told to look back */
  let told
  for (const calls of hops.map((hop) => hop.split(','))) {
    const began = now
    for (const call of calls) {
      // The conversation's object reads them meanwhile.
      const isAhead =
        (calls.includes('ask') || calls.includes('rewrite')) &&
        (call === 'recentMessages' || call === 'wholeTurns')
      const from = isAhead ? (told ?? began) : began
      const end = from + (isFar && !NEAR.has(call) ? OCEAN_MS : NEARBY_MS)
      // Nobody waits for it but the call that the object makes then.
      if (call === 'lookBack') told = end
      else now = Math.max(now, end)
    }
  }
  return now
}

/** @param {Hops} hops */
const cells = ({ first, followUp }) =>
  [first, followUp].map((hops) => `${hops.length}: ${waitOf(hops, false)} / ${waitOf(hops, true)} ms`)

/** @returns {string} */
export function hopsTable() {
  const rows = Object.entries(HOPS).map(([wire, { before, now }]) => {
    const { warm, warmFollowUp, embedded, embeddedFollowUp } = now
    return [
      wire,
      ...cells(before),
      ...cells(now),
      ...cells({ first: warm, followUp: warmFollowUp }),
      ...cells({ first: embedded, followUp: embeddedFollowUp }),
    ]
  })
  const heads = [
    'Asked by',
    'First, before',
    'Follow-up, before',
    'First',
    'Follow-up',
    'First, cached',
    'Follow-up, cached',
    'First, embedder',
    'Follow-up, embedder',
  ]
  const widths = heads.map((head, at) => Math.max(head.length, ...rows.map((row) => row[at].length)))
  const line = (/** @type {string[]} */ row) =>
    `| ${row.map((cell, at) => cell.padEnd(widths[at])).join(' | ')} |`
  return [line(heads), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')
}

if (argv[1] === fileURLToPath(import.meta.url)) console.log(hopsTable())
