/**
 * What each protocol says of a turn whose object is reset in the middle of it, between two flushes of its log. The turn runs again: who
 * has read of its first answer is told to ask again, and everybody else gets the second one.
 */
import { abortAllDurableObjects } from 'cloudflare:test'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { TurnLog } from '../../src/conversation/turn-log'
import { interrupted } from '../../src/turn/errors'
import { speaking } from '../conversation/stage'
import { asked, send, setRemoteStage, spoken } from './stage'

const QUESTION = 'Who directed Alien?'

beforeAll(setRemoteStage)
afterEach(() => vi.restoreAllMocks())

/** A provider that begins to answer, and then says nothing more. It answers whoever asks again. */
function startsToAnswer() {
  let asked = 0
  const answer = speaking('The second answer.')
  vi.spyOn(console, 'error').mockReturnValue()
  vi.spyOn(globalThis, 'fetch').mockImplementation(async (url, init) => {
    asked += 1
    if (asked > 1) return answer(url, init)
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
    expect(text).not.toMatch(/Internal error|The second answer/)
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
    // The turn runs again, and says something else.
    say('omega')
    for (let read = await reader.read(); !read.done; read = await reader.read())
      text += decoder.decode(read.value)
    expect(text).toContain(interrupted().message)
    expect(text).not.toContain('omega')
    for (const word of ['alpha', 'beta', 'gamma']) expect(text.split(word)).toHaveLength(2)
  },
)

it('a chat that is resumed after that gets the answer of the turn, which runs again', async () => {
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
  const whole = await resumed.text()
  expect(whole).toContain('The second answer.')
  expect(whole).not.toMatch(/half of it|interrupted/)
  await reader.cancel().catch(() => {})
})

it('an answer in one piece is the one of the second run', async () => {
  const calls = startsToAnswer()
  const answer = send(asked(QUESTION, 'remote', false).parley!)
  await expect.poll(calls).toBe(1)
  await abortAllDurableObjects()
  const response = await answer
  expect([response.status, await response.json()]).toMatchObject([200, { answer: 'The second answer.' }])
  expect(calls()).toBe(2)
})
