/**
 * What an asker sees of rows that their isolate holds in memory. A change made in this isolate counts for the next question.
 * A change made in another one (here: in D1, past the caches) counts at the latest after a minute, and after five seconds
 * where it says who may ask.
 */
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, beforeEach, expect, it, vi } from 'vitest'
import { forgetKeys } from '../../src/auth/authenticate'
import { HELD_MS } from '../../src/db/client'
import { ask, makeKey, QUESTION, setStage } from './parley/stage'
import { call } from './typesense/api'

const model = (name: string, more: Record<string, unknown> = {}) => ({
  model_name: `openai/${name}`,
  api_key: 'sk-1',
  openai_url: 'https://llm.test',
  history_collection: 'history',
  max_bytes: 16_384,
  ...more,
})

const realNow = Date.now
let later = 0

/** Lets time pass for caches. */
function pass(ms: number): void {
  later += ms
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + later)
}

/** Each answer names the model that was asked and the documents that it got. */
function answerWithModel(): void {
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (_, init) => {
    const { stream, model, messages } = JSON.parse(String(init?.body))
    const said = `${model} ${/\d+ metres/.exec(JSON.stringify(messages))?.[0] ?? 'nothing'}`
    if (!stream) return Response.json({ choices: [{ message: { content: said }, finish_reason: 'stop' }] })
    const event = JSON.stringify({ choices: [{ delta: { content: said } }] })
    return new Response(`data: ${event}\n\ndata: [DONE]\n\n`, {
      headers: { 'content-type': 'text/event-stream' },
    })
  })
}

/** Asks what nobody has asked. @returns the status, and the answer or the code of the error */
async function answerTo(path = '/conversations', key?: string): Promise<[number, string]> {
  const question = `${QUESTION} ${crypto.randomUUID()}`
  const named = path === '/conversations' && { model: 'm1', collections: ['towers'] }
  const [status, body] = await call('POST', path, { ...(key && { key }), body: { question, ...named } })
  return [status, status === 200 ? body.answer : body.code]
}

/** Asks until a renewal behind a question has arrived. */
const answers = (expected: string) => expect.poll(async () => (await answerTo())[1]).toBe(expected)

async function makeTowers(name: string, height: string): Promise<void> {
  await call('POST', '/collections', { body: { name, fields: [{ name: 'text', type: 'string' }] } })
  const body = { id: '0', text: `The Eiffel Tower is ${height} metres high.` }
  expect((await call('POST', `/collections/${name}/documents`, { body }))[0]).toBe(201)
}

beforeAll(async () => {
  await setStage()
  answerWithModel()
  await makeTowers('towers', '330')
  expect((await call('POST', '/conversations/models', { body: { id: 'm1', ...model('first') } }))[0]).toBe(
    201,
  )
})
beforeEach(() => answerWithModel())
afterEach(() => vi.restoreAllMocks())

it('a model that was changed here is asked at once', async () => {
  expect(await answerTo()).toEqual([200, 'first 330 metres'])
  expect((await call('PUT', '/conversations/models/m1', { body: model('second') }))[0]).toBe(200)
  expect(await answerTo()).toEqual([200, 'second 330 metres'])
})

/** Changes a model as another isolate does. */
const changeElsewhere = (name: string) =>
  env.DB.prepare(
    "UPDATE conversation_models SET config = json_set(config, '$.model_name', ?) WHERE id = 'm1'",
  )
    .bind(`openai/${name}`)
    .run()

it('one that was changed elsewhere is asked after one more question, or after a minute', async () => {
  expect((await answerTo())[0]).toBe(200)
  await changeElsewhere('third')
  pass(10_000)
  expect(await answerTo()).toEqual([200, 'second 330 metres'])
  await answers('third 330 metres')
  await changeElsewhere('fourth')
  pass(HELD_MS)
  expect(await answerTo()).toEqual([200, 'fourth 330 metres'])
})

it('an assistant that was deleted elsewhere is refused after five seconds, and so is a key', async () => {
  const assistant = { model: 'm1', collections: ['towers'] }
  expect((await call('PUT', '/assistants/gone', { body: assistant }))[0]).toBe(200)
  const key = await makeKey({ actions: ['assistants:ask'], limits: { assistant: 'gone' } })
  const path = '/a/gone/conversations'
  expect((await answerTo(path, key))[0]).toBe(200)
  await env.DB.prepare("DELETE FROM assistants WHERE name = 'gone'").run()
  pass(5_000)
  expect(await answerTo(path, key)).toEqual([404, 'unknown_assistant'])
  await call('PUT', '/assistants/gone', { body: assistant })
  expect((await answerTo(path, key))[0]).toBe(200)
  await env.DB.prepare('DELETE FROM api_keys WHERE actions = \'["assistants:ask"]\'').run()
  pass(5_000)
  expect((await answerTo(path, key))[0]).toBe(401)
})

it('an assistant that was deleted here is refused at once', async () => {
  await call('PUT', '/assistants/brief', { body: { model: 'm1', collections: ['towers'] } })
  expect((await answerTo('/a/brief/conversations'))[0]).toBe(200)
  await call('DELETE', '/assistants/brief')
  expect(await answerTo('/a/brief/conversations')).toEqual([404, 'unknown_assistant'])
})

it('a collection that was made again elsewhere is searched at once', async () => {
  expect(await answerTo()).toEqual([200, expect.stringContaining('330 metres')])
  const held = await env.DB.prepare("SELECT * FROM collections WHERE name = 'towers'").first()
  await makeTowers('higher', '331')
  // As another isolate leaves it: the old object is empty, and the name leads to another.
  await call('DELETE', '/collections/towers')
  await env.DB.prepare("UPDATE collections SET name = 'towers' WHERE name = 'higher'").run()
  const { findForQuestion, forgetNames, readingNames } = await import('../../src/registry/collections')
  forgetNames()
  const { name, object_id: objectId, engine, created_at: createdAt, outline } = held as Record<string, string>
  readingNames()('towers', { name, objectId, engine, createdAt, outline } as never)
  expect((await findForQuestion(env, 'towers')).objectId).toBe(objectId)
  expect(await answerTo()).toEqual([200, expect.stringContaining('331 metres')])
})

it('a field that was added here is searched at once', async () => {
  const fields = [{ name: 'note', type: 'string', optional: true }]
  expect((await call('PATCH', '/collections/towers', { body: { fields } }))[0]).toBe(200)
  const row = await env.DB.prepare("SELECT outline FROM collections WHERE name = 'towers'").first<string>(
    'outline',
  )
  expect(JSON.parse(row!).texts).toEqual(['text', 'note'])
  const body = { id: '1', text: 'Another one.', note: 'The Zugspitze is 2962 metres high.' }
  await call('POST', '/collections/towers/documents', { body })
  const question = 'How high is the Zugspitze?'
  const [, found] = await ask({ question, model: 'm1', collections: ['towers'] })
  expect(found.answer).toMatch(/2962 metres$/)
})

it('a field that an import added reaches the registry, and a collection without an outline is asked for it', async () => {
  await call('POST', '/collections', { body: { name: 'loose', fields: [{ name: '.*', type: 'auto' }] } })
  await call('POST', '/collections/loose/documents', { body: { id: '0', height: 'It is 330 metres.' } })
  const outline = () =>
    env.DB.prepare("SELECT outline FROM collections WHERE name = 'loose'").first<string>('outline')
  await expect.poll(async () => JSON.parse((await outline())!).texts).toEqual(['height'])
  await env.DB.prepare("UPDATE collections SET outline = NULL WHERE name = 'loose'").run()
  pass(HELD_MS)
  const asked = { question: 'How many metres?', model: 'm1', collections: ['loose'] }
  const [status, { answer }] = await ask(asked)
  expect([status, answer]).toEqual([200, expect.stringContaining('330 metres')])
})

it('a key that is not known reads nothing else', async () => {
  forgetKeys()
  const path = '/a/gone/conversations'
  expect((await answerTo(path, 'unknown'))[0]).toBe(401)
  const batch = vi.spyOn(Object.getPrototypeOf(env.DB), 'batch')
  expect((await answerTo(path, 'unknown'))[0]).toBe(401)
  expect(batch).not.toHaveBeenCalled()
})

it('searches fields that documents brought after the collection was last looked up', async () => {
  await call('POST', '/collections', { body: { name: 'any', fields: [{ name: '.*', type: 'auto' }] } })
  const asked = () =>
    ask({ question: `${QUESTION} ${crypto.randomUUID()}`, model: 'm1', collections: ['any'] })
  // There is nothing to search yet, and that is held.
  expect((await asked())[0]).toBe(400)
  const body = { id: '0', text: 'The Eiffel Tower is 330 metres high.' }
  expect((await call('POST', '/collections/any/documents', { body }))[0]).toBe(201)
  pass(4_000)
  const [status, reply] = await asked()
  expect([status, reply.answer]).toEqual([200, expect.stringContaining('330 metres')])
})
