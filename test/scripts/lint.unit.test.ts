/** What lint forbids, tried on a project of files that break the rules. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')

const EDGE = "Only the platform's edge"

const WRONG = [
  ['src/turn/store.ts', "import { database } from '../db/client'\ndatabase()\n", 'turn is pure'],
  ['src/turn/runtime.ts', "import { env } from 'cloudflare:workers'\nenv()\n", 'turn is pure'],
  [
    'src/conversation/object.ts',
    "import { a } from '../search/collection/object'\na()\n",
    'through the ports',
  ],
  [
    'src/conversation/wire.ts',
    "import { a } from '../api/turn/read'\na()\n",
    'conversation knows no protocol',
  ],
  ['src/registry/turn.ts', "import { a } from '../turn/fold'\na()\n", 'registry may import'],
  ['src/search/text/sets.ts', "import { a } from '../sets/kept'\na()\n", 'import one way'],
  ['src/search/run/engine.ts', "import { a } from '../engine/port'\na()\n", 'import one way'],
  ['src/api/typesense/tool.ts', "import { a } from '../mcp/ask'\na()\n", 'A protocol imports no other'],
  ['src/api/mcp/card.ts', "import { a } from '../a2a'\na()\n", 'A protocol imports no other'],
  ['src/api/opensearch/run.ts', "import { a } from '../agui/run'\na()\n", 'A protocol imports no other'],
  ['src/api/edge/read.ts', "import { a } from '../turn/read'\na()\n", 'edge is the ground floor'],
  ['src/models/cast.ts', 'export const a = (b: number) => b as unknown as string\n', EDGE],
  ['src/db/cast.ts', 'export const a = (b: string) => JSON.parse(b) as string[]\n', 'Read JSON by a schema'],
  [
    'src/db/same.ts',
    "export const a = (message: string) => message === 'Gone.'\n",
    'Messages are for people',
  ],
  ['src/db/like.ts', 'export const a = (b: Error) => /^No/.test(b.message)\n', 'Messages are for people'],
  ['src/auth/one.ts', "import { two } from './two'\nexport const one = () => two()\n", 'cycle'],
  ['src/auth/two.ts', "import { one } from './one'\nexport const two = (): unknown => one()\n", 'cycle'],
] as const

const RIGHT = [
  ['src/db/client.ts', 'export const a = (b: number) => b as unknown as string\n'],
  ['src/db/asked.ts', 'export const a = (message?: string) => message === undefined\n'],
  ['src/db/checked.ts', 'export const a = (b: string) => JSON.parse(b) as unknown\n'],
  ['src/search/run/sets.ts', "import { a } from '../sets/kept'\na()\n"],
  ['src/api/mcp/read.ts', "import { a } from '../turn/read'\na()\n"],
] as const

interface Report {
  diagnostics: { location: { path: string }; message: string }[]
}

describe('lint', () => {
  let folder: string
  /** what it says about each file */
  const said = new Map<string, string[]>()

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'parley-lint-'))
    cpSync(join(root, 'scripts/lint'), join(folder, 'scripts/lint'), { recursive: true })
    const { vcs: _, ...config } = JSON.parse(readFileSync(join(root, 'biome.json'), 'utf8'))
    writeFileSync(join(folder, 'biome.json'), JSON.stringify(config))
    for (const [path, text] of [...WRONG, ...RIGHT]) {
      mkdirSync(join(folder, dirname(path)), { recursive: true })
      writeFileSync(join(folder, path), text)
    }
    let output: string
    try {
      const args = ['lint', '--reporter=json', '--max-diagnostics=none', '.']
      output = execFileSync(join(root, 'node_modules/.bin/biome'), args, {
        cwd: folder,
        stdio: 'pipe',
      }).toString()
    } catch (error) {
      output = String((error as { stdout: Buffer }).stdout)
    }
    const { diagnostics }: Report = JSON.parse(output)
    for (const { location, message } of diagnostics) {
      said.set(location.path, [...(said.get(location.path) ?? []), message])
    }
  }, 60_000)

  afterAll(() => rmSync(folder, { recursive: true }))

  it.each(WRONG)('refuses %s: %s', (path, _, words) => {
    expect(said.get(path)?.join('\n')).toContain(words)
  })

  it.each(RIGHT)('allows %s: %s', (path) => {
    expect(said.get(path)).toBeUndefined()
  })
})
