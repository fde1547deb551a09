/**
 * Makes src/lib/simd.wasm of simd.wat: `node scripts/simd.mjs`. The result is kept beside its source, because a Worker may not
 * compile WebAssembly while it runs, and so that a bundler finds it. A test says when it is older than its source.
 */
import './installed.mjs'
import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import wabt from 'wabt'

const folder = new URL('../src/lib/', import.meta.url)

/** @returns {Promise<Uint8Array>} what simd.wat means */
export async function assembled() {
  const { parseWat } = await wabt()
  const module = parseWat('simd.wat', readFileSync(new URL('simd.wat', folder), 'utf8'), { simd: true })
  module.validate()
  return module.toBinary({}).buffer
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(new URL('simd.wasm', folder), await assembled())
