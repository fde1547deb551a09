/** What each protocol says of a turn whose object is ended in the middle of it, between two flushes of its log. */
import { abortAllDurableObjects } from 'cloudflare:test'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { TurnLog } from '../../src/conversation/turn-log'
import { interrupted } from '../../src/turn/errors'
import { asked, send, setRemoteStage, spoken } from './stage'

const QUESTION = 'Who directed Alien?'

beforeAll(setRemoteStage)
afterEach(() => vi.restoreAllMocks())

/** A provider that begins to answer, and then says nothing more. */
function startsToAnswer() {
  let asked = 0
  vi.spyOn(globalThis, 'fetch').mockImplementation(async () => {
    asked += 1
    const chunk = `data: ${JSON.stringify({ choices: [{ delta: { content: 'half of it' } }] })}\n\n`
    const stream = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode(chunk)),
    })
    return new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
  })
  return () => asked
}

it.each(Object.entries(asked(QUESTION, 'remote', true)))(
  '%s ends in an error that says so',
  async (_, sent) => {
    startsToAnswer()
    const unwritten = vi.spyOn(TurnLog.prototype, 'append').mockReturnValue()
    const response = await send(sent)
    expect(response.status).toBe(200)
    const reader = response.body!.getReader()
    let text = ''
    const decoder = new TextDecoder()
    while (!text.includes('half of it')) text += decoder.decode((await reader.read()).value)
    await abortAllDurableObjects()
    unwritten.mockRestore()
    for (let read = await reader.read(); !read.done; read = await reader.read())
      text += decoder.decode(read.value)
    expect(text).toContain(interrupted().message)
    expect(text).not.toMatch(/Internal error/)
  },
)

it.each(Object.entries(asked(QUESTION, 'remote', true)))(
  '%s ends in such an error after pieces that the object wrote itself',
  async (_, sent) => {
    const say = spoken()
    say('alpha')
    const response = await send(sent)
    const reader = response.body!.getReader()
    const decoder = new TextDecoder()
    let text = ''
    for (const word of ['alpha', 'beta', 'gamma']) {
      if (word !== 'alpha') say(word)
      while (!text.includes(word)) text += decoder.decode((await reader.read()).value)
    }
    await abortAllDurableObjects()
    for (let read = await reader.read(); !read.done; read = await reader.read())
      text += decoder.decode(read.value)
    expect(text).toContain(interrupted().message)
    for (const word of ['alpha', 'beta', 'gamma']) expect(text.split(word)).toHaveLength(2)
  },
)

it('a chat that is resumed after that is told so as well, and not that there is nothing', async () => {
  startsToAnswer()
  const response = await send({
    path: '/ui/guide',
    body: { id: 'another-chat', messages: [{ role: 'user', content: QUESTION }] },
  })
  const reader = response.body!.getReader()
  let text = ''
  while (!text.includes('half of it')) text += new TextDecoder().decode((await reader.read()).value)
  await abortAllDurableObjects()
  const resumed = await send({ path: '/ui/guide/another-chat/stream' })
  expect(resumed.status).toBe(200)
  expect(await resumed.text()).toContain(interrupted().message)
  await reader.cancel().catch(() => {})
})

it('an answer in one piece is a 503 that says so', async () => {
  const calls = startsToAnswer()
  const answer = send(asked(QUESTION, 'remote', false).parley!)
  await expect.poll(calls).toBe(1)
  await abortAllDurableObjects()
  const response = await answer
  expect([response.status, await response.json()]).toEqual([
    503,
    { message: interrupted().message, code: 'interrupted' },
  ])
})
