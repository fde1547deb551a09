/** Turns whose model does not end, or does not write the question that it should. */

import { afterEach, describe, expect, it, vi } from 'vitest'
import { contentOf, textOf } from '../../src/lib/parts'
import type { Delta } from '../../src/models/language-model'
import { ProviderError } from '../../src/models/provider-error'
import { asking, makeWorld, message, ofType, says, take } from './world'

const said = [
  message({ role: 'user', content: contentOf('Which horror films are set in space?') }),
  message({ role: 'assistant', content: contentOf('Alien is.') }),
]
const followUp = { continues: true, question: contentOf('What is it about?') }

describe('a turn whose model never ends', () => {
  afterEach(() => void vi.useRealTimers())

  it('ends by itself, and is no history', async () => {
    vi.useFakeTimers()
    const world = makeWorld({
      async *speak(_, signal) {
        while (!signal.aborted) {
          yield { type: 'text', text: 'and ' }
          await new Promise((resolve) => setTimeout(resolve, 10_000))
        }
        throw signal.reason
      },
    })
    const taking = take(world, asking())
    await vi.advanceTimersByTimeAsync(1_850_000)
    expect(world.asked).toHaveLength(1)
    await vi.advanceTimersByTimeAsync(21_000)
    expect((await taking).at(-1)).toEqual({
      type: 'error',
      code: 'over_time',
      status: 400,
      message: 'The turn took longer than the maximum of 1860 seconds.',
      retryable: false,
    })
    expect(world.stored).toEqual([])
  })
})

describe('a rewriting that is none', () => {
  const finishing = (reason: 'length' | 'content_filter'): Delta[] => [
    { type: 'text', text: 'Which film by Ridley' },
    { type: 'finish', reason },
  ]
  const nothing = function* (): Generator<Delta> {
    yield { type: 'usage', inputTokens: 30, outputTokens: 8 }
    throw new ProviderError(400, 'Got malformed response from OpenAI API.', { upstream: 200, fault: 'empty' })
  }

  it.each<[string, () => Iterable<Delta>]>([
    ['cut for its length', () => finishing('length')],
    ['cut by a filter', () => finishing('content_filter')],
    ['empty', nothing],
    ['white space', () => says(' \n')],
  ])('(%s) leaves the question as it is', async (_, rewriting) => {
    const world = makeWorld({
      said,
      async *speak({ purpose, question }) {
        if (purpose === 'standalone') yield* rewriting()
        else yield* says(`Answer to ${question}`)
      },
    })
    const events = await take(world, asking(followUp))
    expect(world.searched).toEqual([textOf(followUp.question)])
    expect(ofType(events, 'question')[0]).not.toHaveProperty('standalone')
    expect(events.at(-1)).toMatchObject({
      type: 'done',
      answer: contentOf(`Answer to ${textOf(followUp.question)}`),
    })
    expect(world.spent[0]!.outputTokens).toBeGreaterThan(5)
  })

  it('through a fault of the provider ends the turn', async () => {
    const world = makeWorld({
      said,
      async *speak({ purpose }) {
        if (purpose === 'standalone') throw new ProviderError(400, 'down', { fault: 'busy' })
        yield* says('Answer')
      },
    })
    expect((await take(world, asking(followUp))).at(-1)).toMatchObject({ type: 'error', message: 'down' })
  })
})
