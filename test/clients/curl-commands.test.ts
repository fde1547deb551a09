/** The curl commands of the pages of docs/ and of the README, page by page, as the page sends them that "Run" is pressed on. */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { GROUPS } from '../../scripts/docs/pages.mjs'
import { loadSample } from '../../scripts/sample.mjs'
import { filled, idsIn, openIn, requestsIn } from '../../ui/docs/src/command'
import { KEY } from './harness'
import { OwnParley } from './own-parley'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 })

const ROOT = join(import.meta.dirname, '../..')
/** Tutorials and guides have tests of their own, which write their files too. The README goes on for itself. */
const names = GROUPS.flatMap((group) => group.names).filter((name) => !name.includes('/'))
const pages = [...names.map((name) => `docs/${name}.md`), 'README.md']

/** Pages whose commands are for other machines: a cluster of Typesense or OpenSearch, Cloudflare's API. */
const ELSEWHERE = ['docs/engines.md', 'docs/operating.md']
/** For these a provider of models or Vectorize is asked. Nobody is called from a test. */
const OUTSIDE = /"(?:openai|cloudflare)\/|nl_model_id=|\/vectorize\//

const commandsOf = (page: string) =>
  [...readFileSync(join(ROOT, page), 'utf8').matchAll(/```sh\n(.*?)```/gs)]
    .flatMap(([, code]) => code!.split(/^(?=curl |npx |npm |export )/m))
    .filter((command) => command.startsWith('curl '))

/** Those that this machine answers alone. */
const runnable = (page: string) => commandsOf(page).filter((command) => !OUTSIDE.test(command))
const here = pages.filter((page) => !ELSEWHERE.includes(page))

const parley = new OwnParley()
const ids = new Map<string, string>()

/** There is what a reader has after `npm start`: the sample. */
beforeAll(async () => {
  await parley.boot()
  await loadSample(parley.url, KEY)
})

afterAll(() => parley.remove())

/** Runs by a shell what a page cannot send. @returns what the server answered @throws for a status of 400 and above */
async function inShell(command: string): Promise<string> {
  const told = command.replaceAll(/(?:http:\/\/)?localhost:8108|https:\/\/parley\.example/g, parley.url)
  const { stdout } = await promisify(execFile)(
    'bash',
    ['-c', `curl() { command curl -sS --fail-with-body "$@"; }\n${told}`],
    { env: { PATH: process.env.PATH, KEY: `X-TYPESENSE-API-KEY: ${KEY}`, ADMIN_API_KEY: KEY } as never },
  )
  return stdout
}

/** Runs a command with the ids of earlier replies. @returns what the server answered */
async function run(written: string): Promise<string> {
  const command = filled(written, ids)
  const [request] = requestsIn(command) ?? []
  let text = ''
  let conversation: string | null = null
  if (request === undefined) text = await inShell(command)
  else {
    expect([command, openIn(request)]).toEqual([command, []])
    const response = await fetch(parley.url + request.path, request)
    text = await response.text()
    expect([command, response.ok, text]).toEqual([command, true, text])
    conversation = response.headers.get('x-parley-conversation-id')
  }
  for (const [name, id] of idsIn(request ?? { method: '', path: '', headers: {} }, text, conversation))
    ids.set(name, id)
  return text
}

test('every body that the pages send is JSON', () => {
  const bodies = here.flatMap(commandsOf).flatMap((command) => {
    const [, body] = / -d '([^']*)'/.exec(command) ?? []
    return body === undefined ? [] : [body]
  })
  expect(bodies.length).toBeGreaterThan(25)
  for (const body of bodies) expect(() => JSON.parse(body), body).not.toThrow()
})

for (const page of here.filter((each) => runnable(each).length > 0)) {
  test(`the commands of ${page} are answered`, async () => {
    for (const command of runnable(page)) {
      const answer = await run(command)
      for (const failure of ['"success":false', 'event: error', '"type":"error"'])
        expect([command, answer]).toEqual([command, expect.not.stringContaining(failure)])
    }
  })
}
