/** `node scripts/costs.mjs`: what a thousand conversations cost, as docs/deploy.md shows it. */
import { costsTable } from './costs/table.mjs'

console.log(costsTable())
