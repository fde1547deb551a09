/**
 * What becomes of a question whose object is reset, as a deployment resets it, before anybody has read anything of its answer:
 * it runs again by itself.
 */
import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import * as conversations from '../../src/conversation/conversation-object'
import { interrupted } from '../../src/turn/errors'
import { hangFirstSearch, messagesOf, rowsOf, speaking, stub, usedSoFar } from '../conversation/stage'
import { asked, send, setRemoteStage } from './stage'

beforeAll(setRemoteStage)
afterEach(() => vi.restoreAllMocks())

/**
 * The first search never comes back. The turn begins it before its object has answered the Worker.
 * @returns resolves when the search was asked for, and the Worker has what it reads of the turn. Before that, the platform marks the
 *   error of a call as one to retry, but the test runner, which ends the objects here, does not.
 */
function hangingSearch(): () => Promise<void> {
  const searches = hangFirstSearch()
  let reads = 0
  const { conversationObject } = conversations
  vi.spyOn(conversations, 'conversationObject').mockImplementation((env, id) => {
    const object = conversationObject(env, id)
    return new Proxy(object, {
      get: (target, name: keyof typeof object) =>
        name === 'ask' || name === 'askNamed'
          ? async (...args: Parameters<typeof object.askNamed>) => {
              const reply = await target[name](...args)
              reads++
              return reply
            }
          : target[name],
    })
  })
  return () => expect.poll(() => searches() === 1 && reads > 0).toBe(true)
}

/** A provider that answers. @returns what it was asked */
function answering(): { stream: boolean; messages: unknown }[] {
  const calls: { stream: boolean; messages: unknown }[] = []
  const answer = speaking('Ridley Scott.')
  vi.spyOn(globalThis, 'fetch').mockImplementation((url, init) => {
    calls.push(JSON.parse(String(init?.body)))
    return answer(url, init)
  })
  return calls
}

const idle = (id: string) =>
  runInDurableObject(stub(id), (_, { storage }) => storage.sql.exec('SELECT 1').one())

it.each(Object.keys(asked('', 'remote', true)))(
  '%s is answered, by one turn that is charged once',
  async (wire) => {
    const waits = hangingSearch()
    const calls = answering()
    const before = await rowsOf('SELECT count(*) AS n FROM turns')
    const answer = send(asked(`Who directed Alien, for ${wire}?`, 'remote', true)[wire]!)
    await waits()
    await abortAllDurableObjects()
    const response = await answer
    const text = await response.text()
    expect([response.status, text]).toEqual([200, expect.stringContaining('Ridley Scott.')])
    expect(text).not.toContain(interrupted().message)
    expect(calls).toHaveLength(1)
    const recorded = async () => Number((await rowsOf('SELECT count(*) AS n FROM turns'))[0]!.n)
    await expect.poll(async () => (await recorded()) - Number(before[0]!.n)).toBe(1)
  },
)

it('in the conversation that the reader was told of', async () => {
  const waits = hangingSearch()
  answering()
  const answer = send(asked('Who directed Alien, once more?', 'remote', false).parley!)
  await waits()
  await abortAllDurableObjects()
  const body = (await (await answer).json()) as { conversation_id: string; answer: string }
  expect(body.answer).toBe('Ridley Scott.')
  await idle(body.conversation_id)
  expect(await messagesOf(body.conversation_id)).toHaveLength(2)
})

it('a follow-up whose rewriting was paid for is run again, and both are charged', async () => {
  const calls = answering()
  const first = (await (await send(asked('Who directed Heat?', 'remote', false).parley!)).json()) as {
    conversation_id: string
  }
  const id = first.conversation_id
  calls.length = 0
  const answer = speaking('Michael Mann.')
  vi.mocked(globalThis.fetch).mockImplementation(async (url, init) => {
    calls.push(JSON.parse(String(init?.body)))
    return calls.length === 1 ? new Promise<Response>(() => {}) : answer(url, init)
  })
  const before = await usedSoFar()
  const { path, body } = asked('And who is in the cast of that film?', 'remote', false).parley!
  const followUp = send({ path, body: { ...(body as object), conversation_id: id } })
  const spent = () =>
    runInDurableObject(
      stub(id),
      (_, { storage }) =>
        storage.sql.exec("SELECT 1 FROM turns WHERE status = 'running' AND spent IS NOT NULL").toArray()
          .length,
    )
  await expect.poll(spent, { timeout: 10_000 }).toBe(1)
  await abortAllDurableObjects()
  const response = await followUp
  expect([response.status, await response.json()]).toMatchObject([200, { answer: 'Michael Mann.' }])
  expect(calls).toHaveLength(3)
  const rewriting = JSON.stringify(calls[0]!.messages).length
  await expect.poll(async () => (await usedSoFar()).turns).toBe(before.turns + 1)
  expect((await usedSoFar()).tokens - before.tokens).toBeGreaterThan((1.8 * rewriting) / 4)
})
