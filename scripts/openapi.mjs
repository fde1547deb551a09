/**
 * Writes ui/openapi.json from the table that Parley's own routes are served by (src/api/parley/operations.ts).
 * With `--check` it writes nothing and fails when the file says something else. Wants a Node that reads
 * TypeScript as it is; npm scripts have it.
 */
import './installed.mjs'
import { readFileSync, writeFileSync } from 'node:fs'
import { document } from './openapi-document.mjs'

const file = new URL('../ui/openapi.json', import.meta.url)
const text = `${JSON.stringify(document(), undefined, 2)}\n`

if (!process.argv.includes('--check')) writeFileSync(file, text)
else if (readFileSync(file, 'utf8') !== text) {
  console.error('ui/openapi.json is not what the routes are: run npm run openapi.')
  process.exitCode = 1
}
