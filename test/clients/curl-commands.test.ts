/** The curl commands of the README and of the pages of docs/, run by a shell as they stand there, page by page. */
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { HISTORY_FIELDS } from '../history-schema'
import { KEY } from './harness'
import { OwnParley } from './own-parley'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 })

const ROOT = join(import.meta.dirname, '../..')
const pages = ['README.md', ...readdirSync(join(ROOT, 'docs')).map((name) => `docs/${name}`)].filter((name) =>
  name.endsWith('.md'),
)

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
let conversation = ''

const call = async (method: string, path: string, body: unknown): Promise<Record<string, unknown>> => {
  const response = await fetch(parley.url + path, {
    method,
    headers: { 'x-typesense-api-key': KEY },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  expect([path, response.ok, text]).toEqual([path, true, text])
  return JSON.parse(text)
}

/** What pages say that there is already, as after `npm start` or the page before. */
beforeAll(async () => {
  await parley.boot()
  const text = { name: 'text', type: 'string' }
  const title = { name: 'title', type: 'string' }
  await call('POST', '/collections', { name: 'docs', fields: [title, text] })
  await call('POST', '/collections/docs/documents', {
    title: 'History',
    text: 'Parley stores history in D1.',
  })
  await call('POST', '/collections', { name: 'films', fields: [title] })
  const popularity = { name: 'popularity', type: 'int32' }
  await call('POST', '/collections', { name: 'books', fields: [title, popularity] })
  await call('POST', '/collections/books/documents', { id: '1', title: 'Reef', popularity: 0 })
  await call('POST', '/collections', { name: 'docs_history', fields: HISTORY_FIELDS })
  const model = { model_name: 'local/extractive', history_collection: 'docs_history', max_bytes: 16_384 }
  await call('POST', '/conversations/models', { id: 'docs', ...model })
  await call('PUT', '/assistants/default', { model: 'docs', collections: ['docs'] })
  const asked = await call('POST', '/conversations', {
    ...{ question: 'How does Parley store history?', model: 'docs', collections: ['docs'], user_id: 'ann' },
  })
  conversation = String(asked.conversation_id)
})

afterAll(() => parley.remove())

/** Runs a command. @returns what the server answered @throws for a status of 400 and above */
async function run(command: string): Promise<string> {
  const told = command
    .replaceAll(/(?:http:\/\/)?localhost:8108|https:\/\/parley\.example/g, parley.url)
    .replaceAll('777c6624-e635-4fe1-8c54-8c2bbd911413', conversation)
    .replaceAll(/(conversation_id=|conversation_id:=)ID\b/g, `$1${conversation}`)
  const { stdout } = await promisify(execFile)(
    'bash',
    ['-c', `curl() { command curl -sS --fail-with-body "$@"; }\n${told}`],
    { env: { PATH: process.env.PATH, KEY: `X-TYPESENSE-API-KEY: ${KEY}`, ADMIN_API_KEY: KEY } as never },
  )
  return stdout
}

test('every body that the pages send is JSON', () => {
  const bodies = here.flatMap(commandsOf).flatMap((command) => {
    const [, body] = / -d '([^']*)'/.exec(command) ?? []
    return body === undefined ? [] : [body]
  })
  expect(bodies.length).toBeGreaterThan(25)
  for (const body of bodies) expect(() => JSON.parse(body), body).not.toThrow()
})

// The README comes first: other pages go on with what it makes.
for (const page of here.filter((each) => runnable(each).length > 0)) {
  test(`the commands of ${page} are answered`, async () => {
    for (const command of runnable(page)) {
      const answer = await run(command)
      for (const failure of ['"success":false', 'event: error', '"type":"error"'])
        expect([command, answer]).toEqual([command, expect.not.stringContaining(failure)])
      const { conversation: said } = answer.startsWith('{') ? JSON.parse(answer.split('\n')[0]!) : {}
      if (said?.conversation_id) conversation = said.conversation_id
    }
  })
}
