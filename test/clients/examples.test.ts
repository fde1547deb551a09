/** The scripts of examples/, run as their readers run them, against the sample. */
import { execFile } from 'node:child_process'
import { cpSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { loadSample } from '../../scripts/sample.mjs'
import { KEY, request, url } from './harness'
import { installed } from './installed'
import { promptOf, says, startScriptedLlm } from './scripted-llm'

const EXAMPLES = join(import.meta.dirname, '../../examples')

/** What every script asks first, answered from docs/conversations.md. */
const ANSWER = 'two documents in the model'

beforeAll(() => loadSample(url, KEY))

/** @returns what an example prints */
async function run(program: string, file: string, more: Record<string, string> = {}): Promise<string> {
  const { stdout, stderr } = await promisify(execFile)(program, [resolve(EXAMPLES, file)], {
    env: { ...process.env, PARLEY_URL: url, PARLEY_KEY: KEY, ...more },
  })
  expect(stderr).toBe('')
  return stdout
}

test.each([
  ['typesense.mjs', 'typesense'],
  ['openai.mjs', 'openai'],
  ['mcp.mjs', 'mcp'],
  ['agui.mjs', 'agui'],
  ['a2a.mjs', 'a2a'],
])('%s gets an answer and goes on with the conversation', async (file, protocol) => {
  expect(await run(process.execPath, file)).toContain(ANSWER)
  const { body } = await request('GET', '/conversations?limit=100')
  const its = { title: 'How is history stored?', protocol, turn_count: 2 }
  expect(body.conversations).toContainEqual(expect.objectContaining(its))
})

const CLIENTS =
  /^(typesense|openai|mcp|agui|a2a|langchain|ui-stream|text-stream|use-chat|use-agent-chat|deep-chat-page|ai-chat)\.m?js$/
test.each(readdirSync(EXAMPLES).filter((file) => CLIENTS.test(file)))(
  '%s has a dozen lines at most',
  (file) => {
    const lines = readFileSync(join(EXAMPLES, file), 'utf8').split('\n')
    expect(lines.filter((line) => !/^\s*($|\/\*|\/\/)/.test(line)).length).toBeLessThanOrEqual(12)
  },
)

test('ui-stream.mjs gets an answer with its sources', async () => {
  const lines = (await run(process.execPath, 'ui-stream.mjs')).split('\n')
  expect(lines.join(' ')).toContain(ANSWER)
  expect(lines).toContain('How does Parley store history?')
})

test.runIf(process.env.FULL)('langchain.mjs gets an answer and goes on', async () => {
  const copy = join(await installed('langchain'), 'langchain.mjs')
  cpSync(join(EXAMPLES, 'langchain.mjs'), copy)
  const printed = await run(process.execPath, copy)
  expect(printed).toContain(ANSWER)
  expect(printed.trim().split('\n').length).toBeGreaterThan(1)
})

test('text-stream.mjs gets an answer', async () => {
  expect(await run(process.execPath, 'text-stream.mjs')).toContain(ANSWER)
})

test('curl.sh gets the same answer twice', async () => {
  const printed = await run('sh', 'curl.sh')
  const [events = '', chunks = ''] = printed.split(/(?=data: \{"id":"chatcmpl)/, 2)
  expect(events).toContain('event: done')
  expect(events).toContain(ANSWER)
  expect(chunks).toContain('chat.completion.chunk')
  expect(printed).toMatch(/data: \[DONE\]\s*$/)
})

test("opensearch.sh walks through OpenSearch's conversational search", async () => {
  const llm = await startScriptedLlm()
  llm.script.body = says('He was president from 1861. [1]')
  const printed = await run('sh', 'opensearch.sh', {
    OPENAI_URL: llm.url,
    OPENAI_API_KEY: 'sk-of-the-example',
  })
  await llm.stop()
  const replies = printed
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
  const answers = replies.flatMap(({ ext }) => (ext ? [ext.retrieval_augmented_generation] : []))
  expect(answers.map(({ answer }) => answer)).toEqual(Array(3).fill('He was president from 1861. [1]'))
  expect(answers[0].interaction_id).toBeUndefined()
  const { interactions } = replies.at(-2)
  expect(interactions).toMatchObject([
    { input: 'When was he president', interaction_id: answers[2].interaction_id },
    { input: 'Was Abraham Lincoln a good politician', origin: 'retrieval_augmented_generation' },
  ])
  expect(promptOf(llm.sent.at(-1)!)).toContain('Was Abraham Lincoln a good politician')
  expect(llm.sent[0]!.headers.authorization).toBe('Bearer sk-of-the-example')
  expect(replies.at(-1)).toEqual({ success: true })
})

test('the sample is cited by names that a person can read, and addresses that lead somewhere', async () => {
  const question = { role: 'user', content: 'What is a conversation model?' }
  const chat = await request('POST', '/v1/chat/completions', { model: 'default', messages: [question] })
  const [{ url_citation: cited }] = chat.body.choices[0].message.annotations
  expect(cited.url).toBe(`${url}/docs/models`)
  expect((await fetch(cited.url)).status).toBe(200)
  const spoken = await fetch(`${url}/chat`, {
    method: 'POST',
    headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
    body: JSON.stringify({ messages: [question] }),
  })
  const { message } = (await spoken.json()) as { message: { content: string } }
  expect(message.content).toContain('[conversation-models.txt]')
  expect((await request('GET', '/content/conversation-models.txt')).text).toContain(
    'which language model answers',
  )
  // A document keeps its lines: code is no code without them.
  const { text } = await request('GET', '/content/how-do-i-create-a-conversation-model.txt')
  expect(text).toContain('\n  "max_bytes": 16384\n}')
})

test('every file is in the table of the page about them', () => {
  const page = readFileSync(join(EXAMPLES, 'README.md'), 'utf8')
  const listed = [...page.matchAll(/\]\(([\w.-]+\.\w+)\)/g)].map(([, file]) => file)
  expect(new Set(listed)).toEqual(new Set(readdirSync(EXAMPLES).filter((file) => file !== 'README.md')))
})
