/**
 * `npm run reference:opensearch-py`: Python's client of OpenSearch, and libraries that are built on it, against a Parley of these
 * sources.
 */
import '../../scripts/installed.mjs'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startOwnServer } from '../../scripts/own-server.mjs'
import { cache } from './assemble.mjs'
import { startModel } from './servers.mjs'

const PACKAGES = [
  'opensearch-py==3.2.0',
  'langchain-community==0.4.2',
  'llama-index-core==0.14.25',
  'llama-index-vector-stores-opensearch==1.3.0',
  'haystack-ai==3.4.0',
  'opensearch-haystack==9.0.0',
]
const venv = join(cache, `opensearch-py-${PACKAGES.join('-').replaceAll(/[^\d.]+/g, '-')}`)
const python = join(venv, process.platform === 'win32' ? 'Scripts/python.exe' : 'bin/python')

try {
  if (!existsSync(join(venv, 'installed'))) {
    mkdirSync(cache, { recursive: true })
    execFileSync('python3', ['-m', 'venv', venv], { stdio: 'pipe' })
    execFileSync(python, ['-m', 'pip', 'install', '-q', ...PACKAGES], { stdio: 'pipe' })
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
const parley = await startOwnServer(['--no-sample'])
try {
  for (const name of ['opensearch-py.py', 'opensearch-libraries.py']) {
    const script = fileURLToPath(new URL(name, import.meta.url))
    const child = spawn(python, [script, parley.url, model.host], { stdio: 'inherit' })
    const [code] = await once(child, 'exit')
    process.exitCode ||= code ?? 1
  }
} finally {
  await parley.stop()
  model.stop()
}
