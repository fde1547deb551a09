/** The order in which a turn calls others and writes down that it runs: a call waits for the writes before it. */

import { runInDurableObject } from 'cloudflare:test'
import { afterEach, beforeAll, expect, it, vi } from 'vitest'
import { contentOf } from '../../src/lib/parts'
import type { CollectionRpc } from '../../src/search/collection/handle'
import * as handle from '../../src/search/collection/handle'
import type { AskRequest } from '../../src/turn/request'
import { asking, collectionNamed, openai, setStage, speaking, stub, take } from './stage'

beforeAll(() => setStage())
afterEach(() => vi.restoreAllMocks())

const { collectionObject } = handle

/** Takes a turn. @returns its calls to collections, and its writes, in their order */
const orderOf = async (request: AskRequest): Promise<string[]> => (await tracked(request)).order

/** Takes a turn. @returns the same, and the tables that its object writes before the answer begins */
async function tracked(request: AskRequest): Promise<{ order: string[]; begun: string[] }> {
  const order: string[] = []
  const writes: string[] = []
  vi.spyOn(handle, 'collectionObject').mockImplementation(
    (env, id) =>
      new Proxy({} as CollectionRpc, {
        get:
          (_, name: keyof CollectionRpc) =>
          (...args: unknown[]) => {
            order.push(name)
            return (collectionObject(env, id)[name] as (...args: unknown[]) => unknown)(...args)
          },
      }),
  )
  await runInDurableObject(stub(request.conversationId), (_, { storage: { sql } }) => {
    const exec = sql.exec.bind(sql)
    vi.spyOn(sql, 'exec').mockImplementation(((query: string, ...bindings: unknown[]) => {
      const [, verb, table] =
        /\b(CREATE|INSERT|UPDATE|DELETE)\b(?: (?:OR REPLACE )?(?:INTO|FROM))? (\w+)/.exec(query) ?? []
      if (verb) order.push('write')
      if (verb) writes.push(verb === 'CREATE' ? 'tables' : table!)
      return exec(query, ...bindings)
    }) as typeof sql.exec)
  })
  const events = await take(request)
  expect(events.at(-1)).toMatchObject({ type: 'done' })
  // The first write of the log comes with the answer.
  return { order, begun: writes.slice(0, writes.indexOf('log')) }
}

const QUESTION = 'Who directed Alien?'

it('a first question is searched before anything is written', async () => {
  const order = await orderOf(await asking(QUESTION))
  expect(order).toContain('write')
  expect(order.slice(0, order.indexOf('write'))).toEqual(['search', 'schema'])
})

it('all searches of a question are', async () => {
  const { objectId } = await collectionNamed('films')
  const search = { collection: 'films', place: { engine: 'object', objectId }, params: { query_by: 'title' } }
  const order = await orderOf(await asking(QUESTION, { searches: [search, search], onSearchError: 'go_on' }))
  expect(order.slice(0, order.indexOf('write'))).toEqual(['search', 'schema', 'search', 'schema'])
})

it('so is a follow-up in its own wording, once its history is known', async () => {
  vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Ridley Scott.'))
  const first = await asking(QUESTION, { model: openai })
  await take(first)
  const order = await orderOf({ ...first, question: contentOf('And Heat?'), continues: true })
  expect(order.slice(0, order.indexOf('write'))).toEqual(['recentMessages', 'search', 'schema'])
})

it('so is a question with a transcript before it', async () => {
  vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Ridley Scott.'))
  const transcript = [
    { role: 'user' as const, content: contentOf('Hello.') },
    { role: 'assistant' as const, content: contentOf('Hello.') },
  ]
  const order = await orderOf(await asking(QUESTION, { model: openai, transcript }))
  expect(order.slice(0, order.indexOf('write'))).toEqual(['search', 'schema'])
})

it('what is written before the answer is written once: a call waits for it', async () => {
  vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Ridley Scott.'))
  const first = await asking(QUESTION, { model: openai })
  expect((await tracked(first)).begun).toEqual(['tables', 'meta', 'records', 'turns'])
  vi.restoreAllMocks()
  vi.spyOn(globalThis, 'fetch').mockImplementation(speaking('Ridley Scott.'))
  const second = { ...first, question: contentOf('And what of Heat, the film?'), continues: true }
  expect((await tracked(second)).begun).toEqual(['turns'])
})
