/** What somebody reads who forgot `npm ci`, or whose Node is too old. */
import { execFile } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
let copy: string

beforeAll(() => {
  copy = mkdtempSync(join(tmpdir(), 'parley-installed-'))
  for (const each of ['package.json', 'scripts', 'bench'])
    cpSync(join(root, each), join(copy, each), { recursive: true })
})
afterAll(() => rmSync(copy, { recursive: true, force: true }))

const run = (...args: string[]) =>
  new Promise<{ code: unknown; output: string }>((resolve) => {
    execFile(args[0]!, args.slice(1), { cwd: copy }, (error, stdout, stderr) =>
      resolve({ code: error?.code ?? 0, output: stdout + stderr }),
    )
  })

describe('without `npm ci`', () => {
  it.each([
    'start',
    'run deploy',
    'run parley',
    'test',
    'run build',
    'run check',
    'run bench',
    'run openapi',
  ])('npm %s says in one line what to do', async (words) => {
    const { code, output } = await run('npm', '--silent', ...words.split(' '))
    expect(code).toBe(1)
    expect(output).toBe(
      `The packages that Parley needs are not installed. Run \`npm ci\` in ${copy}/, and then this again.\n`,
    )
  })

  it('the linked command says it, too', async () => {
    const { bin } = JSON.parse(readFileSync(join(copy, 'package.json'), 'utf8'))
    const { code, output } = await run(join(copy, bin.parley), 'ask', 'x')
    expect([code, output.split('\n').length]).toEqual([1, 2])
    expect(output).toMatch(/Run `npm ci`/)
  })
})

describe('after an update that needs more packages', () => {
  it('those are named', async () => {
    const { dependencies, devDependencies } = JSON.parse(readFileSync(join(copy, 'package.json'), 'utf8'))
    for (const name of Object.keys({ ...dependencies, ...devDependencies })) {
      if (name === 'hono') continue
      const file = join(copy, 'node_modules', name, 'package.json')
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, '{}')
    }
    const { code, output } = await run(process.execPath, 'scripts/installed.mjs')
    expect([code, output]).toEqual([
      1,
      `These packages are not installed: hono. Run \`npm ci\` in ${copy}/, and then this again.\n`,
    ])
  })
})

describe('a Node that is too old', () => {
  /** It says that it is old, and has neither SQLite nor a reader of TypeScript. */
  const old = `data:text/javascript,${encodeURIComponent(`
    import { registerHooks } from 'node:module'
    Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.1.0' } })
    registerHooks({
      resolve(name, context, next) {
        if (name === 'node:sqlite' || name.endsWith('.ts')) throw new Error('Node 20 has no ' + name)
        return next(name, context)
      },
    })`)}`
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  const ofNpm = Object.values(scripts).flatMap((line) => line.match(/(scripts|bench)\/[\w/-]+\.mjs/g) ?? [])

  /** Programs that people start: those of npm, and those that say at their beginning how they are started by hand. */
  const programs = ['scripts', 'bench']
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map(
        (name) => `${folder}/${name}`,
      ),
    )
    .filter((path) => path.endsWith('.mjs') && path !== 'scripts/parley/bin.mjs')
    .filter(
      (path) => ofNpm.includes(path) || readFileSync(join(root, path), 'utf8').includes(`\`node ${path}`),
    )

  it.concurrent.each(programs)('is told by %s, in one line', async (path) => {
    const { code, output } = await run(process.execPath, '--import', old, join(root, path), '--help')
    expect(code).toBe(1)
    expect(output).toMatch(/^This is Node 20\.1\.0, and .* 22 or newer\. Run them with npm .*\n$/)
  })

  it('is told from one that will do', async () => {
    expect(await run(process.execPath, join(root, 'scripts/installed.mjs'))).toEqual({ code: 0, output: '' })
  })
})
