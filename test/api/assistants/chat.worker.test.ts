/** Chats by the names that their clients give them. */
import { createExecutionContext } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { beforeAll, expect, it } from 'vitest'
import { app } from '../../../src/app'
import { QUESTION, setStage } from '../parley/stage'
import { ADMIN_KEY, call } from '../typesense/api'

beforeAll(async () => {
  await setStage()
  const body = { model: 'm', collections: ['facts'] }
  expect((await call('PUT', '/assistants/guide', { body }))[0]).toBe(200)
})

it('goes on after a change of the ENCRYPTION_KEY', async () => {
  const conversationUnder = async (more: Partial<Cloudflare.Env>): Promise<string | null> => {
    const request = new Request('http://parley/ui/guide', {
      method: 'POST',
      headers: { 'x-typesense-api-key': ADMIN_KEY },
      body: JSON.stringify({ id: 'a-name-of-its-own', message: { role: 'user', content: QUESTION } }),
    })
    const response = await app.fetch(request, { ...env, ...more }, createExecutionContext())
    await response.text()
    return response.headers.get('x-parley-conversation-id')
  }
  const id = await conversationUnder({})
  const changed = { ENCRYPTION_KEY: 'another key for tests', ENCRYPTION_KEY_PREVIOUS: env.ENCRYPTION_KEY! }
  expect(await conversationUnder(changed)).toBe(id)
  expect((await call('GET', `/conversations/${id}`))[1].turns).toHaveLength(2)
})
