/** Calls of tools within a turn: what runs, what waits, what the model is told, and what is stored. */
import { afterEach, describe, expect, it, vi } from 'vitest'
import { contentOf, type Part, textOf } from '../../src/lib/parts'
import type { Delta, GenerationRequest } from '../../src/models/language-model'
import type { Tool } from '../../src/tools/tool'
import type { AskRequest } from '../../src/turn/request'
import { contentWith, waitingIn } from '../../src/turn/tools'
import { config } from '../models/ask'
import { asking, makeWorld, message, ofType, says, take } from './world'

afterEach(() => void vi.useRealTimers())

const tool = (parts: Partial<Tool> = {}): Tool => ({
  name: 'orders',
  title: 'Look up an order',
  description: 'Looks up an order.',
  parameters: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
  leave: 'never',
  runs: 'server',
  readOnly: true,
  source: { tool: 'orders' },
  ...parts,
})
const BOOK = tool({ name: 'book', title: 'Book a table', leave: 'each', readOnly: undefined! })
const SEARCH = tool({ name: 'search', runs: 'search', parameters: { type: 'object' } })

const call = (name: string, given: object = { id: '7' }, id = `call-${name}`): Delta => ({
  type: 'call',
  call: { type: 'tool_call', id, name, arguments: JSON.stringify(given) },
})
const calls = (...deltas: Delta[]): Delta[] => [...deltas, { type: 'finish', reason: 'stop' }]

/** A model that says one thing after the other. */
const script = (...replies: Delta[][]) => {
  const left = [...replies]
  return () => left.shift() ?? says('The end.')
}
const typesOf = (content: readonly Part[]) => content.map(({ type }) => type)
const using = (tools: Tool[], more: Partial<AskRequest> = {}) => asking({ tools, asks: true, ...more })
const resultsIn = ({ messages }: GenerationRequest) => messages.flatMap(({ results = [] }) => results)

describe('a tool that needs no leave', () => {
  it('runs, and the model answers from what it replied', async () => {
    const world = makeWorld({
      speak: script(calls({ type: 'text', text: 'Let me see. ' }, call('orders')), says('It was sent.')),
      tool: async () => ({ text: 'order 7: sent' }),
    })
    const events = await take(world, using([tool()]))
    expect(events.map(({ type }) => type)).toEqual([
      ...['question', 'results', 'retrieval', 'delta', 'part', 'part', 'delta', 'usage', 'history', 'done'],
    ])
    expect(world.asked[0]?.tools).toEqual([
      { name: 'orders', description: 'Looks up an order.', parameters: tool().parameters },
    ])
    expect(resultsIn(world.asked[1]!)).toEqual([
      { type: 'tool_result', id: 'call-orders', text: 'order 7: sent' },
    ])
    const [done] = ofType(events, 'done')
    expect(textOf(done!.answer)).toBe('Let me see. It was sent.')
    expect(typesOf(done!.answer)).toEqual(['text', 'tool_call', 'tool_result', 'text'])
    expect(done?.finish_reason).toBe('stop')
    // The history and the record have it as it was.
    expect(world.stored[0]?.[1]?.content).toEqual(done?.answer)
    expect(world.finished[0]).toMatchObject({
      answer: 'Let me see. It was sent.',
      calls: [{ name: 'orders', title: 'Look up an order', result: 'order 7: sent' }],
    })
    expect(world.finished[0]?.trace.steps).toHaveLength(2)
    expect(world.finished[0]?.trace.calls.map(({ tools }) => tools)).toEqual([['orders'], undefined])
  })

  it('supports what the answer says of its reply, also of one in JSON', async () => {
    const support = async (text: string) => {
      const said = 'Order 4711 was handed to the courier Hermes on Monday.'
      const world = makeWorld({
        speak: script(calls(call('orders')), says(said)),
        tool: async () => ({ text }),
      })
      return ofType(await take(world, using([tool()])), 'done')[0]?.support?.map((each) => each.support)
    }
    expect(await support('Order 4711 was handed to the courier Hermes on Monday.')).toEqual(['supported'])
    const state = 'The order was handed to the courier Hermes on Monday.'
    expect(await support(JSON.stringify({ order: { number: 'Order 4711', state } }))).toEqual(['supported'])
    expect(await support('{"state": "unknown"}')).toEqual(['not_found'])
  })

  it('runs beside others, and what fails is told to the model', async () => {
    const world = makeWorld({
      speak: script(
        calls(
          call('orders', { id: '1' }, 'a'),
          call('orders', { id: 2 }, 'b'),
          call('nothing', {}, 'c'),
          call('orders', { id: '4' }, 'd'),
        ),
        says('Fine.'),
      ),
      tool: async ({ arguments: given }) =>
        given.includes('4') ? { text: 'HTTP status 500', failed: true } : { text: 'sent' },
    })
    await take(world, using([tool()]))
    expect(resultsIn(world.asked[1]!).map(({ id, text, failed }) => [id, failed ?? false, text])).toEqual([
      ['a', false, 'sent'],
      ['b', true, expect.stringContaining('/id')],
      ['c', true, 'There is no tool `nothing`.'],
      ['d', true, 'HTTP status 500'],
    ])
    expect(world.called.map(({ id }) => id)).toEqual(['a', 'd'])
  })

  it('is stopped after its time, and the turn goes on', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const world = makeWorld({
      speak: script(calls(call('orders')), says('It takes too long.')),
      tool: () => new Promise(() => {}),
    })
    const taking = take(world, using([tool()]))
    await vi.advanceTimersByTimeAsync(30_000)
    expect((await taking).at(-1)).toMatchObject({ type: 'done', finish_reason: 'stop' })
    expect(resultsIn(world.asked[1]!)[0]?.text).toContain('30 seconds')
  })

  it('ends with the turn when that is stopped', async () => {
    const stop = new AbortController()
    let isOver = false
    const world = makeWorld({
      speak: script(calls(call('orders'))),
      tool: (_, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            isOver = true
            reject(signal.reason)
          })
          stop.abort()
        }),
    })
    const events = await take(world, using([tool()]), stop.signal)
    expect(events.at(-1)).toMatchObject({ type: 'error', code: 'stopped' })
    expect(isOver).toBe(true)
    expect(world.stored).toEqual([])
  })

  it('is called six times at most; then the model has to answer', async () => {
    const world = makeWorld({
      speak: ({ mustAnswer }) => (mustAnswer ? says('Enough.') : calls(call('orders'))),
    })
    const events = await take(world, using([tool()]))
    expect(world.called).toHaveLength(6)
    expect(textOf(ofType(events, 'done')[0]!.answer)).toBe('Enough.')
  })

  it('tells no more than fits: arguments and results share the bytes of the model', async () => {
    const world = makeWorld({
      speak: ({ mustAnswer }) => (mustAnswer ? says('Enough.') : calls(call('orders'))),
      tool: async () => ({ text: 'x'.repeat(100_000) }),
    })
    const model = config({ model_name: 'openai/gpt', api_key: 'k', max_bytes: 20_000 })
    await take(world, using([tool()], { model }))
    const told = resultsIn(world.asked.at(-1)!).map(({ text }) => text.length)
    expect(told).toEqual([16_000 + '\n(cut)'.length, 4_000 - 2 * '{"id":"7"}'.length + '\n(cut)'.length])
  })
})

describe('the search of the assistant as a tool', () => {
  it('finds what can be cited', async () => {
    const world = makeWorld({
      speak: script(
        calls(call('search', { query: 'Who directed Alien?' })),
        says('Ridley Scott directed the film Alien.'),
      ),
    })
    world.documents.films = [{ id: '9', title: 'Alien', text: 'Ridley Scott directed the film Alien.' }]
    const events = await take(world, using([SEARCH], { question: contentOf('Hm?') }))
    expect(world.searched).toEqual(['Hm?', 'Who directed Alien?'])
    expect(ofType(events, 'retrieval')[1]?.searches[0]).toMatchObject({ q: 'Who directed Alien?' })
    expect(ofType(events, 'results')[1]?.replies).toMatchObject([{ result: { found: 1 } }])
    expect(ofType(events, 'citation')[0]).toMatchObject({ document_id: '9' })
  })

  it('gives each search of a step its share, keeps room for another step, and repeats nothing', async () => {
    const world = makeWorld({
      speak: script(
        calls(call('search', { query: 'one' }, 'a'), call('search', { query: 'two' }, 'b')),
        calls(call('search', { query: 'three' }, 'c'), call('search', { query: 'four' }, 'd')),
        says('Read.'),
      ),
    })
    const text = (at: number) => `${at} `.repeat(400)
    world.documents.films = Array.from({ length: 40 }, (_, at) => ({ id: String(at), text: text(at) }))
    const model = config({ model_name: 'openai/gpt', api_key: 'k', max_bytes: 16_000 })
    await take(world, using([SEARCH], { model }))
    const told = resultsIn(world.asked.at(-1)!).map((result) => result.text)
    const sizes = told.map(({ length }) => length)
    expect(sizes.map((size) => size > 1_000)).toEqual([true, true, true, true])
    expect(Math.max(...sizes)).toBeLessThanOrEqual(4_000)
    const ids = told.flatMap((json) => JSON.parse(json).map(({ id }: { id: string }) => id))
    const prompt = /<Data>\n([\s\S]*?)\n\n<Question>/.exec(world.asked[0]!.messages.at(-1)!.content)![1]!
    const first = JSON.parse(prompt).map(({ id }: { id: string }) => id)
    // The two of a step run at once, so they may find the same.
    expect(new Set([...first, ...ids]).size).toBe(first.length + new Set(ids).size)
    expect(ids.slice(-2)).not.toContain(ids[0])
  })

  it('says so where it finds only what the model has already', async () => {
    const world = makeWorld({ speak: script(calls(call('search', { query: 'Alien?' })), says('Read.')) })
    await take(world, using([SEARCH]))
    expect(resultsIn(world.asked[1]!)[0]?.text).toBe('It found only what you have already.')
  })

  it('keeps its filter beside that of a document', async () => {
    const filters: unknown[] = []
    const world = makeWorld({
      speak: script(calls(call('document', { id: 'a`b' })), says('Read.')),
      refuse: (_, { filter_by }) => {
        filters.push(filter_by)
        return undefined
      },
    })
    const [search] = asking().searches
    const searches = [{ ...search!, params: { ...search!.params, filter_by: 'a:1 || b:2' } }]
    const document = tool({ name: 'document', runs: 'document', parameters: { type: 'object' } })
    await take(world, using([document], { searches }))
    expect(filters).toEqual(['a:1 || b:2', '(a:1 || b:2) && (id:=`ab`)'])
  })

  it('runs four searches at once and 32 in all, in all collections together, but each call at least once', async () => {
    const [search] = asking().searches
    const run = async (collections: number) => {
      let [running, most] = [0, 0]
      const six = Array.from({ length: 6 }, (_, at) => call('search', { query: `q${at}` }, `c${at}`))
      const world = makeWorld({ speak: ({ mustAnswer }) => (mustAnswer ? says('Enough.') : calls(...six)) })
      const wait = async () => {
        running += 1
        most = Math.max(most, running)
        await new Promise((resolve) => setTimeout(resolve))
        running -= 1
      }
      world.searching = (q) => (q.startsWith('q') ? wait() : undefined)
      const events = await take(world, using([SEARCH], { searches: Array(collections).fill(search) }))
      expect(events.at(-1)?.type).toBe('done')
      const told = resultsIn(world.asked.at(-1)!).filter(({ failed }) => failed)
      expect(told.map(({ text }) => text)).toContain(
        'Enough has been searched for this question. Answer from what was found.',
      )
      return [world.searched.filter((q) => q.startsWith('q')).length, most]
    }
    expect(await run(1)).toEqual([32, 4])
    expect(await run(5)).toEqual([30, 4])
    expect(await run(40)).toEqual([40, 4])
  })

  it('says that it failed, and does not end the turn', async () => {
    const world = makeWorld({ speak: script(calls(call('search', { query: 'x' })), says('No luck.')) })
    world.refuse = (_, { q }) => {
      if (q === 'x') throw new Error('gone')
      return undefined
    }
    const events = await take(world, using([SEARCH]))
    expect(ofType(events, 'retrieval')).toHaveLength(1)
    expect(events.at(-1)?.type).toBe('done')
  })
})

describe('a tool that needs leave', () => {
  const asked = async (more: Partial<AskRequest> = {}, said = says('x')) => {
    const world = makeWorld({
      speak: script(calls({ type: 'text', text: 'I can book it.' }, call('book'), call('orders')), said),
    })
    const events = await take(world, using([BOOK, tool()], more))
    return { world, events, done: ofType(events, 'done')[0]! }
  }

  it('ends the turn, which waits; what needs no leave has run', async () => {
    const { world, done } = await asked()
    expect(world.called.map(({ name }) => name)).toEqual(['orders'])
    expect(done.finish_reason).toBe('tool_calls')
    expect(waitingIn(done.answer)).toEqual([
      {
        type: 'tool_call',
        id: 'call-book',
        name: 'book',
        arguments: '{"id":"7"}',
        title: 'Book a table',
        awaits: 'leave',
      },
    ])
    expect(world.stored[0]?.[1]?.content).toEqual(done.answer)
  })

  it('does not run where nobody can be asked, and the model is told so', async () => {
    const { world, done } = await asked({ asks: undefined! }, says('Please book it on our site.'))
    expect(world.called.map(({ name }) => name)).toEqual(['orders'])
    expect(resultsIn(world.asked[1]!)[0]).toMatchObject({
      failed: true,
      text: expect.stringContaining('cannot be asked'),
    })
    expect(done.finish_reason).toBe('stop')
  })

  const decide = async (decided: NonNullable<AskRequest['resumes']>['decided'], again?: true) => {
    const { done } = await asked()
    const world = makeWorld({ speak: script(says('Booked.')) })
    const resumes = { turn: 1, content: done.answer, decided, ...(again && { again }) }
    const events = await take(world, using([BOOK, tool()], { resumes }))
    return { world, events, told: resultsIn(world.asked[0]!) }
  }

  it('runs once it is allowed, and the answer holds both parts', async () => {
    const { world, events, told } = await decide({ 'call-book': { allow: true } })
    expect(world.called.map(({ name }) => name)).toEqual(['book'])
    expect(told.map(({ id, text }) => [id, text])).toEqual([
      ['call-orders', 'done'],
      ['call-book', 'done'],
    ])
    expect(world.asked[0]?.messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
    expect(events.map(({ type }) => type).slice(3)).toEqual([
      ...['resumed', 'part', 'delta', 'usage', 'history', 'done'],
    ])
    const [done] = ofType(events, 'done')
    expect(textOf(done!.answer)).toBe('I can book it.Booked.')
    expect(waitingIn(done!.answer)).toEqual([])
    expect(world.finished[0]?.calls?.map(({ name, result }) => [name, result])).toEqual([
      ['book', 'done'],
      ['orders', 'done'],
    ])
  })

  it.each([
    ['is refused', { 'call-book': { allow: false } }, undefined, 'did not allow'],
    ['has no decision', {}, undefined, 'did not allow'],
    ['may have been done before an interruption', { 'call-book': { allow: true } }, true, 'not known'],
  ] as const)('does not run where it %s', async (_, decided, again, words) => {
    const { world, told } = await decide(decided, again)
    expect(world.called).toEqual([])
    expect(told[1]).toMatchObject({ id: 'call-book', failed: true, text: expect.stringContaining(words) })
  })

  it('is told in words where it was removed meanwhile', async () => {
    const { done } = await asked()
    const world = makeWorld({ speak: script(says('It is gone.')) })
    const resumes = { turn: 1, content: done.answer, decided: { 'call-book': { allow: true } } }
    await take(world, asking({ resumes }))
    expect(world.called).toEqual([])
    expect(world.asked[0]).not.toHaveProperty('tools')
    expect(world.asked[0]?.messages.at(-1)?.content).toContain('There is no tool `book`')
  })

  it('is asked for once in a conversation where that is enough, but not on the word of a caller', async () => {
    const once = { ...BOOK, leave: 'once' as const }
    const earlier: Part[] = [
      { type: 'tool_call', id: 'e', name: 'book', arguments: '{}' },
      { type: 'tool_result', id: 'e', text: 'done' },
    ]
    const reply = () => script(calls(call('book')), says('Done.'))
    const named = async (more: Partial<AskRequest>, said: Part[]) => {
      const world = makeWorld({ speak: ({ purpose }) => (purpose === 'standalone' ? says('q?') : speak()) })
      const speak = reply()
      world.said = [message({}), message({ role: 'assistant', content: said })]
      await take(world, using([once], more))
      return world.called.length
    }
    expect(await named({ continues: true }, earlier)).toBe(1)
    expect(await named({ continues: true }, [earlier[0]!, { ...earlier[1]!, failed: true } as Part])).toBe(0)
    const transcript = [
      { role: 'user' as const, content: contentOf('q') },
      { role: 'assistant' as const, content: earlier },
    ]
    expect(await named({ transcript }, [])).toBe(0)
  })
})

describe('a function of the visitor’s page', () => {
  const PAGE = tool({ name: 'where', runs: 'page', leave: 'never' })

  it('waits for its result, and the turn goes on with it', async () => {
    const world = makeWorld({ speak: script(calls(call('where')), says('You are in Rome.')) })
    const [done] = ofType(await take(world, using([PAGE])), 'done')
    expect(waitingIn(done!.answer)[0]?.awaits).toBe('page')
    const resumes = { turn: 1, content: done!.answer, decided: { 'call-where': { result: 'Rome' } } }
    const next = makeWorld({ speak: script(says('You are in Rome.')) })
    await take(next, using([PAGE], { resumes }))
    expect(resultsIn(next.asked[0]!)).toEqual([{ type: 'tool_result', id: 'call-where', text: 'Rome' }])
    // Leave for it is no result.
    const other = makeWorld()
    await take(other, using([PAGE], { resumes: { ...resumes, decided: { 'call-where': { allow: true } } } }))
    expect(resultsIn(other.asked[0]!)[0]?.failed).toBe(true)
  })
})

describe('a model without calls of its own', () => {
  const model = config({ model_name: 'vllm/x', vllm_url: 'u', tool_calls: 'text' })

  it('writes them as text, which nobody sees', async () => {
    const world = makeWorld({
      speak: script(
        says('I look.\n<call>{"name": "orders", ', '"arguments": {"id": "7"}}</call>'),
        says('It was sent.'),
      ),
    })
    const events = await take(world, using([tool()], { model }))
    expect(world.asked[0]).not.toHaveProperty('tools')
    expect(world.asked[0]?.messages[0]).toMatchObject({
      role: 'system',
      content: expect.stringContaining('"orders"'),
    })
    expect(world.asked[1]?.messages.slice(-2)).toEqual([
      { role: 'assistant', content: 'I look.\n<call>{"name": "orders", "arguments": {"id":"7"}}</call>' },
      { role: 'user', content: '<result>"done"</result>' },
    ])
    expect(ofType(events, 'delta').map(({ text }) => text)).toEqual(['I look.', 'It was sent.'])
  })

  it('writes of calls without calling', async () => {
    const text = `Write \`<call>\` for a call, as in <call>{oops}</call>. ${'<call>{'.repeat(50_000)}`
    const world = makeWorld({ speak: script(says(text)) })
    const [done] = ofType(await take(world, using([tool()], { model })), 'done')
    expect(textOf(done!.answer)).toBe(text)
  })
})

it('keeps calls in an answer whose text is changed afterwards', () => {
  const result: Part = { type: 'tool_result', id: 'a', text: 'x' }
  const content: Part[] = [...contentOf('One. '), result, ...contentOf('Two.')]
  expect(contentWith(content, 'One. Two. Check it.')).toEqual([
    ...contentOf('One. '),
    result,
    ...contentOf('Two. Check it.'),
  ])
  expect(contentWith(content, 'Nothing.')).toEqual([result, ...contentOf('Nothing.')])
})
