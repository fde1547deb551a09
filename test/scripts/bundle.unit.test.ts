/** What `npm start` keeps of a bundle: it is taken again only where nothing has changed. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { bundleInto } from '../../scripts/bundle.mjs'

let from: string
let folder: string
let bundled = 0
let meanwhile = () => {}

const write = (file: string, text: string) => {
  mkdirSync(dirname(join(from, file)), { recursive: true })
  writeFileSync(join(from, file), text)
}

beforeEach(() => {
  from = mkdtempSync(join(tmpdir(), 'parley-bundle-'))
  folder = join(from, '.parley/bundle')
  bundled = 0
  meanwhile = () => {}
  for (const name of ['package.json', 'package-lock.json', 'tsconfig.json', 'wrangler.toml'])
    write(name, name)
  for (const name of [
    'src/index.ts',
    'ui/widget/src/chat.ts',
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

/** @returns whether anything was bundled, and what is served */
async function start(): Promise<[bundled: boolean, served: string]> {
  const before = bundled
  await bundleInto(folder, {
    from,
    bundle: async (into) => {
      bundled += 1
      const source = readFileSync(join(from, 'src/index.ts'), 'utf8')
      mkdirSync(into, { recursive: true })
      writeFileSync(join(into, 'index.js'), `bundle of ${source}`)
      write('ui/widget/parley-chat.js', readFileSync(join(from, 'ui/widget/src/chat.ts'), 'utf8'))
      meanwhile()
    },
  })
  return [bundled > before, readFileSync(join(folder, 'index.js'), 'utf8')]
}

test('a second start takes what the first has bundled', async () => {
  expect(await start()).toEqual([true, 'bundle of src/index.ts'])
  rmSync(folder, { recursive: true })
  expect(await start()).toEqual([false, 'bundle of src/index.ts'])
})

test('other packages, and another key for the pages, make another bundle', async () => {
  expect((await start())[0]).toBe(true)
  write('node_modules/.package-lock.json', 'hono 4.13.20')
  expect((await start())[0]).toBe(true)
  vi.stubEnv('DOCS_KEY', 'a-key')
  expect((await start())[0]).toBe(true)
  expect((await start())[0]).toBe(false)
})

test.each([
  'src/index.ts',
  'src/more.ts',
  'ui/widget/src/chat.ts',
  'docs/a.md',
  'examples/a.ts',
  'scripts/a.mjs',
  'package.json',
  'package-lock.json',
  'wrangler.toml',
])('a change of %s is bundled', async (file) => {
  await start()
  write(file, 'changed')
  expect((await start())[0]).toBe(true)
  expect((await start())[0]).toBe(false)
})

test('pages that are gone or changed are built again', async () => {
  await start()
  const page = join(from, 'ui/widget/parley-chat.js')
  rmSync(page)
  expect((await start())[0]).toBe(true)
  writeFileSync(page, 'half')
  expect((await start())[0]).toBe(true)
  expect(readFileSync(page, 'utf8')).toBe('ui/widget/src/chat.ts')
})

test('sources that are edited while they are bundled are bundled again', async () => {
  meanwhile = () => write('src/index.ts', 'an edit')
  expect(await start()).toEqual([true, 'bundle of src/index.ts'])
  meanwhile = () => {}
  expect(await start()).toEqual([true, 'bundle of an edit'])
})

test('one bundle is kept, and none where the packages cannot be written to', async () => {
  await start()
  write('src/index.ts', 'changed')
  await start()
  const kept = join(from, 'node_modules/.cache/parley-bundle')
  expect(readdirSync(kept)).toHaveLength(1)
  rmSync(join(from, 'node_modules'), { recursive: true })
  write('node_modules', 'no folder')
  expect(await start()).toEqual([true, 'bundle of changed'])
  expect(await start()).toEqual([true, 'bundle of changed'])
})

test('two starts at once keep one bundle, whole, and no copy is left over', async () => {
  const [first, second] = [join(from, '.parley/one'), join(from, '.parley/two')]
  const kept = join(from, 'node_modules/.cache/parley-bundle')
  const bundle = async (into: string) => {
    mkdirSync(into, { recursive: true })
    writeFileSync(join(into, 'index.js'), 'the bundle')
    // Both have looked, and found none, before either keeps its own.
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  await Promise.all([bundleInto(first, { from, bundle }), bundleInto(second, { from, bundle })])
  expect(readdirSync(kept)).toHaveLength(1)
  await bundleInto(folder, { from, bundle: () => Promise.reject(new Error('it is kept')) })
  for (const each of [first, second, folder]) {
    expect(readFileSync(join(each, 'index.js'), 'utf8')).toBe('the bundle')
  }
})

test('what a start that was killed left of a copy is tidied up, and what another makes is not', async () => {
  const kept = join(from, 'node_modules/.cache/parley-bundle')
  const [abandoned, fresh] = ['killed-long-ago', 'being-made']
  for (const name of [abandoned, fresh]) write(`node_modules/.cache/parley-bundle/${name}/index.js`, 'half')
  utimesSync(join(kept, abandoned), new Date(0), new Date(0))
  await start()
  expect(readdirSync(kept)).not.toContain(abandoned)
  expect(readdirSync(kept)).toContain(fresh)
})
