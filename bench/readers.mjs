/**
 * How good the built-in answerer is on documentation that others wrote, imported as their readers would import it:
 * `node bench/readers.mjs http://localhost:8108`. bench/quality/README.md says how the collections are made.
 */
import '../scripts/installed.mjs'
import { join } from 'node:path'
import { isForDevelopment, readLines, verdictOf } from './quality.mjs'

const [url = 'http://localhost:8108', key = 'xyz'] = process.argv.slice(2)
const asked = readLines(join(import.meta.dirname, 'quality/readers.jsonl'))
const tallies = {}
for (const each of asked) {
  const response = await fetch(`${url}/conversations`, {
    method: 'POST',
    headers: { 'x-typesense-api-key': key, 'content-type': 'application/json' },
    body: JSON.stringify({ question: each.question, collections: [each.set], model: each.set }),
  })
  const turn = await response.json()
  if (!response.ok) throw new Error(`${each.set}: ${turn.message}`)
  const half = isForDevelopment(each) ? 'development' : 'held out'
  const kind = each.unanswerable ? 'unanswerable' : 'answerable'
  const verdict = each.unanswerable ? (turn.declined ? 'declined' : 'answered') : verdictOf(each, turn)
  const isWarned = turn.warned && verdict !== 'warned'
  const name = `${half}, ${kind}: ${verdict}${isWarned ? ', with a warning' : ''}`
  tallies[name] = (tallies[name] ?? 0) + 1
}
for (const name of Object.keys(tallies).sort()) console.log(`${String(tallies[name]).padStart(4)}  ${name}`)
