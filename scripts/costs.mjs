/** `node scripts/costs.mjs`: what a thousand conversations cost, as docs/deploy.md and the README show it. */
import { costsArithmetic, costsSentence, costsTable } from './costs/table.mjs'

console.log(`${costsTable()}\n\n${costsSentence()}\n\n${costsArithmetic()}`)
