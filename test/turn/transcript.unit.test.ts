import { describe, expect, it } from 'vitest'
import { contentOf, textOf } from '../../src/lib/parts'
import { fitTranscript, type TranscriptMessage } from '../../src/turn/look-back'
import { asking, makeWorld, message, NOW, ofType, take } from './world'

const saying = (...messages: string[]): TranscriptMessage[] =>
  messages.map((message, index) => ({
    role: index % 2 === 0 ? 'user' : 'assistant',
    content: contentOf(message),
  }))

it('is kept as it is, but for messages that say nothing', () => {
  expect(fitTranscript(saying('Hello.', ' ', 'Which films?'))).toEqual([
    { role: 'user', content: contentOf('Hello.') },
    { role: 'user', content: contentOf('Which films?') },
  ])
})

it('keeps its newest messages where there are too many', () => {
  const long = saying(...Array.from({ length: 150 }, (_, index) => `message ${index}`))
  expect(fitTranscript(long)).toEqual(long.slice(50))
})

it('keeps whole messages where they are too long together', () => {
  const long = saying('a'.repeat(60_000), 'b'.repeat(60_000), 'c'.repeat(30_000))
  expect(fitTranscript(long)).toEqual(long.slice(1))
})

describe('in a turn, a transcript', () => {
  const transcript = [
    { role: 'user' as const, content: contentOf('Which horror films are set in space?') },
    { role: 'assistant' as const, content: contentOf('Alien is.') },
  ]
  const dated = transcript.map((one) => ({ ...one, timestamp: NOW - 1 }))
  const turn = [
    { role: 'user', content: contentOf('What is it about?'), timestamp: NOW },
    { role: 'assistant', content: contentOf('Answer to alone: What is it about?'), timestamp: NOW },
  ]

  it('is what a first question follows up on, and becomes history with its answer', async () => {
    const world = makeWorld()
    const events = await take(world, asking({ transcript, question: contentOf('What is it about?') }))
    expect(world.asked[0]).toMatchObject({
      purpose: 'standalone',
      history: transcript.map(({ role, content }) => ({ role, content: textOf(content) })),
    })
    expect(world.searched).toContain('alone: What is it about?')
    expect(world.stored).toEqual([[...dated, ...turn]])
    expect(ofType(events, 'history')[0]?.messages).toEqual([...dated, ...turn])
  })

  it('is passed over where the conversation has a history of its own', async () => {
    const world = makeWorld({
      said: [
        message({ content: contentOf('Which film?') }),
        message({ role: 'assistant', content: contentOf('Heat.') }),
      ],
    })
    await take(
      world,
      asking({
        continues: true,
        question: contentOf('What is it about?'),
        transcript: [{ role: 'user', content: contentOf('Forget that.') }],
      }),
    )
    expect(world.asked[0]?.history.map(({ content }) => content)).toEqual(['Which film?', 'Heat.'])
    expect(world.stored).toEqual([turn])
  })
})
