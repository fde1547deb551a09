/** The pages are built again where their sources or what was built of them are not as they were, and only there. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { buildPages } from '../../scripts/pages.mjs'

let from: string
let built = 0
let isWithin = true
let meanwhile = () => {}

const write = (file: string, text: string) => {
  mkdirSync(dirname(join(from, file)), { recursive: true })
  writeFileSync(join(from, file), text)
}
const PAGE = 'ui/console/console.js'

beforeEach(() => {
  from = mkdtempSync(join(tmpdir(), 'parley-pages-'))
  built = 0
  isWithin = true
  meanwhile = () => {}
  for (const name of ['package.json', 'package-lock.json', 'tsconfig.json', 'wrangler.toml'])
    write(name, name)
  for (const name of [
    'src/index.ts',
    'ui/console/src/main.tsx',
    'docs/a.md',
    'examples/a.ts',
    'scripts/a.mjs',
  ]) {
    write(name, name)
  }
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(from, { recursive: true, force: true })
})

/** @returns whether the pages were built */
async function build(options: { anew?: boolean } = {}): Promise<boolean> {
  const before = built
  const make = async () => {
    built += 1
    const content = readFileSync(join(from, 'ui/console/src/main.tsx'), 'utf8')
    write(PAGE, content)
    meanwhile()
    return { files: [['console.js', content]] as [string, string][], told: ['76 KB'], isWithin }
  }
  const done = await buildPages({ from, parts: [['ui/console', make]], ...options })
  // Sizes are told also of what was built before.
  expect(done).toEqual({ told: ['76 KB'], isWithin })
  return built > before
}

test('what is built is not built again, unless that is asked for', async () => {
  expect(await build()).toBe(true)
  expect(await build()).toBe(false)
  expect(await build({ anew: true })).toBe(true)
})

test.each(['ui/console/src/main.tsx', 'docs/a.md', 'examples/a.ts', 'scripts/a.mjs', 'package-lock.json'])(
  'a change of %s is built',
  async (file) => {
    await build()
    write(file, 'changed')
    expect(await build()).toBe(true)
    expect(await build()).toBe(false)
  },
)

test('another key for the documentation is built', async () => {
  await build()
  vi.stubEnv('DOCS_KEY', 'a-key')
  expect(await build()).toBe(true)
})

test('pages that are gone or changed are built', async () => {
  await build()
  rmSync(join(from, PAGE))
  expect(await build()).toBe(true)
  writeFileSync(join(from, PAGE), 'half')
  expect(await build()).toBe(true)
  expect(readFileSync(join(from, PAGE), 'utf8')).toBe('ui/console/src/main.tsx')
})

test('pages that another process wrote meanwhile are not taken for these', async () => {
  meanwhile = () => write(PAGE, 'with another key')
  await build()
  meanwhile = () => {}
  expect(await build()).toBe(true)
})

test('sources that are edited while they are built are built again', async () => {
  meanwhile = () => write('docs/a.md', 'an edit')
  await build()
  meanwhile = () => {}
  expect(await build()).toBe(true)
})

test('pages beyond their budget fail each time', async () => {
  isWithin = false
  expect(await build()).toBe(true)
  expect(await build()).toBe(true)
})

test('pages are built where nothing can be kept', async () => {
  write('node_modules', 'no folder')
  expect(await build()).toBe(true)
  expect(await build()).toBe(true)
})
