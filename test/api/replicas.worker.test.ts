/** Which rows may come from a replica of D1, which can be behind: those that may be a minute old anyway. */
import { env } from 'cloudflare:workers'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { forgetKeys } from '../../src/auth/authenticate'
import { noteWrite } from '../../src/db/client'
import { makeKey, QUESTION, setStage } from './parley/stage'
import { call, send } from './typesense/api'

const LATER_MS = 3_600_000
const realNow = Date.now
let later = 0
let key: string

beforeAll(async () => {
  await setStage()
  const guide = { model: 'm', collections: ['facts'] }
  expect((await call('PUT', '/assistants/guide', { body: guide }))[0]).toBe(200)
  key = await makeKey({ actions: ['assistants:ask', 'documents:search', 'conversations:create'] })
})
afterEach(() => vi.restoreAllMocks())

/** Empties the caches of the isolate, and watches where it reads. */
function watched() {
  later += LATER_MS
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + later)
  forgetKeys()
  const read = { nearby: '', primary: '' }
  const { withSession, prepare } = env.DB
  vi.spyOn(env.DB, 'prepare').mockImplementation((query) => {
    read.primary += `${query}\n`
    return prepare.call(env.DB, query)
  })
  vi.spyOn(env.DB, 'withSession').mockImplementation((bookmark) => {
    const session = withSession.call(env.DB, bookmark)
    const preparing = session.prepare.bind(session)
    session.prepare = (query: string) => {
      read.nearby += `${query}\n`
      return preparing(query)
    }
    return session
  })
  return read
}

const asking = async (path: string, body: object): Promise<void> => {
  const response = await send('POST', path, {
    key,
    body: { question: `${QUESTION} ${crypto.randomUUID()}`, ...body },
  })
  expect([response.status, await response.text()]).toEqual([200, expect.any(String)])
}
const question = { model: 'm', collections: ['facts'] }

it('models and collections are read nearby, keys and budgets never', async () => {
  const read = watched()
  await asking('/conversations', question)
  expect(read.primary).toMatch(/FROM api_keys /)
  expect(read.nearby).toMatch(/FROM conversation_models /)
  expect(read.nearby).not.toMatch(/FROM (api_keys|usage) /)
})

it('nor an assistant, nor what it names', async () => {
  const read = watched()
  await asking('/a/guide/conversations', {})
  expect(read.primary).toMatch(/FROM assistants /)
  expect(read.nearby).toBe('')
})

it('nothing is read nearby for a minute after a write of this isolate', async () => {
  const read = watched()
  noteWrite()
  await asking('/conversations', question)
  expect(read.nearby).toBe('')
  expect(read.primary).toMatch(/conversation_models/)
})

it.each([
  ['PUT', '/conversations/models/m', { max_bytes: 16_000 }],
  ['PATCH', '/collections/facts', { fields: [{ name: 'height', type: 'int32', optional: true }] }],
])('%s %s is such a write', async (method, path, body) => {
  const read = watched()
  expect((await call(method, path, { body }))[0]).toBe(200)
  read.nearby = ''
  await asking('/conversations', { ...question, collections: ['more'] })
  expect(read.nearby).toBe('')
})
