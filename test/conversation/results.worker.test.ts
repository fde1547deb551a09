/** What a reader gets besides a turn's usual events, whoever asked, from the running turn and from its log alike. */

import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test'
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { unwrap } from '../../src/errors'
import { contentOf, textOf } from '../../src/lib/parts'
import type { TurnEvent } from '../../src/turn/events'
import { foldTurn } from '../../src/turn/fold'
import { ADMIN, asking, conversation, makeProvider, openai, read, setStage, stub, take } from './stage'

beforeAll(() => setStage())

afterEach(() => vi.restoreAllMocks())

const QUESTION = 'Who directed Alien?'
const BOTH = { results: true, history: true }

const eventsOf = async (id: string, reading = {}): Promise<TurnEvent[]> =>
  read(unwrap(await conversation(id).events(ADMIN, { turn: 1, seq: -1 }, reading))!)

const rows = (id: string, query: string) =>
  runInDurableObject(stub(id), (_, { storage: { sql } }) => sql.exec(query).toArray())

const usual = (events: TurnEvent[]) => events.filter(({ type }) => type !== 'results' && type !== 'history')

describe('an engine’s replies and the history', () => {
  it('come to who asks for them, and the log is the same for all', async () => {
    const request = await asking(QUESTION, { read: BOTH })
    const id = request.conversationId
    const events = await take(request)
    expect([...new Set(events.map(({ type }) => type))]).toEqual([
      ...['question', 'results', 'retrieval', 'delta', 'citation', 'usage', 'history', 'done'],
    ])
    // Those that count are numbered without a gap, and the others go with the next of them.
    expect(usual(events).map(({ seq }) => seq)).toEqual(usual(events).map((_, index) => index))
    expect(await eventsOf(id, BOTH)).toEqual(events)
    expect(await eventsOf(id)).toEqual(usual(events))
    const { results, history } = foldTurn(events)
    expect(results).toMatchObject([{ result: { hits: [{ document: { id: 'alien' } }] } }])
    expect(history?.map(({ content }) => textOf(content))).toEqual([
      QUESTION,
      events.at(-1)!.type === 'done' && textOf(foldTurn(events).answer),
    ])
    const log = JSON.stringify(await rows(id, 'SELECT lines FROM log'))
    expect(log).not.toContain('highlight')
    expect(log).not.toContain('"history"')
    expect(JSON.stringify(await rows(id, 'SELECT lines FROM results'))).toContain('highlight')
  })

  it('are told of a turn whose caller did not ask for them, while it runs and after', async () => {
    const request = await asking(QUESTION, { model: openai })
    const id = request.conversationId
    const provider = makeProvider(id)
    vi.spyOn(globalThis, 'fetch').mockImplementation(provider.fetch)
    const asked = take(request)
    await provider.say('Ridley')
    const following = eventsOf(id, { results: true })
    await provider.finish()
    expect(usual(await following)).toEqual(await asked)
    expect(foldTurn(await following).results).toHaveLength(1)
    await abortAllDurableObjects()
    expect(await eventsOf(id, { results: true })).toEqual(await following)
    const { history } = foldTurn(await eventsOf(id, BOTH))
    expect(history?.map(({ role }) => role)).toEqual(['user', 'assistant'])
  })

  it('go with the turn', async () => {
    const request = await asking(QUESTION)
    await take(request)
    const again = {
      ...request,
      continues: true,
      replaces: { after: 0 },
      question: contentOf('Who directed Heat?'),
    }
    expect((await take(again)).at(-1)).toMatchObject({ type: 'done', turn: 2 })
    expect(await rows(request.conversationId, 'SELECT DISTINCT turn FROM results')).toEqual([{ turn: 2 }])
  })
})
