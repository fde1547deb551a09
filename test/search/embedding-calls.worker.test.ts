/** An object waits for the headers of at most six replies. Its background work leaves some of them to searches. */
import { expect, it } from 'vitest'
import { drained, embedding, Provider } from './embedding-stage'
import { importAll, newObject } from './object'

const TITLES = Array.from({ length: 700 }, (_, n) => ({ id: `${n}`, title: `title number ${n}` }))

it.each([1, 2, 6])('a collection makes at most four calls at once, with %d fields', async (count) => {
  const provider = new Provider()
  let running = 0
  let most = 0
  provider.before = async () => {
    most = Math.max(most, ++running)
    // Lets all calls begin that may begin.
    await scheduler.wait(5)
    running -= 1
  }
  const { object } = newObject()
  const fields = Array.from({ length: count }, (_, n) => ({ ...embedding(), name: `e${n}` }))
  await object.create({ name: 'titles', fields: [{ name: 'title', type: 'string' }, ...fields] }, 1)
  most = 0
  await importAll(object, TITLES)
  await drained(object)
  expect(provider.ai.calls.length).toBeGreaterThanOrEqual(7 * count)
  expect(most).toBeGreaterThanOrEqual(1)
  expect(most).toBeLessThanOrEqual(4)
})
