/** `node scripts/costs.mjs`: the tables of docs/costs.md, the sentence of the README, and the worst day of docs/keys.md. */
import './installed.mjs'
import {
  costsArithmetic,
  costsSentence,
  costsTable,
  earlierTable,
  idleTable,
  importTable,
  keptTable,
  vectorizeSentence,
  worstDayTable,
} from './costs/table.mjs'

console.log(
  `${costsTable()}\n\n${costsSentence()}\n\n${vectorizeSentence()}\n\n${costsArithmetic()}\n\n${earlierTable()}\n\n${importTable()}\n\n${idleTable()}\n\n${keptTable()}\n\n${worstDayTable()}`,
)
