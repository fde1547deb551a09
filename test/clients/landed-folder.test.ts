/**
 * A data folder that the last landed version wrote (`npm run fixture`), left behind by a server that was killed while it
 * answered. The version at hand opens it, tells again what was said, and goes on with each of its conversations.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openFolder } from './open-folder'
import { promptOf, type ScriptedLlm, says, startScriptedLlm } from './scripted-llm'

interface Facts {
  alien: { id: string; answer: string; followups: string[]; second: string }
  /** id of its completion */
  tools: string
  memory: { id: string; posted: string; answered: Record<string, unknown> }
  /** the conversation whose answer was being written */
  cut: string
}

const open = openFolder('folder-landed')
const { send } = open
let llm: ScriptedLlm
let facts: Facts

beforeAll(async () => {
  facts = JSON.parse(readFileSync(join(open.folder, 'fixture.json'), 'utf8'))
  llm = await startScriptedLlm()
})
afterAll(() => llm?.stop())

async function json(method: string, path: string, body?: object) {
  const { status, text } = await send(method, path, body)
  expect(status, text).toBeLessThan(300)
  return JSON.parse(text)
}

const post = (question: object, idempotencyKey: string) =>
  send('POST', '/conversations', question, { 'idempotency-key': idempotencyKey })

const eventsOf = async (id: string, after: string): Promise<string> =>
  (
    await send('GET', `/conversations/${id}/events?after=${after}`, undefined, {
      accept: 'text/event-stream',
    })
  ).text

const conversationOf = (completion: string) => completion.replace(/^chatcmpl-(.*)\.\d+$/, '$1')

test('the turn that was being written shows what it had, and D1 learns of it', async () => {
  const events = await eventsOf(facts.cut, '1.0')
  expect(events).toMatch(
    /^event: delta\ndata: {"text":"(.*\n\nid.*\nevent: delta\ndata: {"text":")*.*word10 /m,
  )
  expect(events).toMatch(/^event: error\ndata: .*"code":"interrupted"/m)
  await expect
    .poll(
      async () =>
        (await json('GET', '/conversations?limit=20')).conversations.map(({ id }: { id: string }) => id),
      {
        timeout: 60_000,
      },
    )
    .toContain(facts.cut)
})

test('it is answered when it is asked again, and its conversation goes on', async () => {
  await json('PUT', '/conversations/models/remote', { openai_url: llm.url, api_key: 'sk-another' })
  llm.script.body = says('Michael Mann. [1]')
  llm.script.stream = ['Michael ', 'Mann.']
  const question = { model: 'remote', collections: ['films'], question: 'Who directed Heat?', stream: true }
  const { status, text } = await post(question, 'landed-running')
  expect({ status, text }).toMatchObject({
    status: 200,
    text: expect.stringContaining('"answer":"Michael Mann."'),
  })
  expect(text).not.toContain('word10')
  const next = { model: 'remote', collections: ['films'], question: 'And Jaws?', conversation_id: facts.cut }
  expect(await json('POST', '/conversations', next)).toMatchObject({ conversation_id: facts.cut })
  expect(promptOf(llm.sent.at(-1)!)).toContain('Michael Mann.')
})

test('turns of then are listed and told again, as they were', async () => {
  const { id, answer, followups, second } = facts.alien
  const { turns } = await json('GET', `/conversations/${id}`)
  expect(turns).toMatchObject([
    { turn: 1, question: 'Who directed Alien?', answer, followups, finish_reason: 'stop' },
    {
      turn: 2,
      question: 'And when was it made?',
      answer: second,
      standalone: expect.stringContaining('Alien'),
    },
  ])
  expect(turns[0].citations[0]).toMatchObject({ collection: 'films', document_id: 'alien' })
  const { text } = await send('GET', `/conversations/${id}/trace`)
  expect(text).toContain('"id":"alien"')
  const events = await eventsOf(id, '1.0')
  for (const type of ['retrieval', 'delta', 'citation', 'followups', 'usage', 'done']) {
    expect(events).toContain(`\nevent: ${type}\n`)
  }
})

test('a retry gets the answer of then', async () => {
  const { id, answer, followups } = facts.alien
  const question = {
    model: 'films',
    collections: ['films'],
    question: 'Who directed Alien?',
    followups: true,
  }
  const { text } = await post(question, 'landed-retry')
  expect(JSON.parse(text)).toMatchObject({ conversation_id: id, turn: 1, answer, followups })
})

test('a conversation goes on, through the protocol that began it and through another', async () => {
  const { id } = facts.alien
  const question = {
    model: 'films',
    collections: ['films'],
    question: 'Who directed it?',
    conversation_id: id,
  }
  expect(await json('POST', '/conversations', question)).toMatchObject({
    conversation_id: id,
    turn: 3,
    standalone: expect.stringContaining('Alien'),
  })
  const parameters = new URLSearchParams({
    q: 'Who directed Jaws?',
    query_by: 'embedding,title,plot',
    exclude_fields: 'embedding',
    conversation: 'true',
    conversation_model_id: 'films',
    conversation_id: id,
  })
  const { conversation } = await json('GET', `/collections/films/documents/search?${parameters}`)
  expect(conversation.conversation_history.conversation).toHaveLength(8)
  expect(conversation.answer).toContain('Steven Spielberg')
})

test('a call of a tool and its result are still part of what was said', async () => {
  const id = conversationOf(facts.tools)
  const question = { model: 'remote', collections: ['films'], question: 'And in Rome?', conversation_id: id }
  await json('POST', '/conversations', question)
  const prompts = llm.sent.map(promptOf).join('\n')
  expect(prompts).toContain('It is noon in Lisbon.')
  expect(prompts).toContain('clock')
})

test('a memory shows its messages, takes another one, and is answered from', async () => {
  const { id, posted, answered } = facts.memory
  const messages = async () => (await json('GET', `/_plugins/_ml/memory/${id}/messages`)).messages
  expect(await messages()).toMatchObject([
    { message_id: posted, input: 'Which film is the best?', response: 'Jaws is.', origin: 'by hand' },
    { message_id: answered.message_id, input: 'What hunts swimmers?', response: answered.answer },
  ])
  await json('PUT', `/_plugins/_ml/memory/message/${posted}`, { response: 'Heat is.' })
  await json('POST', `/_plugins/_ml/memory/${id}/messages`, { input: 'Why?', response: 'It is long.' })
  const { ext } = await json('POST', '/films/_search?search_pipeline=rag', {
    query: { match: { plot: 'robbers' } },
    ext: { generative_qa_parameters: { llm_question: 'Who chases the robbers?', memory_id: id } },
  })
  expect(ext.retrieval_augmented_generation.answer).toContain('detective')
  expect((await messages()).map(({ response }: { response: string }) => response)).toEqual([
    'Heat is.',
    answered.answer,
    'It is long.',
    ext.retrieval_augmented_generation.answer,
  ])
})

test('a turn that failed is no history, and documents are found as before', async () => {
  const found = await json('GET', '/collections/films/documents/search?q=chases&query_by=plot')
  expect(found.hits.map(({ document }: { document: { id: string } }) => document.id)).toEqual(['heat'])
  const history = await json('GET', '/collections/chats/documents/search?q=shark&query_by=message')
  expect(JSON.stringify(history.hits)).not.toContain('Who is the shark?')
})
