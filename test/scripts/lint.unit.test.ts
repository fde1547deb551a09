/** What lint forbids, tried on a project of files that break the rules. */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { breaches } from '../../scripts/lint/rooms.mjs'

const root = join(import.meta.dirname, '../..')

const EDGE = "Only the platform's edge"

/** What breaks the table of rooms (scripts/lint/rooms.mjs), and what is said of it. */
const LAYERS = [
  [
    'src/turn/store.ts',
    "import { database } from '../db/client'\ndatabase()\n",
    'db/client.ts: turn may import',
  ],
  [
    'src/turn/runtime.ts',
    "import { env } from 'cloudflare:workers'\nenv()\n",
    'cloudflare:workers: turn may not',
  ],
  [
    'src/conversation/object.ts',
    "import { a } from '../search/collection/object'\na()\n",
    'conversation may import',
  ],
  [
    'src/conversation/wire.ts',
    "import type { A } from '../api/http/read'\nexport type B = A\n",
    'conversation may import',
  ],
  ['src/registry/turn.ts', "export { a } from '../turn/fold'\n", 'registry may import'],
  ['src/search/text/sets.ts', "import { a } from '../sets/kept'\na()\n", 'search/text may import'],
  [
    'src/search/run/engine.ts',
    "export const a = () => import('../../engines/port')\n",
    'search/run may import',
  ],
  ['src/search/shared.ts', "import { a } from './text/words'\na()\n", 'search may import'],
  ['src/vectorize/run.ts', "import { a } from '../search/run/search'\na()\n", 'vectorize may import'],
  ['src/api/typesense/tool.ts', "import { a } from '../mcp/ask'\na()\n", 'api/typesense may import'],
  ['src/api/mcp/card.ts', "import { a } from '../a2a'\na()\n", 'a2a/index.ts: api/mcp may import'],
  ['src/api/opensearch/rows.ts', "import { a } from '../../db/client'\na()\n", 'api/opensearch may import'],
  [
    'src/api/shared/rows.ts',
    "import sql from 'sql-template-tag'\nsql``\n",
    'sql-template-tag: api/shared may not',
  ],
  ['src/api/http/read.ts', "import { a } from '../shared/read'\na()\n", 'api/http may import'],
  ['src/lib/call.ts', "import { a } from '../durable/calls'\na()\n", 'lib may import none'],
  ['src/auth/app.ts', "import { app } from '../app'\napp()\n", 'app.ts: auth may import'],
] as const

const WRONG = [
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
  ['src/api/mcp/read.ts', "import { a } from '../shared/read'\na()\n"],
  ['src/search/text/once.ts', "import { a } from '../../lib/once'\na()\n"],
  ['src/app.ts', "import { a } from './api/mcp'\na()\n"],
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
    mkdirSync(join(folder, 'src/api/a2a'), { recursive: true })
    for (const [path, text] of [...WRONG, ...RIGHT, ...LAYERS]) {
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

  it.each(LAYERS)('refuses that %s breaks the table of rooms', (path, _, words) => {
    const sentences = breaches(join(folder, 'src')).filter((sentence) => sentence.startsWith(`${path} `))
    expect(sentences).toEqual([expect.stringContaining(words)])
  })

  it('says nothing of other files', () => {
    const broken = breaches(join(folder, 'src')).map((sentence) => sentence.split(' ')[0])
    expect(broken.sort()).toEqual(LAYERS.map(([path]) => path).sort())
  })

  it.each(WRONG)('refuses %s: %s', (path, _, words) => {
    expect(said.get(path)?.join('\n')).toContain(words)
  })

  it.each(RIGHT)('allows %s: %s', (path) => {
    expect(said.get(path)).toBeUndefined()
  })
})
