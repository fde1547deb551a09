/** What is not text in a conversation is kept where its text is, and read again from there. */
import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { contentOf, type Part, textOf } from '../../src/lib/parts'
import { foldTurn } from '../../src/turn/fold'
import { asking, eventsOf, messagesOf, openai, rowsOf, setStage, speaking, stub, take } from './stage'

beforeAll(() => setStage())
afterEach(() => vi.restoreAllMocks())

const call: Part = { type: 'tool_call', id: '1', name: 'crew', arguments: '{"ship":"Nostromo"}' }
const result: Part = { type: 'tool_result', id: '1', text: 'seven' }
const picture: Part = { type: 'image', media_type: 'image/png', data: 'AAAA', name: 'ship.png' }

it('the parts of a transcript are history: stored, read again, and in the prompt of the next question', async () => {
  const transcript = [
    { role: 'user' as const, content: [...contentOf('How many are they?'), picture] },
    { role: 'assistant' as const, content: [call, result, ...contentOf('They are seven.')] },
  ]
  const request = await asking('Who directed Alien?', { transcript })
  await take(request)
  const before = transcript.map(({ content }) => content)
  const contents = async () => (await messagesOf(request.conversationId)).map(({ content }) => content)
  expect((await contents()).slice(0, 2)).toEqual(before)
  await abortAllDurableObjects()
  expect((await contents()).slice(0, 2)).toEqual(before)
  expect(
    (
      await rowsOf(
        'SELECT message FROM messages WHERE conversation_id = ? ORDER BY rowid',
        request.conversationId,
      )
    ).map(({ message }) => message),
  ).toEqual((await contents()).map(textOf))

  const fetch = vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Ridley Scott.'))
  await take({ ...request, continues: true, model: openai, question: contentOf('And who wrote it?') })
  const prompts = fetch.mock.calls.map(([, init]) => String(init?.body)).join('\n')
  expect(prompts).toContain('[image: ship.png]')
  expect(prompts).toContain('[call: crew(')
  expect(prompts).toContain('[result: seven]')
})

it('a file counts for its turn: the log names it, and neither log nor history holds its text', async () => {
  const secret = 'The guest is called Kane.'
  const file: Part = { type: 'file', name: 'notes.txt', text: secret }
  const request = await asking('', { question: [...contentOf('Who directed Alien?'), file] })
  await take(request)
  const events = await eventsOf(request.conversationId)
  expect(foldTurn(events).question).toEqual([
    ...contentOf('Who directed Alien?'),
    { type: 'file', name: 'notes.txt' },
  ])
  expect((await messagesOf(request.conversationId))[0]!.content).toEqual(contentOf('Who directed Alien?'))
  const log = await runInDurableObject(stub(request.conversationId), (_, { storage: { sql } }) =>
    JSON.stringify(sql.exec('SELECT lines FROM log').toArray()),
  )
  // The prompt of the call, which a trace shows, is the one place that has it.
  expect(log.split(secret).length - 1).toBeLessThanOrEqual(1)
  expect(JSON.stringify(await messagesOf(request.conversationId))).not.toContain(secret)
})
