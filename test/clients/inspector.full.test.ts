/**
 * The MCP Inspector's command line over real sockets. It is 50 MB that nothing else needs, so it is installed here, as the lock of
 * test/fixtures/inspector says. What it asks for, mcp.test.ts asks for in every run by the SDK that it is made with.
 */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createAssistant, createModel, createShows, KEY, url } from './harness'
import { installed } from './installed'
import { type Llm, startLlm } from './llm'

const run = promisify(execFile)
let folder: string
let llm: Llm | undefined
let assistant: string

beforeAll(async () => {
  folder = await installed('inspector')
  llm = await startLlm()
  const model = await createModel({ model_name: 'openai/gpt-4o-mini', openai_url: llm.url })
  assistant = await createAssistant({ model, collections: [await createShows()] })
})
afterAll(() => llm?.stop())

async function inspect(method: string, ...args: string[]) {
  const launcher = join(
    folder,
    'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js',
  )
  const server = [
    `${url}/mcp/${assistant}`,
    ...['--transport', 'http'],
    ...['--header', `Authorization: Bearer ${KEY}`],
  ]
  const { stdout } = await run(process.execPath, [launcher, '--cli', ...server, '--method', method, ...args])
  return JSON.parse(stdout)
}

test('lists tools and documents, and asks', async () => {
  const { tools } = await inspect('tools/list')
  expect(tools.map(({ name }: { name: string }) => name)).toContain('ask')
  const { resources } = await inspect('resources/list')
  expect(resources).toHaveLength(5)
  const asked = await inspect('tools/call', '--tool-name', 'ask', '--tool-arg', 'question=an action series')
  expect(asked.structuredContent.answer).toBe('You asked: an action series')
})
