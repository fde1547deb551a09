/** Follow-ups to an assistant: how they are rewritten, and what the prompt for the answer holds of earlier turns. */
import { describe, expect, it } from 'vitest'
import { contentOf } from '../../src/lib/parts'
import { questionIn } from '../../src/turn/retrieve'
import { config } from '../models/ask'
import { asking, makeWorld, message, NOW, says, take } from './world'

const said = [
  message({ role: 'user', content: contentOf('Which horror films are set in space?') }),
  message({ role: 'assistant', content: contentOf('Alien is.') }),
]
const followUp = { continues: true, question: contentOf('What is it about?') }

describe('a follow-up', () => {
  it('of an assistant is answered with what was said before, and with both wordings', async () => {
    const world = makeWorld({
      said,
      speak: ({ purpose, question }) =>
        says(purpose === 'standalone' ? 'Standalone question: "What is Alien about?"' : question),
    })
    const events = await take(world, asking({ ...followUp, assistant: 'guide' }))
    expect(events[0]).toMatchObject({ standalone: 'What is Alien about?' })
    const [standalone, answer] = world.asked
    expect(standalone?.messages[0]?.content).toMatch(
      /Reply with that question alone, in the language of the follow-up/,
    )
    expect(answer?.messages.slice(0, -1)).toEqual([
      { role: 'user', content: 'Which horror films are set in space?' },
      { role: 'assistant', content: 'Alien is.' },
    ])
    expect(answer?.messages.at(-1)?.content).toContain(
      '<Question>\nWhat is Alien about?\n(asked as: What is it about?)\n\n<Answer>',
    )
    // A model of Typesense's wire gets its own prompt alone.
    const plain = makeWorld({ said })
    await take(plain, asking(followUp))
    expect(plain.asked[1]?.messages).toHaveLength(1)
    expect(plain.asked[1]?.messages[0]?.content).not.toContain('asked as')
  })

  it('leaves room for documents beside what was said, and forgets the oldest turns first', async () => {
    const long = Array.from({ length: 10 }, (_, n) => [
      message({ content: contentOf(`Question ${n}?`), timestamp: NOW - 100 + n }),
      message({
        role: 'assistant',
        content: contentOf(`${'word '.repeat(150)}${n}`),
        timestamp: NOW - 100 + n,
      }),
    ]).flat()
    const world = makeWorld({ said: long })
    const model = config({ model_name: 'openai/gpt', api_key: 'k', max_bytes: 8_192 })
    await take(world, asking({ ...followUp, model, assistant: 'guide' }))
    const prompt = world.asked.at(-1)!.messages
    const bytes = prompt.reduce((sum, { content }) => sum + new TextEncoder().encode(content).length, 0)
    expect(prompt.map(({ content }) => content.slice(0, 10))).toEqual([
      'Question 8',
      'word word ',
      'Question 9',
      'word word ',
      '<Data>\n[\n{',
    ])
    expect(bytes).toBeLessThanOrEqual(8_192)
  })

  it.each([
    ['Which films are set in space?', undefined],
    ['"Which films are set in space?"', 'Which films are set in space?'],
    ['**Standalone question:** Which films are set in space?', 'Which films are set in space?'],
    ['<Standalone question> Which films are set in space?', 'Which films are set in space?'],
    ['宇宙を舞台にした映画は？', undefined],
    ['films set in space', undefined],
    ['1. Which films?\n2. Which books?', 'And in space?'],
    ['Alien is set in space. It was made in 1979.', 'And in space?'],
    [`Which films are set in space ${'and which of them '.repeat(30)}?`, 'And in space?'],
    ['', 'And in space?'],
  ])('a reply to the rewriting prompt that is no question is not searched: %j', (reply, expected = reply) => {
    expect(questionIn(reply, 'And in space?', 'Which films are set on Mars? And in space?')).toBe(expected)
  })
})
