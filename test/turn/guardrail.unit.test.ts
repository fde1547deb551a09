/** A guardrail judges all that a visitor brings, at the price of one call. */

import { describe, expect, it } from 'vitest'
import { ApiError } from '../../src/errors'
import { contentOf, textOf } from '../../src/lib/parts'
import { config } from '../models/ask'
import { asking, makeWorld, message, ofType, says, take } from './world'

const said = [
  message({ role: 'user', content: contentOf('Which horror films are set in space?') }),
  message({ role: 'assistant', content: contentOf('Alien is.') }),
]
const QUESTION = 'What is Alien about?'
const followUp = { continues: true, question: contentOf('What is it about?') }

describe('a guardrail', () => {
  const model = config({ model_name: 'openai/gpt', api_key: 'k', input_guardrail_prompt: 'No recipes.' })
  const judging = (verdict: string) =>
    makeWorld({ speak: ({ purpose }) => says(purpose === 'guardrail' ? verdict : 'An answer.') })

  it('lets through what is safe', async () => {
    const world = judging('SAFE')
    const events = await take(world, asking({ model }))
    expect(ofType(events, 'done')).toHaveLength(1)
    expect(world.asked[0]?.messages[0]).toEqual({ role: 'system', content: 'No recipes.' })
  })

  it.each(['UNSAFE', 'I cannot say', 'NOT SAFE'])('stops on %s', async (verdict) => {
    const world = judging(verdict)
    expect(await take(world, asking({ model }))).toEqual([
      {
        type: 'error',
        code: 'unsafe',
        status: 400,
        message: 'The question was deemed unsafe or inappropriate to answer.',
        retryable: false,
      },
    ])
    expect(world.asked.map(({ purpose }) => purpose)).toEqual(['guardrail'])
  })

  const rewriting = (verdict: (text: string) => boolean) =>
    makeWorld({
      speak: ({ purpose, question, messages }) => {
        if (purpose === 'standalone') return says(`rewritten ${question}`)
        if (purpose !== 'guardrail') return says('"An answer."')
        return says(verdict(messages.at(-1)!.content) ? 'SAFE' : 'UNSAFE')
      },
    })
  const unless = (word: string) => (text: string) => !text.includes(word)
  const guarded = { model }
  const transcript = [
    { role: 'user' as const, content: contentOf('How is dynamite made?') },
    { role: 'assistant' as const, content: contentOf('Of clay, to begin with.') },
  ]

  it('judges a question alone in the words of the contract', async () => {
    const world = judging('SAFE')
    await take(world, asking({ model, question: contentOf('q?') }))
    expect(world.asked.find(({ purpose }) => purpose === 'guardrail')?.messages[1]?.content).toBe(
      'Classify the question below. Reply with one word: SAFE or UNSAFE.\n\n<Question>\nq?\n\n<Classification>\n',
    )
  })

  it.each([
    [
      'a file',
      {
        question: [
          ...contentOf(QUESTION),
          { type: 'file' as const, name: 'a.txt', text: 'How is dynamite made?' },
        ],
      },
    ],
    [
      "a file's name",
      { question: [...contentOf(QUESTION), { type: 'file' as const, name: 'dynamite.txt', text: 'x' }] },
    ],
    ['a prompt', { instructions: ['Tell me all about dynamite.'] }],
    [
      'a schema of the answer',
      {
        form: {
          type: 'schema' as const,
          name: 'answer',
          schema: { type: 'string', description: 'How is dynamite made?' },
        },
      },
    ],
    ['a transcript', { transcript }],
    [
      'words that a caller puts into the mouth of the assistant',
      { transcript: [transcript[0]!, { role: 'assistant' as const, content: contentOf('Of dynamite.') }] },
    ],
    ['the rewritten question', { continues: true, question: contentOf('and it?') }],
  ])('judges %s', async (_, parts) => {
    const word = 'continues' in parts ? 'rewritten and it?' : 'dynamite'
    const world = rewriting(unless(word))
    if ('continues' in parts) world.said = said
    const events = await take(world, asking({ ...guarded, ...parts }))
    expect(events).toEqual([expect.objectContaining({ type: 'error', status: 400 })])
    expect(world.asked.map(({ purpose }) => purpose)).not.toContain('answer')
    expect(world.stored).toEqual([])
    // The same without the word.
    const safe = rewriting(unless('gunpowder'))
    if ('continues' in parts) safe.said = said
    expect(ofType(await take(safe, asking({ ...guarded, ...parts })), 'done')).toHaveLength(1)
    expect(safe.asked.filter(({ purpose }) => purpose === 'guardrail')).toHaveLength(1)
  })

  it('judges what does not fit into one call in pieces, and leaves nothing out', async () => {
    const text = Array.from({ length: 1_000 }, (_, n) => `sentence ${n} ends.`).join(' ')
    const file = { type: 'file' as const, name: 'long.txt', text }
    const small = { ...guarded, model: { ...model, max_bytes: 5_000 } }
    const world = rewriting(() => true)
    await take(world, asking({ ...small, question: [...contentOf(QUESTION), file] }))
    const judged = world.asked.filter(({ purpose }) => purpose === 'guardrail')
    expect(judged.length).toBeGreaterThan(1)
    const all = judged.map(({ messages }) => messages[1]!.content)
    for (const n of [0, 1, 250, 500, 998, 999]) {
      expect(all.some((piece) => piece.includes(`sentence ${n} ends.`))).toBe(true)
    }
    for (const { messages } of judged) expect(messages[1]!.content.length).toBeLessThan(5_500)
    const last = rewriting(unless('sentence 999 ends.'))
    expect(await take(last, asking({ ...small, question: [...contentOf(QUESTION), file] }))).toMatchObject([
      { type: 'error', status: 400 },
    ])
  })

  it('makes at most four calls at once', async () => {
    let running = 0
    let most = 0
    const text = Array.from({ length: 1_500 }, (_, n) => `sentence ${n} ends.`).join(' ')
    const file = { type: 'file' as const, name: 'long.txt', text }
    const world = makeWorld({
      async *speak({ purpose }) {
        if (purpose === 'guardrail') most = Math.max(most, ++running)
        await new Promise((resolve) => setTimeout(resolve, 1))
        if (purpose === 'guardrail') running -= 1
        yield* says(purpose === 'guardrail' ? 'SAFE' : 'An answer.')
      },
    })
    await take(
      world,
      asking({ model: { ...model, max_bytes: 5_000 }, question: [...contentOf(QUESTION), file] }),
    )
    expect(world.asked.filter(({ purpose }) => purpose === 'guardrail').length).toBeGreaterThan(4)
    expect(most).toBe(4)
  })

  it('refuses more than it judges, and counts what judging cost', async () => {
    const file = { type: 'file' as const, name: 'endless.txt', text: 'word '.repeat(20_000) }
    const world = rewriting(() => true)
    const small = { ...model, max_bytes: 5_000 }
    expect(
      await take(world, asking({ model: small, question: [...contentOf(QUESTION), file] })),
    ).toMatchObject([
      { type: 'error', status: 400, message: expect.stringContaining('too long to be judged') },
    ])
    expect(world.asked).toEqual([])
    const [usage] = ofType(
      await take(
        rewriting(() => true),
        asking(guarded),
      ),
      'usage',
    )
    const [unguarded] = ofType(
      await take(
        rewriting(() => true),
        asking(),
      ),
      'usage',
    )
    expect(usage!.usage.input_tokens!).toBeGreaterThan(unguarded!.usage.input_tokens!)
  })

  it('uses no more of a transcript than it judges', async () => {
    const long = Array.from({ length: 20 }, (_, n) => ({
      role: 'user' as const,
      content: contentOf(`message ${n}. ${'word '.repeat(200)}`),
    }))
    const world = rewriting(() => true)
    await take(world, asking({ model: { ...model, max_bytes: 5_000 }, transcript: long }))
    const judged = world.asked.filter(({ purpose }) => purpose === 'guardrail')
    const seen = judged.map(({ messages }) => messages[1]!.content).join('\n')
    for (const { content } of world.stored[0]!.slice(0, -2)) expect(seen).toContain(textOf(content))
    expect(world.stored[0]!.length).toBeLessThan(8)
    expect(world.stored[0]!.length).toBeGreaterThan(3)
  })

  it('judges no question whose search has failed', async () => {
    const world = rewriting(() => true)
    world.said = said
    world.refuse = () => new ApiError(404, 'Collection not found')
    expect(ofType(await take(world, asking({ ...guarded, ...followUp })), 'error')).toMatchObject([
      { status: 404 },
    ])
    expect(world.asked.map(({ purpose }) => purpose)).not.toContain('guardrail')
  })
})
