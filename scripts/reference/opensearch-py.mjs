/** `npm run reference:opensearch-py`: Python's client of OpenSearch against a Parley of these sources. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { cache } from './assemble.mjs'
import { startModel, startParley } from './servers.mjs'

const VERSION = '3.2.0'
const venv = join(cache, `opensearch-py-${VERSION}`)
const python = join(venv, process.platform === 'win32' ? 'Scripts/python.exe' : 'bin/python')

try {
  if (!existsSync(join(venv, 'installed'))) {
    mkdirSync(cache, { recursive: true })
    execFileSync('python3', ['-m', 'venv', venv], { stdio: 'pipe' })
    execFileSync(python, ['-m', 'pip', 'install', '-q', `opensearch-py==${VERSION}`], { stdio: 'pipe' })
    mkdirSync(join(venv, 'installed'))
  }
} catch (error) {
  const { stderr, message } = /** @type {{ stderr?: Buffer, message: string }} */ (error)
  const line =
    String(stderr ?? '')
      .trim()
      .split('\n')
      .at(-1) || message
  console.error(`No opensearch-py: Python's venv or pip could not bring it (${line})`)
  process.exit(1)
}
const model = await startModel()
const parley = await startParley()
try {
  const script = fileURLToPath(new URL('opensearch-py.py', import.meta.url))
  const child = spawn(python, [script, parley.url, model.host], { stdio: 'inherit' })
  const [code] = await once(child, 'exit')
  process.exitCode = code ?? 1
} finally {
  await parley.stop()
  model.stop()
}
