/** The bounds of a second look: time, length, number of searches, and what of them reaches the prompt. */
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Delta, GenerationRequest } from '../../src/models/language-model'
import type { Retrieved } from '../../src/turn/retrieve'
import { documentsOf, queriesIn, ROUND_MS } from '../../src/turn/retrieve'
import { config } from '../models/ask'
import { asking, makeWorld, ofType, says, take } from './world'

afterEach(() => void vi.useRealTimers())

const looking = asking({ looksAgain: true })
const QUESTION = 'What is Alien about?'
const purposes = (asked: GenerationRequest[]) => asked.map(({ purpose }) => purpose)

describe('a second look', () => {
  it('takes two calls, and no search but the one for the question where that is enough', async () => {
    const world = makeWorld({ speak: ({ purpose }) => says(purpose === 'plan' ? 'NONE' : 'An answer.') })
    const events = await take(world, looking)
    expect(purposes(world.asked)).toEqual(['plan', 'plan', 'answer'])
    expect(world.searched).toEqual([QUESTION])
    expect(events.map(({ type }) => type).slice(0, 3)).toEqual(['question', 'results', 'retrieval'])
  })

  it('takes no longer than its time', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    let stopped = 0
    const world = makeWorld({
      speak: ({ purpose }, signal) =>
        purpose === 'plan'
          ? (async function* (): AsyncGenerator<Delta> {
              await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
              stopped += 1
              signal.throwIfAborted()
            })()
          : says('An answer.'),
    })
    const taking = take(world, looking)
    await vi.advanceTimersByTimeAsync(ROUND_MS)
    const events = await taking
    expect(events.at(-1)?.type).toBe('done')
    expect(stopped).toBe(1)
    expect(purposes(world.asked)).toEqual(['plan', 'answer'])
    expect(ofType(events, 'retrieval')[0]?.searches).toHaveLength(1)
  })

  it('stops a model that writes on and on', async () => {
    let written = 0
    const world = makeWorld({
      speak: ({ purpose }, signal) =>
        purpose === 'plan'
          ? (async function* (): AsyncGenerator<Delta> {
              for (; !signal.aborted; written += 1) yield { type: 'text', text: 'and so on, '.repeat(20) }
              signal.throwIfAborted()
            })()
          : says('An answer.'),
    })
    const events = await take(world, looking)
    expect(events.at(-1)?.type).toBe('done')
    expect(written).toBeLessThan(20)
    // What was sent and received is paid for.
    expect(world.finished[0]?.trace.calls[0]).toMatchObject({ purpose: 'plan', estimated: true })
    expect(world.searched).toEqual([QUESTION])
  })

  it('asks nothing where the built-in model is alone, and asks the rewriter where there is one', async () => {
    const model = config({ model_name: 'local/extractive' })
    const world = makeWorld({ speak: () => says('An answer.') })
    await take(world, { ...looking, model })
    expect(purposes(world.asked)).toEqual(['answer'])
    const helper = {
      name: 'openai/small',
      generate: vi.fn(async function* () {
        yield* says('NONE')
      }),
    }
    world.rewriter = helper
    await take(world, { ...looking, model })
    expect(helper.generate).toHaveBeenCalledTimes(2)
  })

  it('runs at most sixteen further searches for a reply, in all collections together', async () => {
    const [search] = looking.searches
    const reply = 'one?\ntwo?\nthree?\nfour?\nfive?'
    const run = async (collections: number) => {
      const world = makeWorld({
        speak: ({ purpose, messages }) =>
          says(purpose === 'plan' && !messages[0]!.content.includes('<Data>') ? reply : 'NONE'),
      })
      await take(world, { ...looking, searches: Array(collections).fill(search) })
      return world.searched.filter((q) => q !== QUESTION)
    }
    expect(await run(1)).toEqual(['one?', 'two?', 'three?', 'four?'])
    expect(await run(5)).toHaveLength(15)
    expect(new Set(await run(20))).toEqual(new Set(['one?']))
  })

  it('goes on where a further search fails', async () => {
    const world = makeWorld({
      speak: ({ purpose }) => says(purpose === 'plan' ? 'lost?' : 'An answer.'),
      refuse: (_, { q }) => {
        if (q === 'lost?') throw new Error('the object is gone')
        return undefined
      },
    })
    const events = await take(world, looking)
    expect(events.at(-1)?.type).toBe('done')
    expect(ofType(events, 'retrieval')[0]?.passages).toHaveLength(1)
  })
})

describe('the searches in a reply', () => {
  it.each([
    ['one?\ntwo?', ['one?', 'two?']],
    ['1. one?\n2) two?\n- three?\n• four?\n\n', ['one?', 'two?', 'three?', 'four?']],
    ['a\nb\nc\nd\ne', ['a', 'b', 'c', 'd']],
    ['3.5 litres in gallons', ['3.5 litres in gallons']],
    ['Same?\nsame?', ['Same?']],
    ['what was asked', []],
    ['NONE', []],
    ['None.', []],
    ['none', []],
    ['NONE. The data answers everything.', []],
    ['None type in Python', ['None type in Python']],
    [Array(9).fill('prose').join('\n'), []],
    ['x'.repeat(301), []],
    ['', []],
  ])('are its lines: %j', (reply, queries) => {
    expect(queriesIn(reply, ['What was asked'])).toEqual(queries)
  })
})

describe('the documents of all searches', () => {
  const found = (ids: string[], more: Partial<Retrieved['summary']> = {}): Retrieved => ({
    reply: { error: '', code: 0 },
    summary: { collection: 'films', limit: 4, ...more },
    documents: ids.map((id) => ({ collection: 'films', document: { id } })),
  })
  const idsOf = (retrieved: Retrieved[]) =>
    documentsOf(asking(), retrieved).map((list) => list.map(({ document }) => document.id))

  it('are each there once; half of the places are the question’s own', () => {
    const own = found(['a', 'b', 'c', 'd'])
    expect(idsOf([own])).toEqual([['a', 'b', 'c', 'd']])
    expect(idsOf([own, found(['x', 'a'], { q: 'x' }), found(['y', 'z'], { q: 'y' })])).toEqual([
      ['a', 'x', 'b', 'y'],
    ])
    expect(idsOf([found(['a']), found(['a', 'b', 'c', 'd', 'e'], { q: 'x' })])).toEqual([
      ['a', 'b', 'c', 'd'],
    ])
  })
})
