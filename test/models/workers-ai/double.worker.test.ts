import { runInDurableObject } from 'cloudflare:test'
import { env } from 'cloudflare:workers'
import { expect, it } from 'vitest'
import { bindWorkersAi } from './bind'
import { WorkersAi } from './workers-ai'

it('stands for the binding in the Worker and in its Durable Objects', async () => {
  const ai = new WorkersAi()
  bindWorkersAi(ai)
  const object = env.COLLECTION.getByName('any')
  const seen = await runInDurableObject(object, async (instance) => {
    const bound = (instance as unknown as { env: Cloudflare.Env }).env
    const reply = await bound.AI.run('@cf/baai/bge-m3', { text: 'a' })
    return { backend: bound.AI_BACKEND, reply }
  })
  expect(seen).toMatchObject({ backend: 'workers-ai', reply: { shape: [1, 1024] } })
  expect(ai.calls).toHaveLength(1)
})
