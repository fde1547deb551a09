/** `node scripts/costs.mjs`: what a thousand conversations cost, as docs/costs.md and the README show it, and the worst day of a key of docs/keys.md. */
import { costsArithmetic, costsSentence, costsTable, worstDayTable } from './costs/table.mjs'

console.log(`${costsTable()}\n\n${costsSentence()}\n\n${costsArithmetic()}\n\n${worstDayTable()}`)
