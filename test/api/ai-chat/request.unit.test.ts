import { describe, expect, it } from 'vitest'
import { readChat } from '../../../src/api/ai-chat/request'
import { contentOf } from '../../../src/lib/parts'

const HI = { role: 'user', content: 'Hi' }
const chat = (body: unknown) => readChat(body, 'unnamed')

describe('a request', () => {
  it('asks the last message, and remembers the others', () => {
    const messages = [
      HI,
      { role: 'assistant', content: 'Hello.' },
      { role: 'system', content: 'Be brief.' },
      { role: 'user', content: 'Why?', files: [] },
    ]
    expect(chat({ messages, colour: 'red' })).toEqual({
      question: 'Why?',
      transcript: [
        { role: 'user', content: contentOf('Hi') },
        { role: 'assistant', content: contentOf('Hello.') },
      ],
      instructions: ['Be brief.'],
      overrides: {},
      stream: false,
      contextSession: false,
    })
  })

  it.each([
    [{ session_state: 's' }, 's'],
    [{ sessionState: 's' }, 's'],
    [{ sessionState: { conversation_id: 's' } }, 's'],
    [{ sessionState: null, session_state: 's' }, 's'],
    [{ context: { sessionId: 's', userId: 'u' } }, 's'],
    [{ session_state: null }, undefined],
    [{ session_state: '' }, undefined],
    [{ context: { sessionId: '' } }, undefined],
    // What is no id of ours is the id of no conversation, and so unknown.
    [{ session_state: 5 }, 'unknown'],
    [{ session_state: { turn: 1 } }, 'unknown'],
    [{ session_state: 'x'.repeat(513) }, 'unknown'],
  ])('goes on with the session of %j', (parts, session) => {
    expect(chat({ messages: [HI], ...parts }).session).toBe(session)
  })

  it('has its overrides in its context, and the oldest clients in the context itself', () => {
    const context = { approach: 'rrr', top: 3, overrides: { top: 2 } }
    expect(chat({ messages: [HI], context }).overrides).toEqual({ top: 2 })
    expect(readChat({ messages: [HI], context }, 'azure-js').overrides).toMatchObject({
      approach: 'rrr',
      top: 2,
    })
    expect(chat({ messages: [HI], context: null }).overrides).toEqual({})
    expect(chat({ messages: [HI], context: { overrides: null } }).overrides).toEqual({})
  })

  it('names its user in the context, where clients do', () => {
    expect(chat({ messages: [HI], context: { userId: 'ann' } })).toMatchObject({
      user: 'ann',
      contextSession: true,
    })
    for (const userId of ['', 5, 'x'.repeat(257)]) {
      expect(chat({ messages: [HI], context: { userId } })).not.toHaveProperty('user')
    }
  })

  it.each([{ history: [{ user: 'Hi' }], approach: 'rrr' }, { question: 'Hi' }, { approach: 'rtr' }])(
    'of before the protocol is told which version asks: %j',
    (body) => expect(() => chat(body)).toThrow('Take a version of 2024 or later'),
  )

  it.each([
    ['', [], undefined],
    ['', 'hi', undefined],
    ['', null, undefined],
    ['11', { messages: [] }, 'messages'],
    ['12', {}, 'messages'],
    ['12', { messages: 'hi' }, 'messages'],
    ['12', { messages: [{}] }, 'messages[0].role'],
    ['12', { messages: [null] }, 'messages[0].role'],
    ['12', { messages: [{ role: 'user', content: 5 }] }, 'messages[0].content'],
    ['12', { messages: [{ role: 'user', content: [{ type: 'text', text: 'hi' }] }] }, 'messages[0].content'],
    ['12', { messages: [{ role: 'user', content: '   ' }] }, 'messages[0].content'],
    ['12', { messages: [HI, { role: 'tool', content: 'x' }, HI] }, 'messages[1].role'],
    ['13', { messages: [HI, { role: 'assistant', content: 'Hello.' }] }, 'messages[1].role'],
    ['13', { messages: [HI, { role: 'system', content: 'x' }] }, 'messages[1].role'],
    ['', { messages: [{ ...HI, content: 'x'.repeat(100_001) }] }, 'messages[0].content'],
    ['', { messages: Array(1_001).fill(HI) }, 'messages'],
    ['', { messages: [{ ...HI, files: [{}] }] }, 'messages[0].files'],
    ['', { messages: [HI], context: 'x' }, 'context'],
    ['', { messages: [HI], context: [] }, 'context'],
    ['', { messages: [HI], context: { overrides: 5 } }, 'context.overrides'],
  ])('is refused with the place of its fault (case %s): %j', (_, body, field) => {
    let thrown: unknown
    try {
      chat(body)
    } catch (error) {
      thrown = error
    }
    expect(thrown).toMatchObject({ status: 400, type: 'bad_request', ...(field !== undefined && { field }) })
    if (field !== undefined) expect((thrown as Error).message).toContain(`\`${field}\``)
  })
})
