/** An object waits for the headers of at most six replies. Its background work leaves some of them to searches. */
import { expect, it } from 'vitest'
import { drained, embedding, Provider, textsOf } from './embedding-stage'
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

it('a collection makes at most six calls at once, and searches go ahead of its background work', async () => {
  const provider = new Provider()
  const { object } = newObject()
  const fields = [{ name: 'title', type: 'string' }, embedding()]
  await object.create({ name: 'titles', fields }, 1)
  let running = 0
  let most = 0
  const begun: ('document' | 'query')[] = []
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  let held = true
  provider.before = async (call) => {
    const kind = textsOf(call).some((text) => text.startsWith('title number')) ? 'document' : 'query'
    begun.push(kind)
    most = Math.max(most, ++running)
    // Only what documents are embedded for waits. A search that had to wait behind it would never end.
    if (kind === 'document' && held) await ended
    else await scheduler.wait(5)
    running -= 1
  }
  await importAll(object, TITLES)
  await provider.called(4)
  const searches = await Promise.all(
    Array.from({ length: 12 }, (_, n) => object.search({ q: `asked ${n}`, query_by: 'e' })),
  )
  expect(searches.map(({ ok }) => ok)).toEqual(searches.map(() => true))
  expect(begun.filter((kind) => kind === 'document').length).toBe(4)
  held = false
  end()
  await drained(object)
  expect(most).toBeGreaterThan(4)
  expect(most).toBeLessThanOrEqual(6)
})
